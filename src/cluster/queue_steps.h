/* The protocol by which ranks share work items (cluster/queue.h), without MPI: each action is a sequence of atomic changes of shared
 * counters.
 *
 * An action says which counter it wants changed and how; whoever drives it makes the change and brings back what stood there before, until
 * the action is complete. queue.c drives it through MPI; tests/unit/test_queue_model.c through every order in which ranks' steps can mix.
 *
 * The counters, all 0 at the beginning:
 *
 *     STOPPED    how many ranks asked for an end
 *     NEXT       the first work item that nobody has claimed yet
 *     COMPLETED  how many work items are done or failed
 *     LEFT       how many ranks claim no more
 *     RETURNED   how many times a work item was put into a slot
 *     RETAKEN    how many times one was claimed again
 *     SLOTS      [n_work_items] a work item given back, plus 1; 0: empty
 *
 * Who gives a work item back draws a number from RETURNED and puts the work item into that slot (numbers go round); who claims empties one
 * slot after another until there was something in it. Both exchange a slot's content in one atomic step, so a work item is in exactly one
 * hand or slot, and no rank ever waits for another: a slot that is drawn but not filled yet looks empty and is looked at again later. Where
 * a slot was full when a work item was put there, which came in its stead is put into the next. As many slots as work items are enough.
 *
 * Exchanges rather than MPI_Compare_and_swap, with which OpenMPI 4.1 crashes among the ranks of a node (osc/rdma over btl/vader); and each
 * counter is changed by one kind of operation only, because MPI promises atomicity among equal operations and reads, not between different
 * ones (accumulate_ops "same_op_no_op"). */
#ifndef PS_CLUSTER_QUEUE_STEPS_H
#define PS_CLUSTER_QUEUE_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/counter_change.h"

enum { PS_QUEUE_STOPPED, PS_QUEUE_NEXT, PS_QUEUE_COMPLETED, PS_QUEUE_LEFT, PS_QUEUE_RETURNED, PS_QUEUE_RETAKEN, PS_QUEUE_SLOTS };

typedef enum {
    PS_QUEUE_CLAIM,     /* work item: claimed; -1: nothing is left to claim now */
    PS_QUEUE_GIVE_BACK, /* work item, claimed before, can be claimed again; once stopped nothing happens */
    PS_QUEUE_COMPLETE,  /* completed: work items so far, this one included */
    PS_QUEUE_LEAVE,
    PS_QUEUE_STOP,
    PS_QUEUE_REMAINING, /* remaining: work items that nobody has claimed yet; 0 once stopped */
    PS_QUEUE_STATE      /* completed, stopped and finished, as in ps_queue_status */
} ps_queue_action;

/* An action under way. Results hold once it is complete. */
typedef struct {
    ps_queue_action action;
    int step;
    int64_t n_work_items, n_ranks;
    int64_t work_item, completed, remaining;
    bool stopped, finished;
    int64_t left, next, returned, retaken, number; /* read on the way */
} ps_queue_steps;

static inline int64_t ps_queue_n_counters(int64_t n_work_items) {
    return PS_QUEUE_SLOTS + n_work_items;
}

/* work item: for PS_QUEUE_GIVE_BACK. *change: the first one wanted. */
void ps_queue_begin(ps_queue_steps *steps, ps_queue_action action, int64_t n_work_items, int64_t n_ranks, int64_t work_item,
                    ps_counter_change *change);
/* before: what the counter of the change last wanted held before it. True: *change is wanted next; false: the action is complete. */
bool ps_queue_go_on(ps_queue_steps *steps, int64_t before, ps_counter_change *change);

#endif
