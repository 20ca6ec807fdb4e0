#include "cluster/queue.h"

#include <stdlib.h>

#include "cluster/counters.h"

/* The counters, then slots for places given back. A slot holds place + 1; 0 is empty. */
enum { NEXT, RESOLVED, RETURNED, RETAKEN, LEFT, STOPPED, N_COUNTERS };

struct ps_queue {
    const ps_cluster *cluster;
    int64_t n_places;
    ps_counters *counters;
};

static ps_code add(ps_queue *queue, int64_t at, int64_t amount, int64_t *before, ps_error *error) {
    return ps_counters_change(queue->counters, PS_COUNTER_ADD, at, amount, before, error);
}

static ps_code replace(ps_queue *queue, int64_t at, int64_t value, int64_t *before, ps_error *error) {
    return ps_counters_change(queue->counters, PS_COUNTER_REPLACE, at, value, before, error);
}

ps_code ps_queue_create(const ps_cluster *cluster, int64_t n_places, ps_queue **created, ps_error *error) {
    ps_code code = PS_OK;
    ps_queue *queue = calloc(1, sizeof *queue);
    *created = NULL;
    if (!queue) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate the work queue");
    PS_GO(ps_cluster_agree(cluster, code, error));
    *queue = (ps_queue){.cluster = cluster, .n_places = n_places};
    /* A place may be given back by every rank in turn. */
    PS_GO(ps_counters_create(cluster, N_COUNTERS + n_places * cluster->n_ranks, &queue->counters, error));
    *created = queue;
    queue = NULL;
done:
    free(queue);
    return code;
}

void ps_queue_destroy(ps_queue *queue) {
    if (!queue) return;
    ps_counters_destroy(queue->counters);
    free(queue);
}

/* Takes from the places given back: claims a slot number, then empties the slot. */
static ps_code take_returned(ps_queue *queue, int64_t *place, ps_error *error) {
    int64_t returned, retaken, content = 0;
    PS_TRY(add(queue, RETURNED, 0, &returned, error));
    PS_TRY(add(queue, RETAKEN, 0, &retaken, error));
    if (retaken >= returned) return PS_OK;
    PS_TRY(add(queue, RETAKEN, 1, &retaken, error));
    if (retaken >= returned) return add(queue, RETAKEN, -1, &retaken, error); /* another rank was faster */
    while (content == 0) PS_TRY(replace(queue, N_COUNTERS + retaken, 0, &content, error));
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
    return replace(queue, N_COUNTERS + slot, place + 1, &before, error);
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
    PS_TRY(replace(queue, STOPPED, 1, &before, error));
    return replace(queue, NEXT, queue->n_places, &before, error);
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
