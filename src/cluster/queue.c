#include "cluster/queue.h"

#include <stdlib.h>

#include "cluster/counters.h"
#include "cluster/queue_steps.h"

struct ps_queue {
    const ps_cluster *cluster;
    int64_t n_work_items;
    ps_counters *counters;
};

/* Drives one action to its end; *steps then holds its results. */
static ps_code act(ps_queue *queue, ps_queue_action action, int64_t work_item, ps_queue_steps *steps, ps_error *error) {
    ps_counter_change change;
    int64_t before;
    ps_queue_begin(steps, action, queue->n_work_items, queue->cluster->n_ranks, work_item, &change);
    do PS_TRY(ps_counters_change(queue->counters, &change, &before, error));
    while (ps_queue_go_on(steps, before, &change));
    return PS_OK;
}

ps_code ps_queue_create(const ps_cluster *cluster, int64_t n_work_items, ps_queue **created, ps_error *error) {
    ps_code code = PS_OK;
    ps_queue *queue = calloc(1, sizeof *queue);
    *created = NULL;
    if (!queue) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate the work queue");
    PS_GO(ps_cluster_agree(cluster, code, error));
    *queue = (ps_queue){.cluster = cluster, .n_work_items = n_work_items};
    PS_GO(ps_counters_create(cluster, ps_queue_n_counters(n_work_items), &queue->counters, error));
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

ps_code ps_queue_claim(ps_queue *queue, int64_t *work_item, ps_error *error) {
    ps_queue_steps steps;
    *work_item = -1;
    PS_TRY(act(queue, PS_QUEUE_CLAIM, -1, &steps, error));
    *work_item = steps.work_item;
    return PS_OK;
}

ps_code ps_queue_remaining(ps_queue *queue, int64_t *remaining, ps_error *error) {
    ps_queue_steps steps;
    PS_TRY(act(queue, PS_QUEUE_REMAINING, -1, &steps, error));
    *remaining = steps.remaining;
    return PS_OK;
}

ps_code ps_queue_give_back(ps_queue *queue, int64_t work_item, ps_error *error) {
    ps_queue_steps steps;
    return act(queue, PS_QUEUE_GIVE_BACK, work_item, &steps, error);
}

ps_code ps_queue_complete(ps_queue *queue, int64_t *completed, ps_error *error) {
    ps_queue_steps steps;
    PS_TRY(act(queue, PS_QUEUE_COMPLETE, -1, &steps, error));
    *completed = steps.completed;
    return PS_OK;
}

ps_code ps_queue_leave(ps_queue *queue, ps_error *error) {
    ps_queue_steps steps;
    return act(queue, PS_QUEUE_LEAVE, -1, &steps, error);
}

ps_code ps_queue_stop(ps_queue *queue, ps_error *error) {
    ps_queue_steps steps;
    return act(queue, PS_QUEUE_STOP, -1, &steps, error);
}

ps_code ps_queue_state(ps_queue *queue, ps_queue_status *status, ps_error *error) {
    ps_queue_steps steps;
    PS_TRY(act(queue, PS_QUEUE_STATE, -1, &steps, error));
    *status = (ps_queue_status){.completed = steps.completed, .stopped = steps.stopped, .finished = steps.finished};
    return PS_OK;
}
