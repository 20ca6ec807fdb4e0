#include <stdlib.h>

#include "cluster/stop.h"
#include "cluster/watchdog.h"
#include "tasks/reconstruct/odd_note.h"
#include "tasks/reconstruct/worker_parts.h"

/* odd: as in ps_loader_begin_filled. */
static ps_code begin_loading(ps_worker *w, int64_t work_item, const uint8_t *odd, ps_error *error) {
    if (w->loading == work_item && !odd) return PS_OK;
    ps_loader_cancel(w->work->loader);
    w->loading = -1;
    PS_TRY(ps_attempts_begin(w->work->attempts, w->work->work_items[work_item], error));
    PS_TRY(ps_loader_ignore(w->work->loader, w->work->run->groups[ps_worker_group_of(w, work_item)].bad, error));
    PS_TRY(ps_loader_begin_filled(w->work->loader, w->work->run->series.items[w->work->work_items[work_item]].source, odd, error));
    w->loading = work_item;
    return PS_OK;
}

ps_code ps_worker_read_ahead(ps_worker *w, ps_error *error) {
    int64_t remaining;
    bool suspect = false;
    if (ps_worker_tries_suspects(w) || w->n_next > 0) return PS_OK;
    if (w->ahead < 0) {
        PS_TRY(ps_queue_remaining(w->work->queue, &remaining, error));
        if (remaining <= w->work->cluster->n_ranks) return PS_OK;
        PS_TRY(ps_queue_claim(w->work->queue, &w->ahead, error));
    }
    if (w->ahead >= 0) PS_TRY(ps_worker_is_suspect(w, w->ahead, &suspect, error));
    return w->ahead < 0 || suspect ? PS_OK : begin_loading(w, w->ahead, NULL, error);
}

/* Leaves an active pixel out of this frame. */
static ps_code exclude(const ps_worker *w, ps_item *it, int32_t pixel, ps_error *error) {
    if (!it->extra_bad) it->extra_bad = calloc((size_t)(w->work->run->detector_rows * w->work->run->detector_columns), 1);
    if (!it->extra_bad) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate a pixel mask");
    it->n_excluded += !it->extra_bad[pixel];
    it->extra_bad[pixel] = 1;
    return PS_OK;
}

static ps_code put_chunks(ps_worker *w, ps_item *it, ps_error *error) {
    for (;;) {
        ps_loader_chunk chunk;
        bool end;
        ps_watchdog_beat("read", (long)it->frame);
        PS_TRY(ps_loader_next(w->work->loader, &chunk, &end, error));
        if (end) return PS_OK;
        if (ps_stop_wanted()) return PS_FAIL(error, PS_E_INTERRUPTED, "%s", ps_stop_reason());
        double begin_s = ps_seconds();
        ps_code code = ps_frame_upload(it->counts, chunk.first_position, chunk.n_positions, chunk.counts, error);
        it->seconds[PS_STAGE_PUT] += ps_seconds() - begin_s;
        ps_loader_release(w->work->loader);
        PS_TRY(code);
    }
}

static ps_code note_invalid_values(const ps_worker *w, ps_item *it, const ps_plan *plan, const int64_t *n_marked, ps_error *error) {
    for (int64_t i = 0; i < plan->desc.n_active; i++)
        if (n_marked[i] > 0) PS_TRY(exclude(w, it, plan->desc.active[i], error));
    return PS_OK;
}

/* Counts into the system. */
static ps_code put_recording(ps_worker *w, ps_item *it, ps_prepared_system *prepared, ps_error *error) {
    bool is_taken = false;
    if (it->is_loaded || (w->reads_packed && !it->odd)) PS_TRY(ps_item_put_packed(w, it, prepared, &is_taken, error));
    if (is_taken) return PS_OK;
    free(it->tally);
    it->tally = NULL;
    PS_TRY(ps_item_renew_counts(w, it, prepared, error));
    PS_TRY(begin_loading(w, it->work_item, it->odd, error));
    ps_code code = put_chunks(w, it, error);
    if (code != PS_OK) ps_loader_cancel(w->work->loader);
    it->seconds[PS_STAGE_READ] += ps_loader_seconds(w->work->loader);
    it->found = ps_loader_found(w->work->loader);
    w->loading = -1;
    return code;
}

/* Patterns that were not measured fail the frame, or are filled where the job allows it: with the counts once more. */
static ps_code look_at_patterns(ps_worker *w, ps_item *it, ps_error *error) {
    const ps_run_plan *run = w->work->run;
    ps_odd_patterns found;
    const ps_pattern_tally *tally = it->tally ? it->tally : ps_loader_tally(w->work->loader);
    PS_TRY(ps_odd_patterns_find(tally, run->scan_rows * run->scan_columns, it->found.n_pixels, run->scan_columns, &found, error));
    it->looked = true;
    it->seen.n_empty = found.n_empty;
    it->seen.n_marked_patterns = found.n_marked;
    if (!found.kind) return PS_OK;
    if (!w->work->job->series.allow_partial) {
        ps_code code = PS_FAIL(error, PS_E_INPUT, "%s; series.allow_partial fills them from their neighbours", found.text);
        ps_odd_patterns_free(&found);
        return code;
    }
    it->odd = found.kind;
    it->note = found.text;
    ps_log(PS_LOG_WARNING, "frame %lld: %s; they are filled from their neighbours", (long long)it->frame, found.text);
    return PS_OK;
}

ps_code ps_item_load(ps_worker *w, ps_item *it, ps_prepared_system *prepared, ps_error *error) {
    ps_code code = PS_OK;
    const ps_plan *plan = prepared->plan;
    int64_t n_before = it->n_excluded, *n_marked = malloc((size_t)plan->desc.n_active * sizeof *n_marked);
    free(it->mean);
    it->mean = malloc((size_t)plan->desc.n_active * sizeof *it->mean);
    PS_GO_ALLOC(error, n_marked);
    PS_GO_ALLOC(error, it->mean);
    PS_GO(put_recording(w, it, prepared, error));
    if (!it->looked) {
        PS_GO(look_at_patterns(w, it, error));
        if (it->odd) PS_GO(put_recording(w, it, prepared, error));
    }
    PS_GO(ps_frame_mean_counts(it->counts, it->mean, n_marked, error));
    PS_GO(note_invalid_values(w, it, plan, n_marked, error));
    if (it->n_excluded == n_before) PS_GO(ps_plan_dose(plan, it->mean, n_marked, &it->dose, error));
done:
    free(n_marked);
    return code;
}

/* Active pixels that are hot or dead in this recording, but not in the first of its group, are known before it is read. */
static ps_code exclude_own(const ps_worker *w, ps_item *it, const ps_plan *plan, ps_error *error) {
    const ps_run_frame *frame = &w->work->run->frames[it->frame];
    if (frame->n_own == 0) return PS_OK;
    for (int64_t i = 0, k = 0; i < plan->desc.n_active && k < frame->n_own; i++) { /* both ascend */
        while (k < frame->n_own && frame->own[k] < plan->desc.active[i]) k++;
        if (k < frame->n_own && frame->own[k] == plan->desc.active[i]) PS_TRY(exclude(w, it, plan->desc.active[i], error));
    }
    if (it->extra_bad)
        ps_log(PS_LOG_WARNING, "frame %lld: %lld active pixels are hot or dead in this recording and left out of this frame",
               (long long)it->frame, (long long)it->n_excluded);
    return PS_OK;
}

ps_code ps_worker_load(ps_worker *w, ps_item *const *items, int64_t n, ps_prepared_system *prepared, ps_item **ready, int64_t *n_ready,
                       ps_error *error) {
    *n_ready = 0;
    for (int64_t i = 0; i < n; i++) {
        ps_item *it = items[i];
        ps_error reason = {0};
        ps_code code = exclude_own(w, it, prepared->plan, &reason);
        if (code == PS_OK && it->extra_bad) continue;
        if (code == PS_OK) code = ps_item_load(w, it, prepared, &reason);
        if (code != PS_OK) {
            PS_TRY(ps_item_settle(w, it, code, &reason, error));
        } else if (it->extra_bad) {
            ps_frame_destroy(it->counts);
            it->counts = NULL;
        } else {
            ready[(*n_ready)++] = it;
        }
    }
    return PS_OK;
}
