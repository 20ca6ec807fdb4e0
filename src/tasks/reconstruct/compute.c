#include <math.h>
#include <stdio.h>
#include <sys/resource.h>

#include "cluster/stop.h"
#include "cluster/watchdog.h"
#include "tasks/reconstruct/blame.h"
#include "tasks/reconstruct/frame_solve.h"
#include "tasks/reconstruct/odd_note.h"
#include "tasks/reconstruct/worker_parts.h"

static ps_code write_prepared(const ps_worker *w, const ps_prepared_system *prepared, bool *write_failed, ps_error *error) {
    ps_device_info info = {0};
    bool poisson = w->work->job->weights == PS_WEIGHTS_POISSON;
    const ps_method_set *methods = &w->work->job->methods;
    ps_output_prepared record = {.weights = prepared->weights, .dose = poisson ? prepared->dose : 0, .methods = methods};
    ps_backend_info(w->work->backend, &info);
    record.backend = w->work->ops->name;
    record.precision = info.precision;
    for (int64_t i = 0; i < methods->n; i++)
        if (methods->items[i].method->n_scales > 0)
            PS_TRY(methods->items[i].method->read_scales(prepared->system, record.scales[i], error));
    ps_code code = ps_output_write_prepared(w->work->output, prepared->group, &record, error);
    *write_failed = code != PS_OK && !ps_output_blames_frame(code);
    return code;
}

/* *write_failed: the error is the output's, not the frame's. */
static ps_code prepare(ps_worker *w, ps_item *it, ps_prepared_system *prepared, bool *write_failed, ps_error *error) {
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

static ps_code reduce(ps_item *const *items, int64_t n, ps_error *error) {
    ps_frame *frames[PS_MOST_IN_HAND];
    double dose[PS_MOST_IN_HAND], begin_s = ps_seconds();
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

static void describe(const ps_worker *w, const ps_item *it, ps_writer_frame *to) {
    to->seen = it->seen;
    to->result.dose = it->dose;
    to->result.n_excluded = it->n_excluded;
    to->result.n_saturated = it->found.invalid.n_saturated;
    to->result.n_negative = it->found.invalid.n_negative;
    to->result.n_nonfinite = it->found.invalid.n_nonfinite;
    to->result.n_missing = it->found.n_missing;
    to->result.device = w->work->device;
    to->result.peak_memory_bytes = peak_memory_bytes();
    for (int s = 0; s < PS_N_STAGES; s++) to->result.seconds[s] += it->seconds[s];
}

/* Hands it to the writer, with its notes. */
static ps_code hand_on(ps_worker *w, ps_item *it, ps_writer_frame *to, ps_error *error) {
    char both[PS_ODD_NOTE];
    to->result.note = it->note ? it->note : w->work->note;
    if (it->note && w->work->note) {
        snprintf(both, sizeof both, "%s; %s", w->work->note, it->note);
        to->result.note = both;
    }
    PS_TRY(ps_writer_finish(w->writer, to, error));
    it->handed_on = true;
    ps_item_forget(it);
    return PS_OK;
}

/* Solves a reduced frame. *write_failed: the error is the output's, not the frame's. */
static ps_code finish(ps_worker *w, ps_item *it, const ps_plan *plan, bool *write_failed, ps_error *error) {
    ps_writer_frame *to;
    double n_data = (double)plan->desc.n_active * ((double)plan->desc.scan_rows * (double)plan->desc.scan_columns - 1);
    ps_code code = ps_writer_begin(w->writer, it->work_item, it->frame, &to, error);
    if (code == PS_OK) {
        ps_watchdog_beat("solve", (long)it->frame);
        if (ps_stop_wanted()) /* it may have come while this waited for the writer */
            code = PS_FAIL(error, PS_E_INTERRUPTED, "%s", ps_stop_reason());
        else
            code = ps_frame_solve(&w->work->job->methods, it->counts, n_data, to, error);
        describe(w, it, to);
        if (code == PS_OK)
            code = hand_on(w, it, to, error);
        else
            ps_writer_leave(w->writer, to);
    }
    ps_error writing = {0};
    *write_failed = code != PS_OK && ps_writer_check(w->writer, &writing) != PS_OK;
    if (!*write_failed) return code;
    *error = writing;
    return writing.code;
}

ps_code ps_worker_compute(ps_worker *w, ps_item *const *items, int64_t n, ps_prepared_system *prepared, ps_error *error) {
    ps_error reason = {0};
    bool write_failed = false;
    ps_code code = prepare(w, items[0], prepared, &write_failed, &reason);
    if (code == PS_OK && !ps_stop_wanted()) code = reduce(items, n, &reason);
    if (code == PS_OK && ps_stop_wanted()) code = PS_FAIL(&reason, PS_E_INTERRUPTED, "%s", ps_stop_reason());
    if (code != PS_OK && n > 1 && !write_failed && ps_blames_frame(code)) { /* one of them: find out which */
        for (int64_t i = 0; i < n; i++) PS_TRY(ps_worker_compute(w, &items[i], 1, prepared, error));
        return PS_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        if (code == PS_OK) code = ps_worker_doubt_optics(w, items[i], prepared, &write_failed, &reason);
        if (code == PS_OK) code = finish(w, items[i], prepared->plan, &write_failed, &reason);
        if (write_failed) {
            if (error) *error = reason;
            return code;
        }
        if (code != PS_OK) PS_TRY(ps_item_settle(w, items[i], code, &reason, error));
        code = PS_OK;
        ps_error_clear(&reason);
    }
    return PS_OK;
}

static void say_excluded(const ps_item *it) {
    const ps_invalid_counts *invalid = &it->found.invalid;
    ps_log(
        PS_LOG_WARNING,
        "frame %lld: %lld active pixels hold no count at some positions and are left out of this frame (in the whole recording %lld values "
        "are saturated, %lld negative, %lld not finite)",
        (long long)it->frame, (long long)it->n_excluded, (long long)invalid->n_saturated, (long long)invalid->n_negative,
        (long long)invalid->n_nonfinite);
}

ps_code ps_worker_compute_alone(ps_worker *w, ps_item *it, ps_error *error) {
    ps_prepared_system *prepared = NULL;
    ps_error reason = {0};
    ps_code code = PS_OK;
    int64_t n_before;
    if (it->looked) say_excluded(it);
    do {
        n_before = it->n_excluded;
        if (it->counts) ps_frame_destroy(it->counts);
        it->counts = NULL;
        code = ps_system_cache_get(&w->cache, ps_worker_group_of(w, it->work_item), it->extra_bad, &prepared, &reason);
        if (code == PS_OK) code = ps_item_load(w, it, prepared, &reason);
        if (code == PS_OK && it->n_excluded > n_before) say_excluded(it);
    } while (code == PS_OK && it->n_excluded > n_before);
    return code == PS_OK ? ps_worker_compute(w, &it, 1, prepared, error) : ps_item_settle(w, it, code, &reason, error);
}
