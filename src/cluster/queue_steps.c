#include "cluster/queue_steps.h"

#include "core/assert.h"

/* ---- what a step asks for ------------------------------------------------------------------------------------------------------ */

static bool ask(ps_queue_steps *steps, int step, ps_counter_change *change, ps_counter_change wanted) {
    steps->step = step;
    *change = wanted;
    return true;
}

static bool look(ps_queue_steps *steps, int step, int64_t at, ps_counter_change *change) {
    return ask(steps, step, change, (ps_counter_change){.operation = PS_COUNTER_READ, .at = at});
}

static bool add_one(ps_queue_steps *steps, int step, int64_t at, ps_counter_change *change) {
    return ask(steps, step, change, (ps_counter_change){.operation = PS_COUNTER_ADD, .at = at, .value = 1});
}

/* work item: -1 to empty the slot. */
static bool exchange(ps_queue_steps *steps, int step, int64_t work_item, ps_counter_change *change) {
    PS_ASSERT(steps->n_work_items > 0 && steps->number >= 0 && work_item >= -1 && work_item < steps->n_work_items);
    int64_t slot = PS_QUEUE_SLOTS + steps->number % steps->n_work_items;
    return ask(steps, step, change, (ps_counter_change){.operation = PS_COUNTER_REPLACE, .at = slot, .value = work_item + 1});
}

static bool complete(ps_queue_steps *steps, int64_t work_item) {
    steps->work_item = work_item;
    return false;
}

/* ---- the actions: `step` is the change whose outcome has come ------------------------------------------------------------------ */

enum {
    ASK_STOPPED,
    ASK_NEXT,
    CLAIM_NEXT,
    ASK_RETAKEN,
    ASK_RETURNED,
    EMPTY_SLOT,
    DRAW_NUMBER,
    FILL_SLOT,
    COUNT_RETAKEN,
    ASK_LEFT,
    ASK_RESOLVED,
    COUNT
};

static bool look_into_slots(ps_queue_steps *steps, int64_t returned, ps_counter_change *change) {
    steps->returned = returned;
    steps->number = returned - 1;
    if (returned <= steps->retaken) return complete(steps, -1);
    return exchange(steps, EMPTY_SLOT, -1, change);
}

static bool empty_next(ps_queue_steps *steps, ps_counter_change *change) {
    steps->number--;
    if (steps->number < 0 || steps->number < steps->returned - steps->n_work_items) return complete(steps, -1);
    return exchange(steps, EMPTY_SLOT, -1, change);
}

/* New work items first, then those given back. */
static bool take(ps_queue_steps *steps, int64_t before, ps_counter_change *change) {
    switch (steps->step) {
    case ASK_STOPPED: return before ? complete(steps, -1) : look(steps, ASK_NEXT, PS_QUEUE_NEXT, change);
    case ASK_NEXT:
        if (before < steps->n_work_items) return add_one(steps, CLAIM_NEXT, PS_QUEUE_NEXT, change);
        return look(steps, ASK_RETAKEN, PS_QUEUE_RETAKEN, change);
    case CLAIM_NEXT:
        if (before < steps->n_work_items) return complete(steps, before);
        return look(steps, ASK_RETAKEN, PS_QUEUE_RETAKEN, change); /* another rank was faster */
    case ASK_RETAKEN: steps->retaken = before; return look(steps, ASK_RETURNED, PS_QUEUE_RETURNED, change);
    case ASK_RETURNED: return look_into_slots(steps, before, change);
    case EMPTY_SLOT:
        if (before == 0) return empty_next(steps, change);
        steps->work_item = before - 1;
        return add_one(steps, COUNT_RETAKEN, PS_QUEUE_RETAKEN, change);
    default: return false;
    }
}

/* Goes round once more, with another work item, for as long as slots are full. */
static bool give_back(ps_queue_steps *steps, int64_t before, ps_counter_change *change) {
    switch (steps->step) {
    case ASK_STOPPED: return before ? false : add_one(steps, DRAW_NUMBER, PS_QUEUE_RETURNED, change);
    case DRAW_NUMBER: steps->number = before; return exchange(steps, FILL_SLOT, steps->work_item, change);
    case FILL_SLOT:
        if (before == 0) return false;
        steps->work_item = before - 1;
        return add_one(steps, COUNT_RETAKEN, PS_QUEUE_RETAKEN, change);
    default: return look(steps, ASK_STOPPED, PS_QUEUE_STOPPED, change);
    }
}

static bool remaining(ps_queue_steps *steps, int64_t before, ps_counter_change *change) {
    if (steps->step == ASK_STOPPED && !before) return look(steps, ASK_NEXT, PS_QUEUE_NEXT, change);
    steps->remaining = steps->step == ASK_NEXT && before < steps->n_work_items ? steps->n_work_items - before : 0;
    return false;
}

/* LEFT is read first: a rank gives back before it leaves, so what it gave back is seen after. */
static bool state(ps_queue_steps *steps, int64_t before, ps_counter_change *change) {
    switch (steps->step) {
    case ASK_LEFT: steps->left = before; return look(steps, ASK_STOPPED, PS_QUEUE_STOPPED, change);
    case ASK_STOPPED: steps->stopped = before != 0; return look(steps, ASK_NEXT, PS_QUEUE_NEXT, change);
    case ASK_NEXT: steps->next = before; return look(steps, ASK_RETAKEN, PS_QUEUE_RETAKEN, change);
    case ASK_RETAKEN: steps->retaken = before; return look(steps, ASK_RETURNED, PS_QUEUE_RETURNED, change);
    case ASK_RETURNED: steps->returned = before; return look(steps, ASK_RESOLVED, PS_QUEUE_COMPLETED, change);
    default: break;
    }
    bool is_alone = steps->left >= steps->n_ranks - 1;
    bool nothing_to_take = steps->next >= steps->n_work_items && steps->retaken >= steps->returned;
    steps->completed = before;
    steps->finished = steps->stopped || before >= steps->n_work_items || (is_alone && nothing_to_take);
    return false;
}

void ps_queue_begin(ps_queue_steps *steps, ps_queue_action action, int64_t n_work_items, int64_t n_ranks, int64_t work_item,
                    ps_counter_change *change) {
    PS_ASSERT(n_ranks > 0 && (action != PS_QUEUE_GIVE_BACK || (work_item >= 0 && work_item < n_work_items)));
    *steps = (ps_queue_steps){.action = action, .n_work_items = n_work_items, .n_ranks = n_ranks, .work_item = work_item};
    switch (action) {
    case PS_QUEUE_CLAIM:
    case PS_QUEUE_GIVE_BACK:
    case PS_QUEUE_REMAINING: look(steps, ASK_STOPPED, PS_QUEUE_STOPPED, change); break;
    case PS_QUEUE_STATE: look(steps, ASK_LEFT, PS_QUEUE_LEFT, change); break;
    case PS_QUEUE_COMPLETE: add_one(steps, COUNT, PS_QUEUE_COMPLETED, change); break;
    case PS_QUEUE_LEAVE: add_one(steps, COUNT, PS_QUEUE_LEFT, change); break;
    case PS_QUEUE_STOP: add_one(steps, COUNT, PS_QUEUE_STOPPED, change); break;
    }
}

bool ps_queue_go_on(ps_queue_steps *steps, int64_t before, ps_counter_change *change) {
    PS_ASSERT(before >= 0);
    switch (steps->action) {
    case PS_QUEUE_CLAIM: return take(steps, before, change);
    case PS_QUEUE_GIVE_BACK: return give_back(steps, before, change);
    case PS_QUEUE_REMAINING: return remaining(steps, before, change);
    case PS_QUEUE_STATE: return state(steps, before, change);
    default: steps->completed = before + 1; return false;
    }
}
