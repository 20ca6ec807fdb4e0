#include "cli/check_time.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "plan/backend_choice.h"

enum { SAMPLE_FREQUENCIES = 1024, SAMPLE_PIXELS = 48 };

/* The first entry (zero) and others evenly spread; entries: [SAMPLE_FREQUENCIES + 1]. Returns how many. Their aliases stay where they are.
 */
static int64_t spread_frequencies(const ps_system_desc *full, ps_frequency *entries) {
    int64_t n_solved = full->n_frequencies - 1, n = n_solved < SAMPLE_FREQUENCIES ? n_solved : SAMPLE_FREQUENCIES;
    entries[0] = full->frequencies[0];
    for (int64_t i = 0; i < n; i++) entries[1 + i] = full->frequencies[1 + i * n_solved / n];
    return n + 1;
}

/* Aliases of the entries, side by side, as a system's list must have them; arrays: owned by the caller, one block. */
static ps_code pack_aliases(const ps_system_desc *full, ps_frequency *entries, int64_t n, ps_system_desc *sample, void **block,
                            ps_error *error) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) total += entries[i].n_aliases;
    size_t each = (size_t)(total ? total : 1);
    double *reals = malloc(each * (4 * sizeof(double) + 2 * sizeof(int32_t)));
    if (!reals) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate a sample of aliases");
    double *q_row = reals, *q_column = q_row + each, *phase = q_column + each, *complex_ = phase + each;
    int32_t *row = (int32_t *)(complex_ + each), *column = row + each;
    for (int64_t i = 0, to = 0; i < n; i++) {
        for (int64_t a = entries[i].first_alias; a < entries[i].first_alias + entries[i].n_aliases; a++, to++) {
            q_row[to] = full->q_row[a];
            q_column[to] = full->q_column[a];
            phase[to] = full->prior_phase[a];
            complex_[to] = full->prior_complex[a];
            row[to] = full->fine_row[a];
            column[to] = full->fine_column[a];
        }
        entries[i].first_alias = to - entries[i].n_aliases;
    }
    sample->n_aliases = total;
    sample->q_row = q_row, sample->q_column = q_column, sample->prior_phase = phase, sample->prior_complex = complex_;
    sample->fine_row = row, sample->fine_column = column;
    *block = reals;
    return PS_OK;
}

static ps_code time_prepare(ps_backend *backend, const ps_system_desc *sample, ps_methods methods, double *seconds, ps_error *error) {
    ps_system *system = NULL;
    PS_TRY(ps_system_create(backend, sample, methods, &system, error));
    ps_code code = ps_system_prepare(system, error); /* the first call also loads and starts what it needs */
    double begin_s = ps_seconds();
    if (code == PS_OK) code = ps_system_prepare(system, error);
    *seconds = ps_seconds() - begin_s;
    ps_system_destroy(system);
    return code;
}

/* One frame of made-up counts through a system of few pixels and frequencies: uploading, transforming, all images. */
static ps_code time_frame(const ps_check_report *report, ps_backend *backend, const ps_system_desc *sample, double *reduce_s,
                          double *images_s, ps_error *error) {
    const ps_job *job = &report->job;
    ps_methods methods = ps_job_methods(job);
    ps_code code = PS_OK;
    ps_system *system = NULL;
    ps_frame *frame = NULL;
    size_t n_pixels = (size_t)(sample->detector_rows * sample->detector_columns),
           image = (size_t)(report->run.image_rows * report->run.image_columns);
    uint8_t *pattern = malloc(n_pixels);
    float *images = malloc(2 * image * sizeof *images);
    PS_GO_ALLOC(error, pattern);
    PS_GO_ALLOC(error, images);
    PS_GO(ps_system_create(backend, sample, methods, &system, error));
    if (methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX)) PS_GO(ps_system_prepare(system, error));
    PS_GO(ps_frame_create(system, PS_U8, &frame, error));
    for (int64_t position = 0; position < sample->scan_rows * sample->scan_columns; position++) {
        memset(pattern, (int)(1 + position * 7 % 13), n_pixels);
        PS_GO(ps_frame_upload(frame, position, 1, pattern, error));
    }
    double begin_s = ps_seconds(), dose = 7;
    PS_GO(ps_frame_reduce(&frame, 1, &dose, error));
    *reduce_s = ps_seconds() - begin_s;
    begin_s = ps_seconds();
    const ps_solution phase = {.phase_f32 = images}, both = {.phase_f32 = images, .log_amplitude_f32 = images + image};
    const ps_strength strength = {0.1, 0.1};
    for (int64_t i = 0; job->phase.enabled && i < job->phase.n_strengths; i++)
        PS_GO(ps_system_solve(frame, PS_METHOD_PHASE, 1, &strength, &phase, error));
    for (int64_t i = 0; job->complex_.enabled && i < job->complex_.n_strengths; i++)
        PS_GO(ps_system_solve(frame, PS_METHOD_COMPLEX, 1, &strength, &both, error));
    if (job->ssb_enabled) PS_GO(ps_frame_ssb(frame, job->ssb_estimator, images, NULL, NULL, error));
    *images_s = ps_seconds() - begin_s;
done:
    ps_frame_destroy(frame);
    ps_system_destroy(system);
    free(images);
    free(pattern);
    return code;
}

/* Few pixels of the middle of the list; few frequencies are in sample already. */
static ps_system_desc few_pixels(const ps_system_desc *sample) {
    ps_system_desc few = *sample;
    few.n_active = sample->n_active < SAMPLE_PIXELS ? sample->n_active : SAMPLE_PIXELS;
    int64_t first = (sample->n_active - few.n_active) / 2;
    few.active += first, few.k_row += first, few.k_column += first;
    return few;
}

static ps_code sample_group(ps_check_report *report, ps_backend *backend, const ps_system_desc *full, ps_error *error) {
    ps_frequency entries[SAMPLE_FREQUENCIES + 1];
    ps_system_desc sample = *full;
    void *block = NULL;
    double prepare_s = 0, reduce_s = 0, images_s = 0;
    ps_methods methods = ps_job_methods(&report->job);
    sample.n_frequencies = spread_frequencies(full, entries);
    sample.frequencies = entries;
    PS_TRY(pack_aliases(full, entries, sample.n_frequencies, &sample, &block, error));
    ps_system_desc few = few_pixels(&sample);
    ps_code code = methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX)
                       ? time_prepare(backend, &sample, methods & ~(ps_methods)PS_METHOD_SSB, &prepare_s, error)
                       : PS_OK;
    if (code == PS_OK) code = time_frame(report, backend, &few, &reduce_s, &images_s, error);
    free(block);
    PS_TRY(code);
    double more_frequencies = (double)(full->n_frequencies - 1) / (double)(sample.n_frequencies - 1);
    double more_pixels = (double)full->n_active / (double)few.n_active;
    report->prepare_seconds = prepare_s * more_frequencies;
    /* Forming b evaluates what forming N does; the phase estimator images every pixel. */
    report->frame_seconds = report->prepare_seconds + reduce_s * more_pixels + images_s;
    if (report->job.ssb_enabled && report->job.ssb_estimator == PS_SSB_PHASE) report->frame_seconds += images_s * (more_pixels - 1);
    return PS_OK;
}

ps_code ps_check_estimate_time(ps_check_report *report, ps_error *error) {
    const ps_backend_ops *ops = NULL;
    ps_backend_options options;
    ps_backend *backend = NULL;
    int64_t largest = 0;
    for (int64_t g = 1; g < report->run.n_groups; g++)
        if (report->run.groups[g].plan.desc.n_active > report->run.groups[largest].plan.desc.n_active) largest = g;
    ps_error no_device = {0};
    if (ps_backend_choose(&report->job, 0, 1, &ops, &options, &no_device) != PS_OK) return PS_OK; /* nothing to measure with here */
    PS_TRY(ps_backend_open(ops, &options, &backend, error));
    ps_code code = ps_run_group_open(&report->job, &report->run, largest, error);
    if (code == PS_OK) code = sample_group(report, backend, &report->run.groups[largest].plan.desc, error);
    ps_run_group_close(&report->run, largest);
    ps_backend_close(backend);
    return code;
}
