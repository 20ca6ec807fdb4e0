#include "tasks/fit/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/stop.h"
#include "cluster/watchdog.h"
#include "tasks/reconstruct/odd_note.h"

static const double picture_strength = 0.1;

/* A frame in a system of its own. */
typedef struct {
    const ps_fit_source *source;
    int64_t frame;
    uint8_t *bad; /* [detector pixels] the group's, this recording's own, and those that hold no count somewhere */
    ps_plan plan;
    ps_system *system;
    ps_frame *counts;
    double *mean, dose;
    int64_t *n_marked; /* [n_active] */
} loaded;

static void release_counts(loaded *l) {
    ps_frame_destroy(l->counts);
    ps_system_destroy(l->system);
    ps_plan_free(&l->plan);
    free(l->mean);
    free(l->n_marked);
    l->counts = NULL;
    l->system = NULL;
    l->mean = NULL;
    l->n_marked = NULL;
}

static void release(loaded *l) {
    release_counts(l);
    free(l->bad);
}

static ps_code put_chunks(loaded *l, const uint8_t *odd, ps_error *error) {
    ps_loader *loader = l->source->loader;
    PS_TRY(ps_loader_begin_filled(loader, l->source->run->series.items[l->frame].source, odd, error));
    for (;;) {
        ps_loader_chunk chunk;
        bool end;
        ps_watchdog_beat("read", (long)l->frame);
        PS_TRY(ps_loader_next(loader, &chunk, &end, error));
        if (end) return PS_OK;
        if (ps_stop_wanted()) return PS_FAIL(error, PS_E_INTERRUPTED, "%s", ps_stop_reason());
        ps_code code = ps_frame_upload(l->counts, chunk.first_position, chunk.n_positions, chunk.counts, error);
        ps_loader_release(loader);
        PS_TRY(code);
    }
}

/* Patterns that were not measured fail the frame, or are filled where the job allows it. odd: malloc'd; NULL: none. */
static ps_code find_odd(const loaded *l, uint8_t **odd, ps_error *error) {
    const ps_run_plan *run = l->source->run;
    ps_loader_findings seen = ps_loader_found(l->source->loader);
    ps_odd_patterns found;
    PS_TRY(ps_odd_patterns_find(ps_loader_tally(l->source->loader), run->scan_rows * run->scan_columns, seen.n_pixels, run->scan_columns,
                                &found, error));
    *odd = NULL;
    if (!found.kind) return PS_OK;
    ps_code code = PS_OK;
    if (l->source->job->series.allow_partial) {
        *odd = found.kind;
        found.kind = NULL;
    } else
        code = PS_FAIL(error, PS_E_INPUT, "%s; series.allow_partial fills them from their neighbours", found.text);
    ps_odd_patterns_free(&found);
    return code;
}

static ps_code read_counts(loaded *l, ps_error *error) {
    uint8_t *odd = NULL;
    ps_loader_cancel(l->source->loader);
    PS_TRY(ps_loader_ignore(l->source->loader, l->bad, error));
    PS_TRY(ps_frame_create(l->system, l->source->run->dtype, &l->counts, error));
    PS_TRY(put_chunks(l, NULL, error));
    PS_TRY(find_odd(l, &odd, error));
    if (!odd) return PS_OK;
    ps_frame_destroy(l->counts);
    l->counts = NULL;
    ps_code code = ps_frame_create(l->system, l->source->run->dtype, &l->counts, error);
    if (code == PS_OK) code = put_chunks(l, odd, error);
    free(odd);
    return code;
}

ps_code ps_fit_plan_build(const ps_job *job, const ps_run_plan *run, const ps_optics *optics, const uint8_t *bad, ps_methods methods,
                          ps_plan *plan, ps_error *error) {
    ps_plan_options options = {.scan_rows = run->scan_rows,
                               .scan_columns = run->scan_columns,
                               .detector_rows = run->detector_rows,
                               .detector_columns = run->detector_columns,
                               .upsampling = 1,
                               .smoothness_phase_inv_A = INFINITY,
                               .smoothness_complex_inv_A = INFINITY,
                               .bad = bad};
    ps_job_plan_g(job, methods == PS_METHOD_MF, &options);
    return ps_plan_build(optics, &options, plan, error);
}

static ps_code build_system(loaded *l, const ps_optics *optics, ps_methods methods, ps_error *error) {
    PS_TRY(ps_fit_plan_build(l->source->job, l->source->run, optics, l->bad, methods, &l->plan, error));
    size_t n = (size_t)l->plan.desc.n_active;
    l->mean = malloc(n * sizeof *l->mean);
    l->n_marked = malloc(n * sizeof *l->n_marked);
    if (!l->mean || !l->n_marked) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu pixels", n);
    return ps_system_create(l->source->backend, &l->plan.desc, methods, &l->system, error);
}

/* Pixels that hold no count somewhere join those left out; *n: how many. */
static void leave_out_marked(loaded *l, int64_t *n) {
    *n = 0;
    for (int64_t i = 0; i < l->plan.desc.n_active; i++) {
        if (l->n_marked[i] == 0) continue;
        l->bad[l->plan.desc.active[i]] = 1;
        ++*n;
    }
}

static ps_code load_once(loaded *l, const ps_optics *optics, ps_methods methods, int64_t *n_marked, ps_error *error) {
    PS_TRY(build_system(l, optics, methods, error));
    ps_code code = read_counts(l, error);
    ps_loader_cancel(l->source->loader);
    PS_TRY(code);
    PS_TRY(ps_frame_mean_counts(l->counts, l->mean, l->n_marked, error));
    leave_out_marked(l, n_marked);
    return *n_marked > 0 ? PS_OK : ps_plan_dose(&l->plan, l->mean, NULL, &l->dose, error);
}

static ps_code load(const ps_fit_source *source, int64_t frame, const ps_optics *optics, ps_methods methods, loaded *l, ps_error *error) {
    const ps_run_frame *found = &source->run->frames[frame];
    int64_t n_pixels = source->run->detector_rows * source->run->detector_columns, n_marked;
    *l = (loaded){.source = source, .frame = frame, .bad = malloc((size_t)n_pixels)};
    if (found->unreadable || found->refused)
        return PS_FAIL(error, PS_E_INPUT, "%s", found->unreadable ? found->unreadable : found->refused);
    if (!l->bad) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate a pixel mask");
    memcpy(l->bad, source->run->groups[found->group].bad, (size_t)n_pixels);
    for (int64_t i = 0; i < found->n_own; i++) l->bad[found->own[i]] = 1;
    PS_TRY(load_once(l, optics, methods, &n_marked, error));
    if (n_marked == 0) return PS_OK;
    release_counts(l);
    PS_TRY(load_once(l, optics, methods, &n_marked, error));
    if (n_marked == 0) return PS_OK;
    return PS_FAIL(error, PS_E_INPUT, "%s: other pixels hold no count when it is read again", source->run->series.items[frame].source);
}

/* Wider by the margin, unless the disc would then have no edge on the detector. */
static ps_optics widen(const ps_fit_source *source, const ps_optics *optics, double margin_mrad) {
    ps_optics wide = *optics;
    double k_limit, nearest = INFINITY;
    wide.semiangle_mrad += margin_mrad;
    for (int axis = 0; axis < 2; axis++) {
        double size = (double)(axis ? source->run->detector_columns : source->run->detector_rows) - 1.0;
        double beside = fmin(optics->detector_center_px[axis], size - optics->detector_center_px[axis]);
        nearest = fmin(nearest, beside * optics->detector_pitch_mrad[axis]);
    }
    k_limit = fmax(optics->semiangle_mrad, nearest);
    wide.semiangle_mrad = fmin(wide.semiangle_mrad, k_limit);
    return wide;
}

ps_code ps_fit_load_data(const ps_fit_source *source, int64_t frame, const ps_optics *optics, double margin_mrad, int64_t most,
                         ps_fit_data *data, ps_error *error) {
    loaded l;
    const ps_optics wide = widen(source, optics, margin_mrad);
    *data = (ps_fit_data){0};
    ps_code code = load(source, frame, &wide, PS_METHOD_MF, &l, error);
    if (code == PS_OK) code = ps_fit_data_take(l.counts, &l.plan, l.dose, most, data, error);
    release(&l);
    return code;
}

ps_code ps_fit_load_phase(const ps_fit_source *source, int64_t frame, const ps_optics *optics, float *image, ps_error *error) {
    loaded l;
    const ps_strength strength = {picture_strength, picture_strength};
    const ps_solution solution = {.phase_f32 = image};
    ps_code code = load(source, frame, optics, PS_METHOD_PHASE, &l, error);
    ps_watchdog_beat("picture", (long)frame);
    if (code == PS_OK) code = ps_system_prepare(l.system, error);
    if (code == PS_OK) code = ps_frame_reduce(&l.counts, 1, &l.dose, error);
    if (code == PS_OK) code = ps_system_solve(l.counts, PS_METHOD_PHASE, 1, &strength, &solution, error);
    release(&l);
    return code;
}
