/* Frames shared out to ranks through counters on rank 0 (cluster/counters.h): whoever is free takes the next one. The protocol is in
 * cluster/queue_steps.h.
 *
 * Frames stand in one order (group by group). A rank takes a place and resolves it (done or failed). A rank that cannot go on,
 * having lost its device, gives places back; the others take those last. Nobody is finished before every place is resolved
 * or no rank is left that works. */
#ifndef PS_CLUSTER_QUEUE_H
#define PS_CLUSTER_QUEUE_H

#include <stdint.h>

#include "cluster/cluster.h"

typedef struct ps_queue ps_queue;

/* Collective. */
ps_code ps_queue_create(const ps_cluster *cluster, int64_t n_places, ps_queue **queue, ps_error *error);
/* Collective. */
void ps_queue_destroy(ps_queue *queue);

/* Takes the next place; *place is -1 when nothing is left to take now. Rank-local, as all below. */
ps_code ps_queue_take(ps_queue *queue, int64_t *place, ps_error *error);
/* How many places nobody has taken yet (those given back not counted). */
ps_code ps_queue_remaining(ps_queue *queue, int64_t *remaining, ps_error *error);
/* Gives a taken place back for another rank. Once stopped, nobody will take it. */
ps_code ps_queue_give_back(ps_queue *queue, int64_t place, ps_error *error);
/* Says that a taken place is done or failed. *resolved: how many are so far, over all ranks. */
ps_code ps_queue_resolve(ps_queue *queue, int64_t *resolved, ps_error *error);
/* Ends the sharing for every rank: nothing more is handed out. */
ps_code ps_queue_stop(ps_queue *queue, ps_error *error);
/* Says that this rank takes no more. */
ps_code ps_queue_leave(ps_queue *queue, ps_error *error);
typedef struct {
    int64_t resolved;
    bool stopped;  /* some rank called ps_queue_stop */
    bool finished; /* stopped, or every place is resolved, or every other rank has left and nothing is left to take */
} ps_queue_status;
ps_code ps_queue_state(ps_queue *queue, ps_queue_status *status, ps_error *error);

#endif
