/* The protocol by which ranks share places (cluster/queue.h), without MPI: each action is a sequence of atomic changes of shared counters.
 *
 * An action says which counter it wants changed and how; whoever drives it makes the change and brings back what stood there before, until
 * the action is complete. queue.c drives it through MPI; tests/unit/test_queue_model.c through every order in which ranks' steps can mix.
 *
 * The counters, all 0 at the beginning:
 *
 *     STOPPED    how many ranks asked for an end
 *     NEXT       the first place that nobody has taken yet
 *     RESOLVED   how many places are done or failed
 *     LEFT       how many ranks take no more
 *     RETURNED   how many times a place was put into a slot
 *     RETAKEN    how many times one was taken out again
 *     SLOTS      [n_places] a place given back, plus 1; 0: empty
 *
 * Who gives a place back draws a number from RETURNED and puts the place into that slot (numbers go round); who takes empties one slot
 * after another until there was something in it. Both exchange a slot's content in one atomic step, so a place is in exactly one hand or
 * slot, and no rank ever waits for another: a slot that is drawn but not filled yet looks empty and is looked at again later. Where a slot
 * was full when a place was put there, which came in its stead is put into the next. As many slots as places are enough.
 *
 * Exchanges rather than MPI_Compare_and_swap, with which OpenMPI 4.1 crashes among the ranks of a node (osc/rdma over btl/vader); and each
 * counter is changed by one kind of operation only, because MPI promises atomicity among equal operations and reads, not between different
 * ones (accumulate_ops "same_op_no_op"). */
#ifndef PS_CLUSTER_QUEUE_STEPS_H
#define PS_CLUSTER_QUEUE_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/counter_change.h"

enum { PS_QUEUE_STOPPED, PS_QUEUE_NEXT, PS_QUEUE_RESOLVED, PS_QUEUE_LEFT, PS_QUEUE_RETURNED, PS_QUEUE_RETAKEN, PS_QUEUE_SLOTS };

typedef enum {
    PS_QUEUE_TAKE,      /* place: taken; -1: nothing is left to take now */
    PS_QUEUE_GIVE_BACK, /* place, taken before, can be taken again; once stopped nothing happens */
    PS_QUEUE_RESOLVE,   /* resolved: places so far, this one included */
    PS_QUEUE_LEAVE,
    PS_QUEUE_STOP,
    PS_QUEUE_REMAINING, /* remaining: places that nobody has taken yet; 0 once stopped */
    PS_QUEUE_STATE      /* resolved, stopped and finished, as in ps_queue_status */
} ps_queue_action;

/* An action under way. Results hold once it is complete. */
typedef struct {
    ps_queue_action action;
    int step;
    int64_t n_places, n_ranks;
    int64_t place, resolved, remaining;
    bool stopped, finished;
    int64_t left, next, returned, retaken, number; /* read on the way */
} ps_queue_steps;

static inline int64_t ps_queue_n_counters(int64_t n_places) {
    return PS_QUEUE_SLOTS + n_places;
}

/* place: for PS_QUEUE_GIVE_BACK. *change: the first one wanted. */
void ps_queue_begin(ps_queue_steps *steps, ps_queue_action action, int64_t n_places, int64_t n_ranks, int64_t place,
                    ps_counter_change *change);
/* before: what the counter of the change last wanted held before it. True: *change is wanted next; false: the action is complete. */
bool ps_queue_go_on(ps_queue_steps *steps, int64_t before, ps_counter_change *change);

#endif
