#include "tasks/reconstruct/worker.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cluster/stop.h"
#include "cluster/watchdog.h"
#include "core/log.h"
#include "hdf5/lock.h"
#include "input/packed_load.h"
#include "plan/memory.h"
#include "tasks/reconstruct/blame.h"
#include "tasks/reconstruct/frame_solve.h"
#include "tasks/reconstruct/odd_note.h"

enum { MAX_BATCH = 32 };

/* A frame in hand. */
typedef struct {
    int64_t work_item, frame;
    ps_frame *counts;   /* NULL once dealt with, or not yet loaded */
    double *mean;       /* [n_active] of the system it was loaded into */
    uint8_t *extra_bad; /* [detector pixels] where it holds invalid-count values, or is hot or dead in this frame only; NULL: nowhere */
    int64_t n_excluded;
    uint8_t *odd; /* [positions] ps_pattern_kind, once looked at; NULL: every pattern is good */
    char *note;   /* on what was filled; NULL: nothing */
    bool looked;
    ps_frame_seen seen;
    ps_loader_findings found;
    double dose;
    double seconds[PS_N_STAGES];
    bool completed;
} item;

typedef struct {
    const ps_work *work;
    ps_system_cache cache;
    ps_frame_solver *solver;
    ps_progress *progress;
    ps_work_summary *summary;
    item batch[MAX_BATCH];
    int64_t n_batch;
    int64_t frames_at_once; /* as planned, and fewer once an allocation has failed */
    int64_t ahead;          /* a place taken for the next batch; -1: none */
    int64_t loading;        /* the place the loader reads; -1: idle */
    bool reads_packed;      /* recordings are handed to the backend as they are; once one cannot be, all are read as counts */
    ps_loader_shape shape;
    ps_pattern_tally *packed_tally; /* [positions] with reads_packed */
    const ps_pattern_tally *tally;  /* of the recording put last */
} worker;

static int64_t group_of(const worker *w, int64_t work_item) {
    return w->work->run->frames[w->work->work_items[work_item]].group;
}

static void forget_item(item *it) {
    if (it->counts) ps_frame_destroy(it->counts);
    free(it->mean);
    free(it->extra_bad);
    free(it->odd);
    free(it->note);
    it->counts = NULL;
    it->mean = NULL;
    it->extra_bad = NULL;
    it->odd = NULL;
    it->note = NULL;
}

/* ---- what becomes of a frame -------------------------------------------------------------------------------------------------- */

static ps_code complete(worker *w, item *it, ps_error *error) {
    int64_t completed;
    it->completed = true;
    forget_item(it);
    PS_TRY(ps_attempts_end(w->work->attempts, it->frame, error));
    PS_TRY(ps_queue_complete(w->work->queue, &completed, error));
    ps_progress_update(w->progress, completed, NULL);
    return PS_OK;
}

static ps_code fail_item(worker *w, item *it, const ps_error *reason, ps_error *error) {
    const char *source = w->work->run->series.items[it->frame].source;
    ps_log(PS_LOG_ERROR, "frame %lld (%s) failed: %s", (long long)it->frame, source, reason->text);
    ps_hdf5_lock();
    ps_code code = ps_output_write_seen(w->work->output, it->frame, &it->seen, error);
    if (code == PS_OK) code = ps_output_fail_frame(w->work->output, it->frame, reason->text, error);
    ps_hdf5_unlock();
    PS_TRY(code);
    w->summary->n_failed++;
    w->summary->n_unread += reason->code == PS_E_INPUT || reason->code == PS_E_IO || reason->code == PS_E_HDF5;
    return complete(w, it, error);
}

/* An error met with a frame in hand fails the frame or is returned, to end this rank's work: see reconstruct/blame.h. */
static ps_code settle(worker *w, item *it, ps_code code, const ps_error *reason, ps_error *error) {
    if (ps_blames_frame(code)) return fail_item(w, it, reason, error);
    if (error) *error = *reason;
    return code;
}

/* ---- taking and loading ------------------------------------------------------------------------------------------------------- */

static ps_code take(worker *w, int64_t *work_item, ps_error *error) {
    *work_item = w->ahead;
    w->ahead = -1;
    if (*work_item >= 0) return PS_OK;
    return ps_queue_claim(w->work->queue, work_item, error);
}

static bool tries_suspects(const worker *w) {
    return w->work->suspects == NULL;
}

/* *suspect: the frame was begun before and never ended. */
static ps_code is_suspect(const worker *w, int64_t work_item, bool *suspect, ps_error *error) {
    int64_t n_attempts = 0;
    PS_TRY(ps_attempts_count(w->work->attempts, w->work->work_items[work_item], &n_attempts, error));
    *suspect = n_attempts > 0;
    return PS_OK;
}

/* A suspect among other frames, which a lost rank gave back: it is tried when they are done. */
static ps_code leave_for_later(worker *w, int64_t work_item, ps_error *error) {
    int64_t completed;
    w->work->suspects[w->work->work_items[work_item]] = 1;
    return ps_queue_complete(w->work->queue, &completed, error);
}

/* The one suspect that is tried now, on all ranks; none while another rank tries one. */
static ps_code take_suspect(worker *w, ps_error *error) {
    bool entered;
    int64_t work_item;
    w->n_batch = 0;
    PS_TRY(ps_attempts_enter(w->work->attempts, &entered, error));
    if (!entered) return PS_OK;
    PS_TRY(take(w, &work_item, error));
    if (work_item < 0) return ps_attempts_leave(w->work->attempts, error);
    w->batch[w->n_batch++] = (item){.work_item = work_item, .frame = w->work->work_items[work_item]};
    return PS_OK;
}

static ps_code claim_batch(worker *w, ps_error *error) {
    int64_t work_item, remaining;
    bool suspect;
    if (tries_suspects(w)) return take_suspect(w, error);
    w->n_batch = 0;
    PS_TRY(ps_queue_remaining(w->work->queue, &remaining, error));
    int64_t fair = remaining / (2 * w->work->cluster->n_ranks) + 1;
    int64_t most = w->frames_at_once < fair ? w->frames_at_once : fair;
    if (most > MAX_BATCH) most = MAX_BATCH;
    while (w->n_batch < most) {
        PS_TRY(take(w, &work_item, error));
        if (work_item < 0) break;
        PS_TRY(is_suspect(w, work_item, &suspect, error));
        if (suspect) {
            PS_TRY(leave_for_later(w, work_item, error));
            continue;
        }
        if (w->n_batch > 0 && group_of(w, work_item) != group_of(w, w->batch[0].work_item)) {
            w->ahead = work_item;
            break;
        }
        int64_t frame = w->work->work_items[work_item];
        w->batch[w->n_batch++] =
            (item){.work_item = work_item, .frame = frame, .seen = ps_run_seen_frame(&w->work->run->frames[frame].seen)};
    }
    return PS_OK;
}

/* odd: as in ps_loader_begin_filled. */
static ps_code begin_loading(worker *w, int64_t work_item, const uint8_t *odd, ps_error *error) {
    if (w->loading == work_item && !odd) return PS_OK;
    ps_loader_cancel(w->work->loader);
    w->loading = -1;
    PS_TRY(ps_attempts_begin(w->work->attempts, w->work->work_items[work_item], error));
    PS_TRY(ps_loader_ignore(w->work->loader, w->work->run->groups[group_of(w, work_item)].bad, error));
    PS_TRY(ps_loader_begin_filled(w->work->loader, w->work->run->series.items[w->work->work_items[work_item]].source, odd, error));
    w->loading = work_item;
    return PS_OK;
}

/* Starts reading the next batch's first frame while this batch is computed, unless other ranks are about to run dry. */
static ps_code read_ahead(worker *w, ps_error *error) {
    int64_t remaining;
    bool suspect = false;
    if (tries_suspects(w) || w->reads_packed) return PS_OK;
    if (w->ahead < 0) {
        PS_TRY(ps_queue_remaining(w->work->queue, &remaining, error));
        if (remaining <= w->work->cluster->n_ranks) return PS_OK;
        PS_TRY(ps_queue_claim(w->work->queue, &w->ahead, error));
    }
    if (w->ahead >= 0) PS_TRY(is_suspect(w, w->ahead, &suspect, error));
    return w->ahead < 0 || suspect ? PS_OK : begin_loading(w, w->ahead, NULL, error);
}

/* Leaves an active pixel out of this frame. */
static ps_code exclude(const worker *w, item *it, int32_t pixel, ps_error *error) {
    if (!it->extra_bad) it->extra_bad = calloc((size_t)(w->work->run->detector_rows * w->work->run->detector_columns), 1);
    if (!it->extra_bad) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate a pixel mask");
    it->n_excluded += !it->extra_bad[pixel];
    it->extra_bad[pixel] = 1;
    return PS_OK;
}

static ps_code put_chunks(worker *w, item *it, ps_error *error) {
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

static ps_code note_invalid_values(const worker *w, item *it, const ps_plan *plan, const int64_t *n_marked, ps_error *error) {
    for (int64_t i = 0; i < plan->desc.n_active; i++)
        if (n_marked[i] > 0) PS_TRY(exclude(w, it, plan->desc.active[i], error));
    return PS_OK;
}

static ps_code renew_counts(const worker *w, item *it, ps_prepared_system *prepared, ps_error *error) {
    if (it->counts) ps_frame_destroy(it->counts);
    it->counts = NULL;
    return ps_frame_create(prepared->system, w->work->run->dtype, &it->counts, error);
}

static bool goes_on(void *context) {
    ps_watchdog_beat("read", (long)((const item *)context)->frame);
    return !ps_stop_wanted();
}

/* The recording as it is packed; *is_taken false: it is to be read as counts. */
static ps_code put_packed(worker *w, item *it, bool *is_taken, ps_error *error) {
    ps_packed_outcome outcome;
    ps_packed_request request = {.ops = w->work->ops,
                                 .shape = &w->shape,
                                 .source = w->work->run->series.items[it->frame].source,
                                 .bad = w->work->run->groups[group_of(w, it->work_item)].bad,
                                 .watch = {goes_on, it}};
    *is_taken = false;
    PS_TRY(ps_attempts_begin(w->work->attempts, it->frame, error));
    ps_code code = ps_packed_load(&request, it->counts, w->packed_tally, &outcome, error);
    it->seconds[PS_STAGE_READ] += outcome.seconds;
    if (code == PS_E_INTERRUPTED) return PS_FAIL(error, code, "%s", ps_stop_reason());
    PS_TRY(code);
    *is_taken = outcome.is_taken;
    if (!*is_taken) ps_log(PS_LOG_INFO, "frame %lld is unpacked on the host: %s", (long long)it->frame, outcome.why);
    w->reads_packed = *is_taken;
    w->tally = w->packed_tally;
    it->found = outcome.found;
    return PS_OK;
}

/* Counts into the system. */
static ps_code put_recording(worker *w, item *it, ps_prepared_system *prepared, ps_error *error) {
    bool is_taken = false, tries_packed = w->reads_packed && !it->odd;
    PS_TRY(renew_counts(w, it, prepared, error));
    if (tries_packed) PS_TRY(put_packed(w, it, &is_taken, error));
    if (is_taken) return PS_OK;
    if (tries_packed) PS_TRY(renew_counts(w, it, prepared, error));
    PS_TRY(begin_loading(w, it->work_item, it->odd, error));
    ps_code code = put_chunks(w, it, error);
    if (code != PS_OK) ps_loader_cancel(w->work->loader);
    it->seconds[PS_STAGE_READ] += ps_loader_seconds(w->work->loader);
    it->found = ps_loader_found(w->work->loader);
    w->tally = ps_loader_tally(w->work->loader);
    w->loading = -1;
    return code;
}

/* Patterns that were not measured fail the frame, or are filled where the job allows it: with the counts once more. */
static ps_code look_at_patterns(worker *w, item *it, ps_error *error) {
    const ps_run_plan *run = w->work->run;
    ps_odd_patterns found;
    PS_TRY(ps_odd_patterns_find(w->tally, run->scan_rows * run->scan_columns, it->found.n_pixels, run->scan_columns, &found, error));
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

/* Counts into the system, then mean, invalid-count values and dose. A frame with invalid-count values keeps extra_bad and is to be loaded
 * again without them. */
static ps_code load_item(worker *w, item *it, ps_prepared_system *prepared, ps_error *error) {
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

/* ---- computing ---------------------------------------------------------------------------------------------------------------- */

static ps_code write_prepared(const worker *w, const ps_prepared_system *prepared, bool *write_failed, ps_error *error) {
    ps_device_info info = {0};
    bool poisson = w->work->job->weights == PS_WEIGHTS_POISSON;
    ps_output_prepared record = {.weights = prepared->weights,
                                 .dose = poisson ? prepared->dose : 0,
                                 .scale_phase = NAN,
                                 .scale_complex_amplitude = NAN,
                                 .scale_complex_phase = NAN};
    ps_backend_info(w->work->backend, &info);
    record.backend = w->work->ops->name;
    record.precision = info.precision;
    if (w->cache.methods & PS_METHOD_PHASE) PS_TRY(ps_system_scales(prepared->system, PS_METHOD_PHASE, NULL, &record.scale_phase, error));
    if (w->cache.methods & PS_METHOD_COMPLEX)
        PS_TRY(ps_system_scales(prepared->system, PS_METHOD_COMPLEX, &record.scale_complex_amplitude, &record.scale_complex_phase, error));
    ps_hdf5_lock();
    ps_code code = ps_output_write_prepared(w->work->output, prepared->group, &record, error);
    ps_hdf5_unlock();
    *write_failed = code != PS_OK && !ps_output_blames_frame(code);
    return code;
}

/* *write_failed: the error is the output's, not the frame's. */
static ps_code prepare(worker *w, item *it, ps_prepared_system *prepared, bool *write_failed, ps_error *error) {
    if (prepared->is_prepared) return PS_OK;
    double begin_s = ps_seconds();
    ps_watchdog_beat("prepare", (long)it->frame);
    PS_TRY(ps_system_cache_prepare(&w->cache, prepared, it->mean, error));
    it->seconds[PS_STAGE_PREPARE] += ps_seconds() - begin_s;
    if (prepared->extra_bad || prepared->is_recorded) return PS_OK;
    ps_code code = write_prepared(w, prepared, write_failed, error);
    if (code != PS_OK) prepared->is_prepared = false; /* the next frame is to write it, or to meet the same error */
    return code;
}

static ps_code reduce(item *const *items, int64_t n, ps_error *error) {
    ps_frame *frames[MAX_BATCH];
    double dose[MAX_BATCH], begin_s = ps_seconds();
    for (int64_t i = 0; i < n; i++) {
        frames[i] = items[i]->counts;
        dose[i] = items[i]->dose;
    }
    ps_watchdog_beat("reduce", (long)items[0]->frame);
    PS_TRY(ps_frame_reduce(frames, n, dose, error));
    for (int64_t i = 0; i < n; i++) items[i]->seconds[PS_STAGE_REDUCE] += (ps_seconds() - begin_s) / (double)n;
    return PS_OK;
}

static int64_t peak_memory_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

/* Solves and writes a reduced frame. *write_failed: the error is the output's, not the frame's. */
static ps_code finish(worker *w, item *it, const ps_plan *plan, bool *write_failed, ps_error *error) {
    const char *note = it->note;
    char both[PS_ODD_NOTE];
    if (it->note && w->work->note) {
        snprintf(both, sizeof both, "%s; %s", w->work->note, it->note);
        note = both;
    }
    ps_frame_result result = {.dose = it->dose,
                              .n_excluded = it->n_excluded,
                              .n_saturated = it->found.invalid.n_saturated,
                              .n_negative = it->found.invalid.n_negative,
                              .n_nonfinite = it->found.invalid.n_nonfinite,
                              .n_missing = it->found.n_missing,
                              .device = w->work->device,
                              .note = note ? note : w->work->note};
    double n_data = (double)plan->desc.n_active * ((double)plan->desc.scan_rows * (double)plan->desc.scan_columns - 1);
    ps_watchdog_beat("solve", (long)it->frame);
    PS_TRY(ps_frame_solve(w->solver, it->counts, n_data, &result, error));
    for (int s = 0; s < PS_N_STAGES; s++) result.seconds[s] += it->seconds[s];
    result.peak_memory_bytes = peak_memory_bytes();
    ps_watchdog_beat("write", (long)it->frame);
    ps_hdf5_lock();
    ps_code code = ps_output_write_seen(w->work->output, it->frame, &it->seen, error);
    if (code == PS_OK) code = ps_output_write_frame(w->work->output, it->frame, &result, error);
    ps_hdf5_unlock();
    *write_failed = code != PS_OK && !ps_output_blames_frame(code);
    PS_TRY(code);
    w->summary->n_done++;
    return complete(w, it, error);
}

/* Reduces, solves and writes items; the frames' own errors fail the frame they belong to. */
static ps_code compute(worker *w, item *const *items, int64_t n, ps_prepared_system *prepared, ps_error *error) {
    ps_error reason = {0};
    bool write_failed = false;
    ps_code code = prepare(w, items[0], prepared, &write_failed, &reason);
    if (code == PS_OK && !ps_stop_wanted()) code = reduce(items, n, &reason);
    if (code == PS_OK && ps_stop_wanted()) code = PS_FAIL(&reason, PS_E_INTERRUPTED, "%s", ps_stop_reason());
    if (code != PS_OK && n > 1 && !write_failed && ps_blames_frame(code)) { /* one of them: find out which */
        for (int64_t i = 0; i < n; i++) PS_TRY(compute(w, &items[i], 1, prepared, error));
        return PS_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        if (code == PS_OK) code = finish(w, items[i], prepared->plan, &write_failed, &reason);
        if (write_failed) {
            if (error) *error = reason;
            return code;
        }
        if (code != PS_OK) PS_TRY(settle(w, items[i], code, &reason, error));
        code = PS_OK;
        ps_error_clear(&reason);
    }
    return PS_OK;
}

static void say_excluded(const item *it) {
    const ps_invalid_counts *invalid = &it->found.invalid;
    ps_log(
        PS_LOG_WARNING,
        "frame %lld: %lld active pixels hold no count at some positions and are left out of this frame (in the whole recording %lld values "
        "are saturated, %lld negative, %lld not finite)",
        (long long)it->frame, (long long)it->n_excluded, (long long)invalid->n_saturated, (long long)invalid->n_negative,
        (long long)invalid->n_nonfinite);
}

/* A frame that leaves more pixels out than its group: its own system without them, and the counts into that. Markers that these counts turn
 * out to hold make it one more round. */
static ps_code compute_per_frame(worker *w, item *it, ps_error *error) {
    ps_prepared_system *prepared = NULL;
    ps_error reason = {0};
    ps_code code = PS_OK;
    int64_t n_before;
    if (it->looked) say_excluded(it);
    do {
        n_before = it->n_excluded;
        if (it->counts) ps_frame_destroy(it->counts);
        it->counts = NULL;
        code = ps_system_cache_get(&w->cache, group_of(w, it->work_item), it->extra_bad, &prepared, &reason);
        if (code == PS_OK) code = load_item(w, it, prepared, &reason);
        if (code == PS_OK && it->n_excluded > n_before) say_excluded(it);
    } while (code == PS_OK && it->n_excluded > n_before);
    return code == PS_OK ? compute(w, &it, 1, prepared, error) : settle(w, it, code, &reason, error);
}

/* Active pixels that are hot or dead in this recording, but not in the first of its group, are known before it is read. */
static ps_code exclude_own(const worker *w, item *it, const ps_plan *plan, ps_error *error) {
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

/* Loads frames into their group's system; *ready: those without invalid-count values. */
static ps_code load_all(worker *w, item *const *items, int64_t n, ps_prepared_system *prepared, item **ready, int64_t *n_ready,
                        ps_error *error) {
    *n_ready = 0;
    for (int64_t i = 0; i < n; i++) {
        item *it = items[i];
        ps_error reason = {0};
        ps_code code = exclude_own(w, it, prepared->plan, &reason);
        if (code == PS_OK && it->extra_bad) continue;
        if (code == PS_OK) code = load_item(w, it, prepared, &reason);
        if (code != PS_OK) {
            PS_TRY(settle(w, it, code, &reason, error));
        } else if (it->extra_bad) {
            ps_frame_destroy(it->counts);
            it->counts = NULL;
        } else {
            ready[(*n_ready)++] = it;
        }
    }
    return PS_OK;
}

/* Frames of one group from their recordings to the output. PS_E_MEMORY leaves some of them as they are, not completed. */
static ps_code attempt(worker *w, item *const *items, int64_t n, ps_error *error) {
    item *ready[MAX_BATCH];
    int64_t n_ready;
    ps_prepared_system *prepared = NULL;
    ps_error reason = {0};
    ps_code code = ps_system_cache_get(&w->cache, group_of(w, items[0]->work_item), NULL, &prepared, &reason);
    if (code != PS_OK) {
        for (int64_t i = 0; i < n; i++) PS_TRY(settle(w, items[i], code, &reason, error));
        return PS_OK;
    }
    PS_TRY(load_all(w, items, n, prepared, ready, &n_ready, error));
    PS_TRY(read_ahead(w, error));
    if (n_ready > 0) PS_TRY(compute(w, ready, n_ready, prepared, error));
    for (int64_t i = 0; i < n; i++)
        if (items[i]->extra_bad) PS_TRY(compute_per_frame(w, items[i], error));
    return PS_OK;
}

/* Puts down the frames that are not done, which come first in items then, and frees what is kept for later. Returns how many. */
static int64_t make_room(worker *w, item **items, int64_t n) {
    int64_t n_left = 0;
    for (int64_t i = 0; i < n; i++) {
        if (items[i]->completed) continue;
        forget_item(items[i]);
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
static ps_code process(worker *w, item **items, int64_t n, bool again, ps_error *error) {
    ps_error reason = {0};
    ps_code code = attempt(w, items, n, &reason);
    if (code == PS_OK) return PS_OK;
    if (code != PS_E_MEMORY) return PS_FAIL(error, code, "%s", reason.text);
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

static ps_code process_batch(worker *w, ps_error *error) {
    item *items[MAX_BATCH];
    for (int64_t i = 0; i < w->n_batch; i++) items[i] = &w->batch[i];
    return process(w, items, w->n_batch, false, error);
}

/* A suspect, with nothing else in hand on any rank; one that was begun too often is not begun again. */
static ps_code process_suspect(worker *w, ps_error *error) {
    ps_error reason = {0};
    int64_t n = 0, frame = w->batch[0].frame;
    PS_TRY(ps_attempts_count(w->work->attempts, frame, &n, error));
    if (n >= PS_MOST_ATTEMPTS) {
        PS_FAIL(
            &reason, PS_E_DEVICE,
            "began %lld times and never ended: killed its process or device, or found no memory; --resume --retry-failed tries it again",
            (long long)n);
        PS_TRY(fail_item(w, &w->batch[0], &reason, error));
    } else {
        ps_log(PS_LOG_INFO, "frame %lld was begun before and never ended: it is tried alone", (long long)frame);
        PS_TRY(process_batch(w, error));
    }
    return ps_attempts_leave(w->work->attempts, error);
}

/* ---- the loop ----------------------------------------------------------------------------------------------------------------- */

/* Gives back what this rank holds and leaves; the others go on. */
static ps_code hand_over(worker *w, ps_error *error) {
    w->summary->lost = true;
    for (int64_t i = 0; i < w->n_batch; i++)
        if (!w->batch[i].completed) PS_TRY(ps_queue_give_back(w->work->queue, w->batch[i].work_item, error));
    if (w->ahead >= 0) PS_TRY(ps_queue_give_back(w->work->queue, w->ahead, error));
    return ps_queue_leave(w->work->queue, error);
}

/* Tells the others that this rank ends early. Where MPI fails they would wait for its frames for ever, so all end. */
static void end_early(worker *w, ps_code code, const ps_error *reason) {
    ps_code told = code;
    if (code == PS_E_INTERRUPTED)
        told = ps_queue_stop(w->work->queue, NULL);
    else if (code != PS_E_MPI)
        told = hand_over(w, NULL);
    if (told == PS_OK) return;
    ps_log(PS_LOG_ERROR, "this rank cannot go on and cannot tell the others: all ranks end, --resume goes on: %s", reason->text);
    MPI_Abort(w->work->cluster->communicator, ps_code_exit_status(told));
}

/* Nothing to take now: waits until something is given back or all is finished. */
static ps_code wait_for_others(worker *w, bool *finished, ps_error *error) {
    const struct timespec pause = {.tv_nsec = 20000000};
    ps_queue_status status;
    ps_watchdog_beat("waiting for other ranks", -1);
    PS_TRY(ps_queue_state(w->work->queue, &status, error));
    ps_progress_update(w->progress, status.completed, NULL);
    *finished = status.finished;
    if (status.stopped) return PS_FAIL(error, PS_E_INTERRUPTED, "another rank was told to stop");
    if (!*finished) nanosleep(&pause, NULL);
    return PS_OK;
}

static ps_code work_loop(worker *w, ps_error *error) {
    bool finished = false;
    while (!finished) {
        if (ps_stop_wanted()) return PS_FAIL(error, PS_E_INTERRUPTED, "%s", ps_stop_reason());
        PS_TRY(claim_batch(w, error));
        if (w->n_batch == 0)
            PS_TRY(wait_for_others(w, &finished, error));
        else
            PS_TRY(tries_suspects(w) ? process_suspect(w, error) : process_batch(w, error));
        for (int64_t i = 0; i < w->n_batch; i++) forget_item(&w->batch[i]);
    }
    return PS_OK;
}

/* Whether the backend may be handed recordings as they are. */
static ps_code plan_packed(worker *w, ps_error *error) {
    const ps_run_plan *run = w->work->run;
    w->shape = ps_run_loader_shape(w->work->job, run);
    w->reads_packed = ps_backend_unpacks(w->work->ops, PS_PACKED_BSLZ4, run->dtype, run->detector_rows * run->detector_columns);
    if (!w->reads_packed) return PS_OK;
    w->packed_tally = malloc((size_t)w->shape.n_positions * sizeof *w->packed_tally);
    return w->packed_tally ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for tallies of patterns");
}

ps_code ps_work_through(const ps_work *work, ps_work_summary *summary, ps_error *error) {
    worker w = {.work = work, .summary = summary, .frames_at_once = work->frames_per_batch, .ahead = -1, .loading = -1};
    ps_error reason = {0};
    *summary = (ps_work_summary){0};
    ps_error ignored = {0};
    ps_system_cache_init(&w.cache, work->job, work->run, work->measured, work->group_mean, work->backend);
    w.cache.two_systems = work->two_systems;
    if (work->cluster->rank == 0) w.progress = ps_progress_begin("reconstructing", work->n_work_items, 10);
    ps_code code = ps_frame_solver_create(work->job, work->run->image_rows, work->run->image_columns, &w.solver, &reason);
    if (code == PS_OK) code = plan_packed(&w, &reason);
    if (code == PS_OK) code = work_loop(&w, &reason);
    ps_attempts_give_up(work->attempts, code != PS_E_DEVICE && code != PS_E_BACKEND && code != PS_E_MEMORY, &ignored);
    if (code != PS_OK) end_early(&w, code, &reason);
    if (code != PS_OK && error) *error = reason;
    for (int64_t i = 0; i < w.n_batch; i++) forget_item(&w.batch[i]);
    ps_loader_cancel(work->loader);
    ps_progress_end(w.progress);
    ps_frame_solver_destroy(w.solver);
    free(w.packed_tally);
    ps_system_cache_free(&w.cache);
    return code;
}
