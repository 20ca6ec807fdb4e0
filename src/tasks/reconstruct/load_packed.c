/* Recordings as they are packed, into frames of a backend that unpacks on its device: one at a time by the worker itself, or, ahead, by a
 * thread that fills the frames of the next batch while the worker computes this one. The thread touches its frames only: the worker makes
 * them, counts their attempts, and looks at them once the thread has ended. */
#include <omp.h>
#include <stdlib.h>

#include "cluster/stop.h"
#include "cluster/watchdog.h"
#include "plan/memory.h"
#include "tasks/reconstruct/worker_parts.h"

void ps_worker_plan_packed(ps_worker *w) {
    const ps_run_plan *run = w->work->run;
    w->shape = ps_run_loader_shape(w->work->job, run);
    w->reads_packed = w->work->job->unpacks_on_device &&
                      ps_backend_unpacks(w->work->ops, PS_PACKED_BSLZ4, run->dtype, run->detector_rows * run->detector_columns);
    w->loads_ahead = w->frames_at_once > 1;
}

static ps_code make_ready(const ps_worker *w, ps_item *it, ps_prepared_system *prepared, ps_error *error) {
    PS_TRY(ps_item_renew_counts(w, it, prepared, error));
    if (!it->tally) it->tally = malloc((size_t)w->shape.n_positions * sizeof *it->tally);
    if (!it->tally) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for tallies of patterns");
    return ps_attempts_begin(w->work->attempts, it->frame, error);
}

/* Any thread; what comes of it stands in the item. */
static void load(const ps_worker *w, ps_item *it, ps_packed_watch watch) {
    ps_packed_request request = {.ops = w->work->ops,
                                 .shape = &w->shape,
                                 .source = w->work->run->series.items[it->frame].source,
                                 .bad = w->work->run->groups[w->work->run->frames[it->frame].group].bad,
                                 .n_threads = w->work->n_readers,
                                 .watch = watch};
    ps_error_clear(&it->packed_failure);
    ps_packed_load(&request, it->counts, it->tally, &it->outcome, &it->packed_failure);
    it->is_loaded = true;
}

static bool goes_on(void *context) {
    ps_watchdog_beat("read", (long)((const ps_item *)context)->frame);
    return !ps_stop_wanted();
}

ps_code ps_item_put_packed(ps_worker *w, ps_item *it, ps_prepared_system *prepared, bool *is_taken, ps_error *error) {
    *is_taken = false;
    if (!it->is_loaded) {
        PS_TRY(make_ready(w, it, prepared, error));
        load(w, it, (ps_packed_watch){goes_on, it});
    }
    it->is_loaded = false;
    it->seconds[PS_STAGE_READ] += it->outcome.seconds;
    if (it->packed_failure.code == PS_E_INTERRUPTED) return PS_FAIL(error, PS_E_INTERRUPTED, "%s", ps_stop_reason());
    if (it->packed_failure.code != PS_OK) {
        if (error) *error = it->packed_failure;
        return it->packed_failure.code;
    }
    *is_taken = it->outcome.is_taken;
    w->reads_packed = w->reads_packed && it->outcome.is_packed;
    if (!*is_taken) ps_log(PS_LOG_INFO, "frame %lld is unpacked on the host: %s", (long long)it->frame, it->outcome.why);
    it->found = it->outcome.found;
    return PS_OK;
}

/* ---- ahead --------------------------------------------------------------------------------------------------------------------- */

static bool goes_on_ahead(void *context) {
    return !atomic_load((atomic_bool *)context) && !ps_stop_wanted();
}

static void *load_next(void *argument) {
    ps_worker *w = argument;
    omp_set_num_threads(w->n_threads);
    for (int64_t i = 0; i < w->n_next; i++)
        if (w->next[i].counts && goes_on_ahead(&w->gives_up)) load(w, &w->next[i], (ps_packed_watch){goes_on_ahead, &w->gives_up});
    return NULL;
}

/* A frame that leaves out pixels of its own needs another system. Without the memory for a frame none is loaded ahead any more: it and
 * those behind it are loaded when their turn comes. */
static ps_code make_next_ready(ps_worker *w, ps_prepared_system *prepared, ps_error *error) {
    for (int64_t i = 0; i < w->n_next; i++) {
        ps_item *it = &w->next[i];
        ps_error reason = {0};
        if (w->work->run->frames[it->frame].n_own > 0) continue;
        ps_code code = make_ready(w, it, prepared, &reason);
        if (code == PS_E_MEMORY) {
            w->loads_ahead = false;
            if (it->counts) ps_frame_destroy(it->counts);
            it->counts = NULL;
            ps_log(PS_LOG_INFO, "frames are not loaded ahead any more: %s", reason.text);
            return PS_OK;
        }
        if (code != PS_OK) return PS_FAIL(error, code, "%s", reason.text);
    }
    return PS_OK;
}

ps_code ps_worker_load_ahead(ps_worker *w, ps_prepared_system *prepared, ps_error *error) {
    if (w->n_next == 0 || w->is_loading_ahead) return PS_OK;
    PS_TRY(make_next_ready(w, prepared, error));
    atomic_store(&w->gives_up, false);
    w->n_threads = omp_get_max_threads();
    w->is_loading_ahead = pthread_create(&w->thread, NULL, load_next, w) == 0;
    return PS_OK; /* without the thread they are loaded when their turn comes */
}

void ps_worker_join_ahead(ps_worker *w) {
    if (w->n_next > 0) ps_watchdog_beat("read", (long)w->next[0].frame);
    if (w->is_loading_ahead) pthread_join(w->thread, NULL);
    w->is_loading_ahead = false;
}

void ps_worker_abandon_ahead(ps_worker *w) {
    atomic_store(&w->gives_up, true);
    ps_worker_join_ahead(w);
    for (int64_t i = 0; i < w->n_next; i++) ps_item_forget(&w->next[i]);
}
