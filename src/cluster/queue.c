#include "cluster/queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* The window on rank 0: counters, then slots for places given back. A slot holds place + 1; 0 is empty. */
enum { NEXT, RESOLVED, RETURNED, RETAKEN, LEFT, STOPPED, N_COUNTERS };

struct ps_queue {
    const ps_cluster *cluster;
    int64_t n_places;
    MPI_Win window;
    int64_t *memory; /* rank 0's counters and slots */
    pthread_t progress;
    bool has_progress;
    atomic_bool stop_progress;
};

/* Passive targets need someone inside MPI on transports without remote atomics (TCP): this thread is. */
static void *progress_main(void *argument) {
    ps_queue *queue = argument;
    const struct timespec pause = {.tv_nsec = 2000000};
    while (!atomic_load(&queue->stop_progress)) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, queue->cluster->communicator, &flag, MPI_STATUS_IGNORE);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static ps_code fetch(ps_queue *queue, MPI_Op operation, MPI_Aint at, int64_t value, int64_t *before, ps_error *error) {
    PS_TRY(PS_MPI(error, MPI_Fetch_and_op(&value, before, MPI_INT64_T, 0, at, operation, queue->window)));
    return PS_MPI(error, MPI_Win_flush(0, queue->window));
}

static ps_code add(ps_queue *queue, MPI_Aint at, int64_t amount, int64_t *before, ps_error *error) {
    return fetch(queue, amount ? MPI_SUM : MPI_NO_OP, at, amount, before, error);
}

ps_code ps_queue_create(const ps_cluster *cluster, int64_t n_places, ps_queue **created, ps_error *error) {
    ps_code code = PS_OK;
    ps_queue *queue = calloc(1, sizeof *queue);
    *created = NULL;
    /* A place may be given back by every rank in turn. */
    int64_t n_words = cluster->rank == 0 ? N_COUNTERS + n_places * cluster->n_ranks : 0;
    if (!queue) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate the work queue");
    PS_GO(ps_cluster_agree(cluster, code, error));
    *queue = (ps_queue){.cluster = cluster, .n_places = n_places, .window = MPI_WIN_NULL};
    PS_GO(PS_MPI(error, MPI_Win_allocate(n_words * (MPI_Aint)sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, cluster->communicator,
                                         &queue->memory, &queue->window)));
    MPI_Win_set_errhandler(queue->window, MPI_ERRORS_RETURN);
    for (int64_t i = 0; i < n_words; i++) queue->memory[i] = 0;
    PS_GO(PS_MPI(error, MPI_Win_lock_all(0, queue->window)));
    PS_GO(PS_MPI(error, MPI_Win_sync(queue->window)));
    PS_GO(PS_MPI(error, MPI_Barrier(cluster->communicator)));
    if (cluster->rank == 0 && cluster->n_ranks > 1 && cluster->threads)
        queue->has_progress = pthread_create(&queue->progress, NULL, progress_main, queue) == 0;
    *created = queue;
    queue = NULL;
done:
    free(queue);
    return code;
}

void ps_queue_destroy(ps_queue *queue) {
    if (!queue) return;
    MPI_Win_unlock_all(queue->window);
    MPI_Barrier(queue->cluster->communicator);
    if (queue->has_progress) {
        atomic_store(&queue->stop_progress, true);
        pthread_join(queue->progress, NULL);
    }
    MPI_Win_free(&queue->window);
    free(queue);
}

/* Takes from the places given back: claims a slot number, then empties the slot. */
static ps_code take_returned(ps_queue *queue, int64_t *place, ps_error *error) {
    int64_t returned, retaken, content = 0;
    PS_TRY(add(queue, RETURNED, 0, &returned, error));
    PS_TRY(add(queue, RETAKEN, 0, &retaken, error));
    if (retaken >= returned) return PS_OK;
    PS_TRY(fetch(queue, MPI_SUM, RETAKEN, 1, &retaken, error));
    if (retaken >= returned) return fetch(queue, MPI_SUM, RETAKEN, -1, &retaken, error); /* another rank was faster */
    while (content == 0) PS_TRY(fetch(queue, MPI_REPLACE, N_COUNTERS + retaken, 0, &content, error));
    *place = content - 1;
    return PS_OK;
}

ps_code ps_queue_take(ps_queue *queue, int64_t *place, ps_error *error) {
    int64_t next;
    *place = -1;
    PS_TRY(add(queue, NEXT, 0, &next, error));
    if (next < queue->n_places) PS_TRY(add(queue, NEXT, 1, &next, error));
    if (next >= queue->n_places) return take_returned(queue, place, error);
    *place = next;
    return PS_OK;
}

ps_code ps_queue_remaining(ps_queue *queue, int64_t *remaining, ps_error *error) {
    int64_t next;
    PS_TRY(add(queue, NEXT, 0, &next, error));
    *remaining = next < queue->n_places ? queue->n_places - next : 0;
    return PS_OK;
}

ps_code ps_queue_give_back(ps_queue *queue, int64_t place, ps_error *error) {
    int64_t slot, before;
    PS_TRY(add(queue, RETURNED, 1, &slot, error));
    return fetch(queue, MPI_REPLACE, N_COUNTERS + slot, place + 1, &before, error);
}

ps_code ps_queue_resolve(ps_queue *queue, int64_t *resolved, ps_error *error) {
    PS_TRY(add(queue, RESOLVED, 1, resolved, error));
    *resolved += 1;
    return PS_OK;
}

ps_code ps_queue_leave(ps_queue *queue, ps_error *error) {
    int64_t before;
    return add(queue, LEFT, 1, &before, error);
}

ps_code ps_queue_stop(ps_queue *queue, ps_error *error) {
    int64_t before;
    PS_TRY(fetch(queue, MPI_REPLACE, STOPPED, 1, &before, error));
    return fetch(queue, MPI_REPLACE, NEXT, queue->n_places, &before, error);
}

ps_code ps_queue_state(ps_queue *queue, ps_queue_status *status, ps_error *error) {
    int64_t left, returned, retaken, stopped;
    /* LEFT is read first: a rank gives back before it leaves, so what it gave back is seen below. */
    PS_TRY(add(queue, LEFT, 0, &left, error));
    PS_TRY(add(queue, STOPPED, 0, &stopped, error));
    PS_TRY(add(queue, RETURNED, 0, &returned, error));
    PS_TRY(add(queue, RETAKEN, 0, &retaken, error));
    PS_TRY(add(queue, RESOLVED, 0, &status->resolved, error));
    status->stopped = stopped != 0;
    status->finished = stopped || status->resolved >= queue->n_places || (left >= queue->cluster->n_ranks - 1 && retaken >= returned);
    return PS_OK;
}
