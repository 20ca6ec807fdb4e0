#include <string.h>

#include "cluster/queue.h"
#include "tasks/reconstruct/worker_parts.h"

int64_t ps_worker_group_of(const ps_worker *w, int64_t work_item) {
    return w->work->run->frames[w->work->work_items[work_item]].group;
}

static ps_code take(ps_worker *w, int64_t *work_item, ps_error *error) {
    *work_item = w->ahead;
    w->ahead = -1;
    if (*work_item >= 0) return PS_OK;
    return ps_queue_claim(w->work->queue, work_item, error);
}

bool ps_worker_tries_suspects(const ps_worker *w) {
    return w->work->suspects == NULL;
}

ps_code ps_worker_is_suspect(const ps_worker *w, int64_t work_item, bool *suspect, ps_error *error) {
    int64_t n_attempts = 0;
    PS_TRY(ps_attempts_count(w->work->attempts, w->work->work_items[work_item], &n_attempts, error));
    *suspect = n_attempts > 0;
    return PS_OK;
}

/* A suspect among other frames, which a lost rank gave back: it is tried when they are done. */
static ps_code leave_for_later(ps_worker *w, int64_t work_item, ps_error *error) {
    int64_t completed;
    w->work->suspects[w->work->work_items[work_item]] = 1;
    return ps_queue_complete(w->work->queue, &completed, error);
}

/* The one suspect that is tried now, on all ranks; none while another rank tries one. */
static ps_code take_suspect(ps_worker *w, ps_error *error) {
    bool entered;
    int64_t work_item;
    w->n_batch = 0;
    PS_TRY(ps_attempts_enter(w->work->attempts, &entered, error));
    if (!entered) return PS_OK;
    PS_TRY(take(w, &work_item, error));
    if (work_item < 0) return ps_attempts_leave(w->work->attempts, error);
    w->batch[w->n_batch++] = (ps_item){.work_item = work_item, .frame = w->work->work_items[work_item]};
    return PS_OK;
}

/* As many frames of one group as `most` into items; group: -1: that of the first. */
static ps_code fill(ps_worker *w, ps_item *items, int64_t *n, int64_t most, int64_t group, ps_error *error) {
    int64_t work_item;
    bool suspect;
    while (*n < most) {
        PS_TRY(take(w, &work_item, error));
        if (work_item < 0) return PS_OK;
        PS_TRY(ps_worker_is_suspect(w, work_item, &suspect, error));
        if (suspect) {
            PS_TRY(leave_for_later(w, work_item, error));
            continue;
        }
        if (group < 0) group = ps_worker_group_of(w, work_item);
        if (ps_worker_group_of(w, work_item) != group) {
            w->ahead = work_item;
            return PS_OK;
        }
        int64_t frame = w->work->work_items[work_item];
        items[(*n)++] = (ps_item){.work_item = work_item, .frame = frame, .seen = ps_run_seen_frame(&w->work->run->frames[frame].seen)};
    }
    return PS_OK;
}

/* How many frames may be taken when `remaining` are left: memory holds two batches where one is loaded ahead. */
static int64_t most_frames(const ps_worker *w, int64_t remaining) {
    int64_t fair = remaining / (2 * w->work->cluster->n_ranks) + 1;
    int64_t held = w->reads_packed && w->loads_ahead ? w->frames_at_once / 2 : w->frames_at_once;
    int64_t most = held < fair ? held : fair;
    return most < PS_MOST_IN_HAND ? most : PS_MOST_IN_HAND;
}

ps_code ps_worker_claim(ps_worker *w, ps_error *error) {
    int64_t remaining;
    if (ps_worker_tries_suspects(w)) return take_suspect(w, error);
    if (w->n_next > 0) {
        memcpy(w->batch, w->next, (size_t)w->n_next * sizeof *w->batch);
        w->n_batch = w->n_next;
        w->n_next = 0;
        return PS_OK;
    }
    w->n_batch = 0;
    PS_TRY(ps_queue_remaining(w->work->queue, &remaining, error));
    return fill(w, w->batch, &w->n_batch, most_frames(w, remaining), -1, error);
}

ps_code ps_worker_claim_next(ps_worker *w, ps_error *error) {
    int64_t remaining;
    if (ps_worker_tries_suspects(w) || !w->loads_ahead || w->n_next > 0) return PS_OK;
    PS_TRY(ps_queue_remaining(w->work->queue, &remaining, error));
    if (w->ahead < 0 && remaining <= w->work->cluster->n_ranks) return PS_OK;
    return fill(w, w->next, &w->n_next, most_frames(w, remaining), ps_worker_group_of(w, w->batch[0].work_item), error);
}
