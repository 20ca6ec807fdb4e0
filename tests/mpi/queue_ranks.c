/* Every place of a queue is completed exactly once, whatever ranks do: claim, give back, leave, stop. Run under mpirun. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/queue.h"

enum { N_PLACES = 200 };

static void pause_a_little(unsigned *seed) {
    struct timespec pause = {.tv_nsec = rand_r(seed) % 200000};
    nanosleep(&pause, NULL);
}

/* Claims until all is finished; gives back every third work item it gets while `generous`, and leaves early when `leaves_after` is reached.
 */
static int work(ps_queue *queue, int rank, int leaves_after, int generous, int *completed) {
    ps_error error = {0};
    unsigned seed = (unsigned)rank + 1;
    int n_taken = 0;
    for (;;) {
        int64_t work_item, count;
        ps_queue_status status;
        if (leaves_after >= 0 && n_taken >= leaves_after) return ps_queue_leave(queue, &error);
        if (ps_queue_claim(queue, &work_item, &error) != PS_OK) break;
        if (work_item < 0) {
            if (ps_queue_state(queue, &status, &error) != PS_OK) break;
            if (status.finished) return PS_OK;
            pause_a_little(&seed);
            continue;
        }
        n_taken++;
        pause_a_little(&seed);
        if (generous && n_taken % 3 == 0) {
            if (ps_queue_give_back(queue, work_item, &error) != PS_OK) break;
            generous--;
            continue;
        }
        completed[work_item]++;
        if (ps_queue_complete(queue, &count, &error) != PS_OK) break;
    }
    fprintf(stderr, "rank %d: %s\n", rank, error.text);
    return error.code;
}

/* All ranks but 0 may leave; the sum over ranks of what each completed must be one everywhere. */
static int check_all_completed(const ps_cluster *cluster, int leaves_after, int generous) {
    ps_error error = {0};
    ps_queue *queue;
    int mine[N_PLACES] = {0}, all[N_PLACES], n_wrong = 0;
    if (ps_queue_create(cluster, N_PLACES, &queue, &error) != PS_OK) return 1;
    int code = work(queue, cluster->rank, cluster->rank == 0 ? -1 : leaves_after, generous, mine);
    ps_queue_destroy(queue);
    MPI_Allreduce(mine, all, N_PLACES, MPI_INT, MPI_SUM, cluster->communicator);
    for (int i = 0; i < N_PLACES; i++) n_wrong += all[i] != 1;
    if (cluster->rank == 0 && n_wrong) fprintf(stderr, "%d work items were not completed exactly once\n", n_wrong);
    return code != PS_OK || n_wrong;
}

/* Nothing new is left: what ranks hold goes round among them, given back and claimed as fast as they can, before it is completed. */
static int check_exchange(const ps_cluster *cluster, int n_work_items, int n_rounds) {
    ps_error error = {0};
    ps_queue *queue;
    int mine[N_PLACES] = {0}, all[N_PLACES], n_wrong = 0, n_given = 0;
    if (ps_queue_create(cluster, n_work_items, &queue, &error) != PS_OK) return 1;
    for (;;) {
        int64_t work_item, count;
        ps_queue_status status;
        if (ps_queue_claim(queue, &work_item, &error) != PS_OK) break;
        if (work_item < 0) {
            if (ps_queue_state(queue, &status, &error) != PS_OK || status.finished) break;
        } else if (n_given++ < n_rounds) {
            if (ps_queue_give_back(queue, work_item, &error) != PS_OK) break;
        } else {
            mine[work_item]++;
            if (ps_queue_complete(queue, &count, &error) != PS_OK) break;
        }
    }
    ps_queue_destroy(queue);
    MPI_Allreduce(mine, all, n_work_items, MPI_INT, MPI_SUM, cluster->communicator);
    for (int i = 0; i < n_work_items; i++) n_wrong += all[i] != 1;
    if (error.code != PS_OK) fprintf(stderr, "rank %d: %s\n", cluster->rank, error.text);
    if (cluster->rank == 0 && n_wrong)
        fprintf(stderr, "%d of %d exchanged work items were not completed exactly once\n", n_wrong, n_work_items);
    return error.code != PS_OK || n_wrong;
}

/* Every rank loses its device while it holds a work item: all end, and what was not completed is there to be claimed once. */
static int check_all_lost(const ps_cluster *cluster) {
    ps_error error = {0};
    ps_queue *queue;
    ps_queue_status status = {0};
    int64_t work_item = -1;
    int seen[N_PLACES] = {0}, n_wrong = 0;
    if (ps_queue_create(cluster, N_PLACES, &queue, &error) != PS_OK) return 1;
    ps_queue_claim(queue, &work_item, &error);
    if (work_item >= 0) ps_queue_give_back(queue, work_item, &error);
    ps_queue_leave(queue, &error);
    MPI_Barrier(cluster->communicator);
    if (cluster->rank == 0) {
        ps_queue_state(queue, &status, &error);
        n_wrong += status.finished; /* what is left can still be claimed */
        for (ps_queue_claim(queue, &work_item, &error); work_item >= 0; ps_queue_claim(queue, &work_item, &error)) seen[work_item]++;
        ps_queue_state(queue, &status, &error);
        for (int i = 0; i < N_PLACES; i++) n_wrong += seen[i] != 1;
        n_wrong += !status.finished;
    }
    ps_queue_destroy(queue);
    return error.code != PS_OK || n_wrong;
}

static int check_stop(const ps_cluster *cluster) {
    ps_error error = {0};
    ps_queue *queue;
    ps_queue_status status = {0};
    int64_t work_item = 0, remaining = -1;
    if (ps_queue_create(cluster, N_PLACES, &queue, &error) != PS_OK) return 1;
    if (cluster->rank == cluster->n_ranks - 1) ps_queue_stop(queue, &error);
    MPI_Barrier(cluster->communicator);
    ps_queue_give_back(queue, 0, &error); /* nobody is given it any more */
    ps_queue_claim(queue, &work_item, &error);
    ps_queue_remaining(queue, &remaining, &error);
    ps_queue_state(queue, &status, &error);
    ps_queue_destroy(queue);
    return error.code != PS_OK || work_item != -1 || remaining != 0 || !status.finished || !status.stopped;
}

/* One rank's error becomes everyone's, with its text. */
static int check_agreement(const ps_cluster *cluster) {
    ps_error error = {0};
    int last = cluster->n_ranks - 1;
    ps_code mine = cluster->rank == last ? PS_FAIL(&error, PS_E_INPUT, "it was me") : PS_OK;
    ps_code code = ps_cluster_agree(cluster, mine, &error);
    if (code != PS_E_INPUT || !strstr(error.text, "it was me")) return 1;
    ps_error_clear(&error);
    return ps_cluster_agree(cluster, PS_OK, &error) != PS_OK;
}

int main(void) {
    ps_cluster cluster;
    ps_error error = {0};
    if (ps_cluster_begin(&cluster, &error) != PS_OK) return 1;
    int wrong = check_all_completed(&cluster, -1, 0); /* every check is collective: none may be left out */
    wrong |= check_all_completed(&cluster, -1, 20);
    wrong |= check_all_completed(&cluster, 5, 3);
    wrong |= check_exchange(&cluster, 0, 0);
    wrong |= check_exchange(&cluster, 1, 100);
    wrong |= check_exchange(&cluster, 3, 300);
    wrong |= check_exchange(&cluster, 2 * cluster.n_ranks, 100);
    wrong |= check_all_lost(&cluster);
    wrong |= check_stop(&cluster);
    wrong |= check_agreement(&cluster);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, cluster.communicator);
    ps_cluster_end(&cluster, wrong);
    return wrong;
}
