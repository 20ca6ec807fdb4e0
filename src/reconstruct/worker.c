#include "reconstruct/worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cluster/stop.h"
#include "cluster/watchdog.h"
#include "core/lock.h"
#include "core/log.h"
#include "reconstruct/frame_solve.h"

enum { MAX_BATCH = 32 };

/* A frame in hand. */
typedef struct {
    int64_t place, frame;
    ps_frame *counts;   /* NULL once dealt with, or not yet loaded */
    double *mean;       /* [n_active] of the system it was loaded into */
    uint8_t *extra_bad; /* [detector pixels] where it holds markers; NULL: nowhere */
    int64_t n_excluded;
    ps_loader_findings found;
    double dose;
    double seconds[PS_N_STAGES];
    bool resolved;
} item;

typedef struct {
    const ps_work *work;
    ps_system_cache cache;
    ps_frame_solver *solver;
    ps_progress *progress;
    ps_work_summary *summary;
    item batch[MAX_BATCH];
    int64_t n_batch;
    int64_t ahead;   /* a place taken for the next batch; -1: none */
    int64_t loading; /* the place the loader reads; -1: idle */
} worker;

static int64_t group_of(const worker *w, int64_t place) { return w->work->run->frames[w->work->places[place]].group; }

static void forget_item(item *it) {
    if (it->counts) ps_frame_destroy(it->counts);
    free(it->mean);
    free(it->extra_bad);
    it->counts = NULL;
    it->mean = NULL;
    it->extra_bad = NULL;
}

/* ---- what becomes of a frame -------------------------------------------------------------------------------------------------- */

static ps_code resolve(worker *w, item *it, ps_error *error) {
    int64_t resolved;
    it->resolved = true;
    forget_item(it);
    PS_TRY(ps_queue_resolve(w->work->queue, &resolved, error));
    ps_progress_update(w->progress, resolved, NULL);
    return PS_OK;
}

static ps_code fail_item(worker *w, item *it, const ps_error *reason, ps_error *error) {
    const char *source = w->work->run->series.items[it->frame].source;
    ps_log(PS_LOG_ERROR, "frame %lld (%s) failed: %s", (long long)it->frame, source, reason->text);
    ps_hdf5_lock();
    ps_code code = ps_output_fail_frame(w->work->output, it->frame, reason->text, error);
    ps_hdf5_unlock();
    PS_TRY(code);
    w->summary->n_failed++;
    w->summary->n_unread += reason->code == PS_E_INPUT || reason->code == PS_E_IO || reason->code == PS_E_HDF5;
    return resolve(w, it, error);
}

/* Errors that are the device's, not the frame's, end this rank's work. */
static bool is_frame_error(ps_code code) { return code != PS_E_DEVICE && code != PS_E_BACKEND && code != PS_E_INTERRUPTED && code != PS_E_MPI; }

/* ---- taking and loading ------------------------------------------------------------------------------------------------------- */

static ps_code take(worker *w, int64_t *place, ps_error *error) {
    *place = w->ahead;
    w->ahead = -1;
    if (*place >= 0) return PS_OK;
    return ps_queue_take(w->work->queue, place, error);
}

static ps_code take_batch(worker *w, ps_error *error) {
    int64_t place, remaining;
    w->n_batch = 0;
    PS_TRY(ps_queue_remaining(w->work->queue, &remaining, error));
    int64_t fair = remaining / (2 * w->work->cluster->n_ranks) + 1;
    int64_t most = w->work->frames_per_batch < fair ? w->work->frames_per_batch : fair;
    if (most > MAX_BATCH) most = MAX_BATCH;
    while (w->n_batch < most) {
        PS_TRY(take(w, &place, error));
        if (place < 0) break;
        if (w->n_batch > 0 && group_of(w, place) != group_of(w, w->batch[0].place)) {
            w->ahead = place;
            break;
        }
        w->batch[w->n_batch++] = (item){.place = place, .frame = w->work->places[place]};
    }
    return PS_OK;
}

static ps_code begin_loading(worker *w, int64_t place, ps_error *error) {
    if (w->loading == place) return PS_OK;
    ps_loader_cancel(w->work->loader);
    w->loading = -1;
    PS_TRY(ps_loader_begin(w->work->loader, w->work->run->series.items[w->work->places[place]].source, error));
    w->loading = place;
    return PS_OK;
}

/* Starts reading the next batch's first frame while this batch is computed, unless other ranks are about to run dry. */
static ps_code read_ahead(worker *w, ps_error *error) {
    int64_t remaining;
    if (w->ahead < 0) {
        PS_TRY(ps_queue_remaining(w->work->queue, &remaining, error));
        if (remaining <= w->work->cluster->n_ranks) return PS_OK;
        PS_TRY(ps_queue_take(w->work->queue, &w->ahead, error));
    }
    return w->ahead < 0 ? PS_OK : begin_loading(w, w->ahead, error);
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
        ps_code code = ps_frame_put(it->counts, chunk.first_position, chunk.n_positions, chunk.counts, error);
        it->seconds[PS_STAGE_PUT] += ps_seconds() - begin_s;
        ps_loader_release(w->work->loader);
        PS_TRY(code);
    }
}

static ps_code note_markers(const worker *w, item *it, const ps_plan *plan, const int64_t *n_marked, ps_error *error) {
    for (int64_t i = 0; i < plan->desc.n_active; i++)
        if (n_marked[i] > 0) PS_TRY(exclude(w, it, plan->desc.active[i], error));
    return PS_OK;
}

/* Counts into the system, then mean, markers and dose. A frame with markers keeps extra_bad and is to be loaded again without them. */
static ps_code load_item(worker *w, item *it, ps_prepared_system *prepared, ps_error *error) {
    ps_code code = PS_OK;
    const ps_plan *plan = prepared->plan;
    int64_t *n_marked = malloc((size_t)plan->desc.n_active * sizeof *n_marked);
    free(it->mean);
    it->mean = malloc((size_t)plan->desc.n_active * sizeof *it->mean);
    PS_GO_ALLOC(error, n_marked);
    PS_GO_ALLOC(error, it->mean);
    PS_GO(ps_frame_create(prepared->system, w->work->run->dtype, &it->counts, error));
    PS_GO(begin_loading(w, it->place, error));
    code = put_chunks(w, it, error);
    it->seconds[PS_STAGE_READ] += ps_loader_seconds(w->work->loader);
    it->found = ps_loader_found(w->work->loader);
    if (code != PS_OK) ps_loader_cancel(w->work->loader);
    w->loading = -1;
    if (code != PS_OK) goto done;
    if (it->extra_bad && !prepared->extra_bad) goto done; /* its means are not finite, and not needed */
    PS_GO(ps_frame_means(it->counts, it->mean, n_marked, error));
    PS_GO(note_markers(w, it, plan, n_marked, error));
    if (!it->extra_bad || prepared->extra_bad) PS_GO(ps_plan_dose(plan, it->mean, n_marked, &it->dose, error));
done:
    free(n_marked);
    return code;
}

/* ---- computing ---------------------------------------------------------------------------------------------------------------- */

static ps_code write_prepared(const worker *w, const ps_prepared_system *prepared, ps_error *error) {
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
    return code;
}

static ps_code prepare(worker *w, item *it, ps_prepared_system *prepared, ps_error *error) {
    if (prepared->is_prepared) return PS_OK;
    double begin_s = ps_seconds();
    ps_watchdog_beat("prepare", (long)it->frame);
    PS_TRY(ps_system_cache_prepare(&w->cache, prepared, it->mean, error));
    it->seconds[PS_STAGE_PREPARE] += ps_seconds() - begin_s;
    return prepared->extra_bad ? PS_OK : write_prepared(w, prepared, error);
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

/* Solves and writes a reduced frame. *written_failed: the error is the output's, not the frame's. */
static ps_code finish(worker *w, item *it, const ps_plan *plan, bool *write_failed, ps_error *error) {
    ps_frame_result result = {.dose = it->dose,
                              .n_excluded = it->n_excluded,
                              .n_saturated = it->found.invalid.n_saturated,
                              .n_negative = it->found.invalid.n_negative,
                              .n_nonfinite = it->found.invalid.n_nonfinite,
                              .n_missing = it->found.n_missing,
                              .device = w->work->device,
                              .note = w->work->note};
    double n_data = (double)plan->desc.n_active * ((double)plan->desc.scan_rows * (double)plan->desc.scan_columns - 1);
    ps_watchdog_beat("solve", (long)it->frame);
    PS_TRY(ps_frame_solve(w->solver, it->counts, n_data, &result, error));
    for (int s = 0; s < PS_N_STAGES; s++) result.seconds[s] += it->seconds[s];
    result.peak_memory_bytes = peak_memory_bytes();
    ps_watchdog_beat("write", (long)it->frame);
    ps_hdf5_lock();
    ps_code code = ps_output_write_frame(w->work->output, it->frame, &result, error);
    ps_hdf5_unlock();
    *write_failed = code != PS_OK && code != PS_E_NUMERIC;
    PS_TRY(code);
    w->summary->n_done++;
    return resolve(w, it, error);
}

/* Reduces, solves and writes items; the frames' own errors fail the frame they belong to. */
static ps_code compute(worker *w, item *const *items, int64_t n, ps_prepared_system *prepared, ps_error *error) {
    ps_error reason = {0};
    ps_code code = prepare(w, items[0], prepared, &reason);
    if (code == PS_OK && !ps_stop_wanted()) code = reduce(items, n, &reason);
    if (code == PS_OK && ps_stop_wanted()) code = PS_FAIL(&reason, PS_E_INTERRUPTED, "%s", ps_stop_reason());
    if (code != PS_OK && n > 1 && is_frame_error(code)) { /* one of them: find out which */
        for (int64_t i = 0; i < n; i++) PS_TRY(compute(w, &items[i], 1, prepared, error));
        return PS_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        bool write_failed = false;
        if (code == PS_OK) code = finish(w, items[i], prepared->plan, &write_failed, &reason);
        if (code != PS_OK && (write_failed || !is_frame_error(code))) {
            if (error) *error = reason;
            return code;
        }
        if (code != PS_OK) PS_TRY(fail_item(w, items[i], &reason, error));
        code = PS_OK;
        ps_error_clear(&reason);
    }
    return PS_OK;
}

/* A frame that holds markers: its own system without those pixels, and the counts once more. */
static ps_code compute_special(worker *w, item *it, ps_error *error) {
    ps_prepared_system *prepared = NULL;
    ps_error reason = {0};
    const ps_invalid_counts *invalid = &it->found.invalid;
    ps_log(PS_LOG_WARNING,
           "frame %lld: %lld active pixels hold no count at some positions and are left out of this frame (in the whole recording %lld values "
           "are saturated, %lld negative, %lld not finite)",
           (long long)it->frame, (long long)it->n_excluded, (long long)invalid->n_saturated, (long long)invalid->n_negative,
           (long long)invalid->n_nonfinite);
    ps_code code = ps_system_cache_get(&w->cache, group_of(w, it->place), it->extra_bad, &prepared, &reason);
    if (code == PS_OK) code = load_item(w, it, prepared, &reason);
    if (code == PS_OK) return compute(w, &it, 1, prepared, error);
    if (is_frame_error(code)) return fail_item(w, it, &reason, error);
    if (error) *error = reason;
    return code;
}

/* Loads every frame of the batch into the group's system; *ready: those without markers. */
static ps_code load_batch(worker *w, ps_prepared_system *prepared, item **ready, int64_t *n_ready, ps_error *error) {
    *n_ready = 0;
    for (int64_t i = 0; i < w->n_batch; i++) {
        item *it = &w->batch[i];
        ps_error reason = {0};
        ps_code code = load_item(w, it, prepared, &reason);
        if (code != PS_OK && !is_frame_error(code)) {
            if (error) *error = reason;
            return code;
        }
        if (code != PS_OK) {
            PS_TRY(fail_item(w, it, &reason, error));
        } else if (it->extra_bad) {
            ps_frame_destroy(it->counts);
            it->counts = NULL;
        } else {
            ready[(*n_ready)++] = it;
        }
    }
    return PS_OK;
}

static ps_code process_batch(worker *w, ps_error *error) {
    item *ready[MAX_BATCH];
    int64_t n_ready;
    ps_prepared_system *prepared = NULL;
    PS_TRY(ps_system_cache_get(&w->cache, group_of(w, w->batch[0].place), NULL, &prepared, error));
    PS_TRY(load_batch(w, prepared, ready, &n_ready, error));
    PS_TRY(read_ahead(w, error));
    if (n_ready > 0) PS_TRY(compute(w, ready, n_ready, prepared, error));
    for (int64_t i = 0; i < w->n_batch; i++)
        if (w->batch[i].extra_bad) PS_TRY(compute_special(w, &w->batch[i], error));
    return PS_OK;
}

/* ---- the loop ----------------------------------------------------------------------------------------------------------------- */

/* Gives back what this rank holds and leaves; the others go on. */
static void hand_over(worker *w) {
    ps_error ignored = {0};
    for (int64_t i = 0; i < w->n_batch; i++)
        if (!w->batch[i].resolved) ps_queue_give_back(w->work->queue, w->batch[i].place, &ignored);
    if (w->ahead >= 0) ps_queue_give_back(w->work->queue, w->ahead, &ignored);
    ps_queue_leave(w->work->queue, &ignored);
    w->summary->lost = true;
}

/* Nothing to take now: waits until something is given back or all is finished. */
static ps_code wait_for_others(worker *w, bool *finished, ps_error *error) {
    const struct timespec pause = {.tv_nsec = 20000000};
    ps_queue_status status;
    ps_watchdog_beat("waiting for other ranks", -1);
    PS_TRY(ps_queue_state(w->work->queue, &status, error));
    ps_progress_update(w->progress, status.resolved, NULL);
    *finished = status.finished;
    if (status.stopped) return PS_FAIL(error, PS_E_INTERRUPTED, "another rank was told to stop");
    if (!*finished) nanosleep(&pause, NULL);
    return PS_OK;
}

static ps_code work_loop(worker *w, ps_error *error) {
    bool finished = false;
    while (!finished) {
        if (ps_stop_wanted()) return PS_FAIL(error, PS_E_INTERRUPTED, "%s", ps_stop_reason());
        PS_TRY(take_batch(w, error));
        if (w->n_batch == 0) PS_TRY(wait_for_others(w, &finished, error));
        else PS_TRY(process_batch(w, error));
        for (int64_t i = 0; i < w->n_batch; i++) forget_item(&w->batch[i]);
    }
    return PS_OK;
}

ps_code ps_work_through(const ps_work *work, ps_work_summary *summary, ps_error *error) {
    worker w = {.work = work, .summary = summary, .ahead = -1, .loading = -1};
    ps_error ignored = {0};
    *summary = (ps_work_summary){0};
    ps_system_cache_init(&w.cache, work->job, work->run, work->group_mean, work->ops, work->backend);
    if (work->cluster->rank == 0) w.progress = ps_progress_begin("reconstructing", work->n_places, 10);
    ps_code code = ps_frame_solver_create(work->job, work->run->image_rows, work->run->image_columns, &w.solver, error);
    if (code == PS_OK) code = work_loop(&w, error);
    if (code == PS_E_INTERRUPTED) ps_queue_stop(work->queue, &ignored);
    else if (code != PS_OK) hand_over(&w);
    for (int64_t i = 0; i < w.n_batch; i++) forget_item(&w.batch[i]);
    ps_loader_cancel(work->loader);
    ps_progress_end(w.progress);
    ps_frame_solver_destroy(w.solver);
    ps_system_cache_free(&w.cache);
    return code;
}
