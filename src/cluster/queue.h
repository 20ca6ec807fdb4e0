/* Frames shared out to ranks through counters on rank 0 (cluster/counters.h): whoever is free claims the next one. The protocol is in
 * cluster/queue_steps.h.
 *
 * Frames are in one order (group by group). A rank claims a work item and completes it (done or failed). A rank that cannot go on,
 * having lost its device, gives work items back; the others claim those last. Nobody is finished before every work item is completed
 * or no rank is left that works. */
#ifndef PS_CLUSTER_QUEUE_H
#define PS_CLUSTER_QUEUE_H

#include <stdint.h>

#include "cluster/cluster.h"

typedef struct ps_queue ps_queue;

/* Collective. */
ps_code ps_queue_create(const ps_cluster *cluster, int64_t n_work_items, ps_queue **queue, ps_error *error);
/* Collective. */
void ps_queue_destroy(ps_queue *queue);

/* Claims the next work item; *work_item is -1 when nothing is left to claim now. Rank-local, as all below. */
ps_code ps_queue_claim(ps_queue *queue, int64_t *work_item, ps_error *error);
/* How many work items nobody has claimed yet (those given back not counted). */
ps_code ps_queue_remaining(ps_queue *queue, int64_t *remaining, ps_error *error);
/* Gives a claimed work item back for another rank. Once stopped, nobody will claim it. */
ps_code ps_queue_give_back(ps_queue *queue, int64_t work_item, ps_error *error);
/* Says that a claimed work item is done or failed. *completed: how many are so far, over all ranks. */
ps_code ps_queue_complete(ps_queue *queue, int64_t *completed, ps_error *error);
/* Ends the sharing for every rank: nothing more is handed out. */
ps_code ps_queue_stop(ps_queue *queue, ps_error *error);
/* Says that this rank claims no more. */
ps_code ps_queue_leave(ps_queue *queue, ps_error *error);
typedef struct {
    int64_t completed;
    bool stopped;  /* some rank called ps_queue_stop */
    bool finished; /* stopped, or every work item is completed, or every other rank has left and nothing is left to claim */
} ps_queue_status;
ps_code ps_queue_state(ps_queue *queue, ps_queue_status *status, ps_error *error);

#endif
