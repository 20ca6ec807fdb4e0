#include <malloc.h>
#include <time.h>

#include "cluster/queue.h"
#include "cluster/stop.h"
#include "cluster/watchdog.h"
#include "tasks/reconstruct/worker_parts.h"

/* Frames of one group from their recordings to the writer. PS_E_MEMORY leaves some of them as they are, not handed on. */
static ps_code attempt(ps_worker *w, ps_item *const *items, int64_t n, ps_error *error) {
    ps_item *ready[PS_MOST_IN_HAND];
    int64_t n_ready;
    ps_prepared_system *prepared = NULL;
    ps_error reason = {0};
    ps_code code = ps_system_cache_get(&w->cache, ps_worker_group_of(w, items[0]->work_item), NULL, &prepared, &reason);
    if (code != PS_OK) {
        for (int64_t i = 0; i < n; i++) PS_TRY(ps_item_settle(w, items[i], code, &reason, error));
        return PS_OK;
    }
    PS_TRY(ps_worker_load(w, items, n, prepared, ready, &n_ready, error));
    if (w->reads_packed) PS_TRY(ps_worker_claim_next(w, error));
    PS_TRY(w->reads_packed ? ps_worker_load_ahead(w, prepared, error) : ps_worker_read_ahead(w, error));
    if (n_ready > 0) PS_TRY(ps_worker_compute(w, ready, n_ready, prepared, error));
    for (int64_t i = 0; i < n; i++) {
        if (!items[i]->extra_bad) continue;
        ps_worker_abandon_ahead(w); /* memory for its system may be made by dropping the one that the next frames are loaded into */
        PS_TRY(ps_worker_compute_alone(w, items[i], error));
    }
    return PS_OK;
}

/* Puts down the frames that are not handed on, which come first in items then, and frees what is kept for later. Returns how many. */
static int64_t make_room(ps_worker *w, ps_item **items, int64_t n) {
    int64_t n_left = 0;
    ps_worker_abandon_ahead(w);
    w->loads_ahead = false;
    for (int64_t i = 0; i < n; i++) {
        if (items[i]->handed_on) continue;
        ps_item_forget(items[i]);
        items[i]->n_excluded = 0;
        items[i]->looked = false;
        items[n_left++] = items[i];
    }
    ps_system_cache_drop(&w->cache);
    malloc_trim(0);
    return n_left;
}

/* Attempts n frames; where memory does not do for them, half of them at a time, and a frame alone once more with everything else freed.
 * Where that does not do either, the rank ends: another may have more, and every frame of a group needs about as much. */
static ps_code process(ps_worker *w, ps_item **items, int64_t n, bool again, ps_error *error) {
    ps_error reason = {0};
    ps_code code = attempt(w, items, n, &reason);
    if (code == PS_OK) return PS_OK;
    if (code != PS_E_MEMORY || ps_writer_check(w->writer, NULL) != PS_OK) return PS_FAIL(error, code, "%s", reason.text);
    n = make_room(w, items, n);
    if (n == 0) return PS_OK;
    if (n == 1 && again)
        return PS_FAIL(error, PS_E_MEMORY, "no memory even for one frame at a time; fewer ranks on a node, or more memory, may do it: %s",
                       reason.text);
    int64_t half = (n + 1) / 2;
    if (w->frames_at_once > half) w->frames_at_once = half;
    ps_log(PS_LOG_WARNING, "not enough memory for frame %lld%s (%s): trying again with %lld at a time", (long long)items[0]->frame,
           n > 1 ? " and those with it" : "", reason.text, (long long)half);
    PS_TRY(process(w, items, half, n == 1, error));
    return n > half ? process(w, items + half, n - half, false, error) : PS_OK;
}

static ps_code process_batch(ps_worker *w, ps_error *error) {
    ps_item *items[PS_MOST_IN_HAND];
    for (int64_t i = 0; i < w->n_batch; i++) items[i] = &w->batch[i];
    return process(w, items, w->n_batch, false, error);
}

/* A suspect, with nothing else in hand on any rank; one that was begun too often is not begun again. */
static ps_code process_suspect(ps_worker *w, ps_error *error) {
    ps_error reason = {0};
    int64_t n = 0, frame = w->batch[0].frame;
    PS_TRY(ps_attempts_count(w->work->attempts, frame, &n, error));
    if (n >= PS_MOST_ATTEMPTS) {
        PS_FAIL(
            &reason, PS_E_DEVICE,
            "began %lld times and never ended: killed its process or device, or found no memory; --resume --retry-failed tries it again",
            (long long)n);
        PS_TRY(ps_item_fail(w, &w->batch[0], &reason, error));
    } else {
        ps_log(PS_LOG_INFO, "frame %lld was begun before and never ended: it is tried alone", (long long)frame);
        PS_TRY(process_batch(w, error));
    }
    PS_TRY(ps_writer_wait(w->writer, error));
    return ps_attempts_leave(w->work->attempts, error);
}

/* ---- the loop ----------------------------------------------------------------------------------------------------------------- */

/* Gives back what this rank holds and leaves; the others go on. The writer is stopped. */
static ps_code hand_over(ps_worker *w, ps_error *error) {
    w->summary->lost = true;
    if (w->writer) PS_TRY(ps_writer_give_back(w->writer, error));
    for (int64_t i = 0; i < w->n_batch; i++)
        if (!w->batch[i].handed_on) PS_TRY(ps_queue_give_back(w->work->queue, w->batch[i].work_item, error));
    for (int64_t i = 0; i < w->n_next; i++) PS_TRY(ps_queue_give_back(w->work->queue, w->next[i].work_item, error));
    if (w->ahead >= 0) PS_TRY(ps_queue_give_back(w->work->queue, w->ahead, error));
    return ps_queue_leave(w->work->queue, error);
}

/* Tells the others that this rank ends early. Where MPI fails they would wait for its frames for ever, so all end. */
static void end_early(ps_worker *w, ps_code code, const ps_error *reason) {
    ps_code told = code;
    if (code == PS_E_INTERRUPTED)
        told = ps_queue_stop(w->work->queue, NULL);
    else if (code != PS_E_MPI)
        told = hand_over(w, NULL);
    if (told == PS_OK) return;
    ps_log(PS_LOG_ERROR, "this rank cannot go on and cannot tell the others: all ranks end, --resume goes on: %s", reason->text);
    MPI_Abort(w->work->cluster->communicator, ps_code_exit_status(told));
}

/* Each look changes rank 0's counters a dozen times, which takes them some 40 microseconds: all ranks together look at most ten thousand
 * times a second, and one at most fifty times (docs/performance.md, "How cost grows"). */
static struct timespec pause_between_looks(int n_ranks) {
    long milliseconds = n_ranks < 200 ? 20 : n_ranks / 10;
    return (struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
}

/* Nothing to take now: waits until something is given back or all is finished. */
static ps_code wait_for_others(ps_worker *w, bool *finished, ps_error *error) {
    const struct timespec pause = pause_between_looks(w->work->cluster->n_ranks);
    ps_queue_status status;
    ps_watchdog_beat("waiting for other ranks", -1);
    PS_TRY(ps_queue_state(w->work->queue, &status, error));
    ps_writer_show(w->writer, status.completed);
    *finished = status.finished;
    if (status.stopped) return PS_FAIL(error, PS_E_INTERRUPTED, "another rank was told to stop");
    if (!*finished) nanosleep(&pause, NULL);
    return PS_OK;
}

static ps_code work_loop(ps_worker *w, ps_error *error) {
    bool finished = false;
    while (!finished) {
        PS_TRY(ps_writer_check(w->writer, error));
        if (ps_stop_wanted()) return PS_FAIL(error, PS_E_INTERRUPTED, "%s", ps_stop_reason());
        ps_worker_join_ahead(w);
        PS_TRY(ps_worker_claim(w, error));
        if (w->n_batch == 0)
            PS_TRY(wait_for_others(w, &finished, error));
        else
            PS_TRY(ps_worker_tries_suspects(w) ? process_suspect(w, error) : process_batch(w, error));
        for (int64_t i = 0; i < w->n_batch; i++) ps_item_forget(&w->batch[i]);
    }
    return PS_OK;
}

/* All that was computed is written, whatever ended the work. That it could not be is the reason then, unless there is another. */
static ps_code stop_writer(ps_worker *w, ps_code code, ps_error *reason) {
    ps_error writing = {0};
    if (!w->writer) return code;
    ps_code written = ps_writer_stop(w->writer, w->summary, &writing);
    if (written == PS_OK || (code != PS_OK && code != PS_E_INTERRUPTED)) return code;
    *reason = writing;
    return written;
}

ps_code ps_work_through(const ps_work *work, ps_work_summary *summary, ps_error *error) {
    ps_worker w = {.work = work, .summary = summary, .frames_at_once = work->frames_per_batch, .ahead = -1, .loading = -1};
    ps_error reason = {0};
    ps_progress *progress = NULL;
    *summary = (ps_work_summary){0};
    ps_error ignored = {0};
    ps_worker_plan_packed(&w);
    ps_system_cache_init(&w.cache, work->job, work->run, work->measured, work->group_mean, work->backend);
    w.cache.two_systems = work->two_systems;
    if (work->cluster->rank == 0) progress = ps_progress_begin("reconstructing", work->n_work_items, 10);
    ps_code code = ps_writer_create(work, progress, &w.writer, &reason);
    if (code == PS_OK) code = work_loop(&w, &reason);
    ps_worker_abandon_ahead(&w);
    if (code == PS_E_INTERRUPTED) ps_queue_stop(work->queue, &ignored); /* the others stop while this rank writes */
    code = stop_writer(&w, code, &reason);
    ps_attempts_give_up(work->attempts, code != PS_E_DEVICE && code != PS_E_BACKEND && code != PS_E_MEMORY, &ignored);
    if (code != PS_OK) end_early(&w, code, &reason);
    if (code != PS_OK && error) *error = reason;
    for (int64_t i = 0; i < w.n_batch; i++) ps_item_forget(&w.batch[i]);
    ps_loader_cancel(work->loader);
    ps_writer_destroy(w.writer);
    ps_progress_end(progress);
    ps_system_cache_free(&w.cache);
    return code;
}
