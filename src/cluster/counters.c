#include "cluster/counters.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "cluster/mpi_lock.h"

enum { TAG_REQUEST = 1, TAG_ANSWER = 2 };

/* A change on its way to rank 0. */
enum { OPERATION, AT, VALUE, N_WORDS };

struct ps_counters {
    const ps_cluster *cluster;
    MPI_Comm messages; /* requests and answers stay apart from everything else that is sent */
    MPI_Win window;    /* MPI_WIN_NULL: messages are used */
    int64_t *memory;   /* rank 0's counters; the window's where there is one */
    pthread_mutex_t mutex;
    pthread_t server;
    bool has_server;
    atomic_bool stop_server;
};

/* ---- counters in rank 0's memory, changed by messages ---- */

static int64_t change_here(ps_counters *counters, const ps_counter_change *change) {
    pthread_mutex_lock(&counters->mutex);
    int64_t before = counters->memory[change->at];
    counters->memory[change->at] = ps_counter_after(change, before);
    pthread_mutex_unlock(&counters->mutex);
    return before;
}

static void answer(ps_counters *counters, int rank) {
    int64_t words[N_WORDS];
    if (MPI_Recv(words, N_WORDS, MPI_INT64_T, rank, TAG_REQUEST, counters->messages, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    const ps_counter_change change = {.operation = (ps_counter_operation)words[OPERATION], .at = words[AT], .value = words[VALUE]};
    int64_t before = change_here(counters, &change);
    MPI_Send(&before, 1, MPI_INT64_T, rank, TAG_ANSWER, counters->messages);
}

/* Also what moves one-sided calls on transports without remote atomics: someone must be inside MPI on the target. */
static void *server_main(void *argument) {
    ps_counters *counters = argument;
    const struct timespec pause = {.tv_nsec = 1000000};
    while (!atomic_load(&counters->stop_server)) {
        int found = 0;
        MPI_Status status;
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_REQUEST, counters->messages, &found, &status);
        if (found)
            answer(counters, status.MPI_SOURCE);
        else
            nanosleep(&pause, NULL);
    }
    return NULL;
}

static ps_code ask(ps_counters *counters, const ps_counter_change *change, int64_t *before, ps_error *error) {
    const int64_t words[N_WORDS] = {change->operation, change->at, change->value};
    if (counters->cluster->rank == 0) {
        *before = change_here(counters, change);
        return PS_OK;
    }
    PS_TRY(PS_MPI(error, MPI_Send(words, N_WORDS, MPI_INT64_T, 0, TAG_REQUEST, counters->messages)));
    return PS_MPI(error, MPI_Recv(before, 1, MPI_INT64_T, 0, TAG_ANSWER, counters->messages, MPI_STATUS_IGNORE));
}

/* ---- counters in a window ---- */

static ps_code change_window(ps_counters *counters, const ps_counter_change *change, int64_t *before, ps_error *error) {
    MPI_Op operation = change->operation == PS_COUNTER_REPLACE ? MPI_REPLACE : change->operation == PS_COUNTER_ADD ? MPI_SUM : MPI_NO_OP;
    PS_TRY(PS_MPI(error, MPI_Fetch_and_op(&change->value, before, MPI_INT64_T, 0, change->at, operation, counters->window)));
    return PS_MPI(error, MPI_Win_flush(0, counters->window));
}

ps_code ps_counters_change(ps_counters *counters, const ps_counter_change *change, int64_t *before, ps_error *error) {
    ps_mpi_lock();
    ps_code code = counters->window == MPI_WIN_NULL ? ask(counters, change, before, error) : change_window(counters, change, before, error);
    ps_mpi_unlock();
    return code;
}

/* ---- beginning and end ---- */

/* Collective. Leaves window MPI_WIN_NULL on all ranks where the transport has no one-sided calls. */
static ps_code open_window(ps_counters *counters, int64_t n_here, ps_error *error) {
    int can = MPI_Win_allocate(n_here * (MPI_Aint)sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, counters->messages, &counters->memory,
                               &counters->window) == MPI_SUCCESS;
    int all_can = 0;
    PS_TRY(PS_MPI(error, MPI_Allreduce(&can, &all_can, 1, MPI_INT, MPI_MIN, counters->messages)));
    if (!all_can) {
        counters->window = MPI_WIN_NULL;
        counters->memory = NULL;
        return PS_OK;
    }
    MPI_Win_set_errhandler(counters->window, MPI_ERRORS_RETURN);
    for (int64_t i = 0; i < n_here; i++) counters->memory[i] = 0;
    PS_TRY(PS_MPI(error, MPI_Win_lock_all(0, counters->window)));
    return PS_MPI(error, MPI_Win_sync(counters->window));
}

static ps_code open_messages(ps_counters *counters, int64_t n_here, ps_error *error) {
    if (!counters->cluster->threads)
        return PS_FAIL(error, PS_E_MPI, "this MPI has neither one-sided calls between these nodes nor MPI_THREAD_MULTIPLE; one is needed");
    if (n_here > 0 && !(counters->memory = calloc((size_t)n_here, sizeof *counters->memory)))
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate %lld shared counters", (long long)n_here);
    return PS_OK;
}

static ps_code start_server(ps_counters *counters, ps_error *error) {
    const ps_cluster *cluster = counters->cluster;
    if (cluster->rank != 0 || cluster->n_ranks == 1 || !cluster->threads) return PS_OK;
    counters->has_server = pthread_create(&counters->server, NULL, server_main, counters) == 0;
    return counters->has_server ? PS_OK : PS_FAIL(error, PS_E_INTERNAL, "cannot start the thread that serves the shared counters");
}

ps_code ps_counters_create(const ps_cluster *cluster, int64_t n, ps_counters **created, ps_error *error) {
    ps_code code = PS_OK;
    int64_t n_here = cluster->rank == 0 ? n : 0;
    ps_counters *counters = calloc(1, sizeof *counters);
    *created = NULL;
    if (counters) {
        *counters = (ps_counters){.cluster = cluster, .messages = MPI_COMM_NULL, .window = MPI_WIN_NULL};
        pthread_mutex_init(&counters->mutex, NULL);
    } else {
        code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate shared counters");
    }
    PS_GO(ps_cluster_agree(cluster, code, error));
    PS_GO(ps_cluster_agree(cluster, PS_MPI(error, MPI_Comm_dup(cluster->communicator, &counters->messages)), error));
    code = open_window(counters, n_here, error);
    if (code == PS_OK && counters->window == MPI_WIN_NULL) code = open_messages(counters, n_here, error);
    if (code == PS_OK) code = start_server(counters, error);
    PS_GO(ps_cluster_agree(cluster, code, error));
    *created = counters;
    counters = NULL;
done:
    ps_counters_destroy(counters);
    return code;
}

void ps_counters_destroy(ps_counters *counters) {
    if (!counters) return;
    bool has_window = counters->window != MPI_WIN_NULL;
    if (has_window) MPI_Win_unlock_all(counters->window);
    if (counters->messages != MPI_COMM_NULL) MPI_Barrier(counters->messages);
    if (counters->has_server) {
        atomic_store(&counters->stop_server, true);
        pthread_join(counters->server, NULL);
    }
    if (has_window)
        MPI_Win_free(&counters->window);
    else
        free(counters->memory);
    if (counters->messages != MPI_COMM_NULL) MPI_Comm_free(&counters->messages);
    pthread_mutex_destroy(&counters->mutex);
    free(counters);
}
