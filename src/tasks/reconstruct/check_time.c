#include "tasks/reconstruct/check_time.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "plan/backend_choice.h"
#include "tasks/reconstruct/check_bound.h"

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
    double *q_row = reals, *q_column = q_row + each, *phase = q_column + each, *both = phase + each;
    void *behind = both + each;
    int32_t *row = behind, *column = row + each;
    for (int64_t i = 0, to = 0; i < n; i++) {
        for (int64_t a = entries[i].first_alias; a < entries[i].first_alias + entries[i].n_aliases; a++, to++) {
            q_row[to] = full->q_row[a];
            q_column[to] = full->q_column[a];
            phase[to] = full->prior_phase[a];
            both[to] = full->prior_complex[a];
            row[to] = full->fine_row[a];
            column[to] = full->fine_column[a];
        }
        entries[i].first_alias = to - entries[i].n_aliases;
    }
    sample->n_aliases = total;
    sample->q_row = q_row, sample->q_column = q_column, sample->prior_phase = phase, sample->prior_complex = both;
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

/* Of one frame. */
typedef struct {
    double reduce_s, images_s;
    double bus_s;             /* handing counts to a device; 0: the backend has none */
    double images_by_pixel_s; /* the part of images_s that grows with the number of active pixels */
} frame_times;

/* Every method at one of its strengths, counted as often as it has strengths. */
static ps_code time_methods(const ps_method_set *methods, ps_frame *frame, int64_t image, double n_data, frame_times *times,
                            ps_error *error) {
    ps_code code = PS_OK;
    ps_method_set one = *methods; /* its strengths are borrowed */
    ps_method_results results;
    for (int64_t i = 0; i < one.n; i++) one.items[i].n_strengths = one.items[i].n_strengths > 0;
    PS_TRY(ps_method_results_create(&one, image, &results, error));
    for (int64_t i = 0; i < one.n; i++) {
        const ps_method_settings *settings = &one.items[i];
        int64_t n = methods->items[i].n_strengths > 1 ? methods->items[i].n_strengths : 1;
        double begin_s = ps_seconds();
        PS_GO(ps_method_solve(settings, frame, n_data, results.values[i], error));
        double took_s = (double)n * (ps_seconds() - begin_s);
        times->images_s += took_s;
        if (settings->method->images_every_pixel && settings->method->images_every_pixel(settings)) times->images_by_pixel_s += took_s;
    }
done:
    ps_method_results_free(&results);
    return code;
}

static ps_code put_counts(ps_frame *frame, const ps_system_desc *sample, ps_error *error) {
    ps_code code = PS_OK;
    size_t n_pixels = (size_t)(sample->detector_rows * sample->detector_columns);
    uint8_t *pattern = malloc(n_pixels);
    PS_GO_ALLOC(error, pattern);
    for (int64_t position = 0; position < sample->scan_rows * sample->scan_columns; position++) {
        memset(pattern, (int)(1 + position * 7 % 13), n_pixels);
        PS_GO(ps_frame_upload(frame, position, 1, pattern, error));
    }
done:
    free(pattern);
    return code;
}

static ps_code time_computing(const ps_check_report *report, ps_frame *frame, double dose, double n_data, frame_times *times,
                              ps_error *error) {
    double begin_s = ps_seconds();
    PS_TRY(ps_frame_reduce(&frame, 1, &dose, error));
    times->reduce_s = ps_seconds() - begin_s;
    times->images_s = times->images_by_pixel_s = 0;
    return time_methods(&report->job.methods, frame, report->run.image_rows * report->run.image_columns, n_data, times, error);
}

/* What is quick is timed once more: the first call also loads and starts what it needs. */
#define QUICK_S 0.5

/* One frame of made-up counts through a system of few pixels and frequencies: uploading, transforming, all images. */
static ps_code time_frame(const ps_check_report *report, ps_backend *backend, const ps_system_desc *sample, frame_times *times,
                          ps_error *error) {
    const ps_method_set *methods = &report->job.methods;
    ps_code code = PS_OK;
    ps_system *system = NULL;
    ps_frame *frame = NULL;
    double n_data = (double)sample->n_active * (double)(sample->scan_rows * sample->scan_columns - 1), dose = 7;
    PS_GO(ps_system_create(backend, sample, ps_method_set_bits(methods), &system, error));
    if (ps_method_set_needs_normal(methods)) PS_GO(ps_system_prepare(system, error));
    PS_GO(ps_frame_create(system, PS_U8, &frame, error));
    ps_busy_times before = ps_busy_read();
    PS_GO(put_counts(frame, sample, error));
    times->bus_s = ps_busy_since(&before).busy_s[PS_RESOURCE_BUS];
    PS_GO(time_computing(report, frame, dose, n_data, times, error));
    if (times->reduce_s + times->images_s < QUICK_S) PS_GO(time_computing(report, frame, dose, n_data, times, error));
done:
    ps_frame_destroy(frame);
    ps_system_destroy(system);
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
    double prepare_s = 0;
    frame_times times = {0};
    ps_methods prepared = ps_method_set_bits(&report->job.methods) & PS_METHODS_PREPARED;
    sample.n_frequencies = spread_frequencies(full, entries);
    sample.frequencies = entries;
    PS_TRY(pack_aliases(full, entries, sample.n_frequencies, &sample, &block, error));
    ps_system_desc few = few_pixels(&sample);
    ps_code code = prepared ? time_prepare(backend, &sample, prepared, &prepare_s, error) : PS_OK;
    if (code == PS_OK) code = time_frame(report, backend, &few, &times, error);
    free(block);
    PS_TRY(code);
    double more_frequencies = (double)(full->n_frequencies - 1) / (double)(sample.n_frequencies - 1);
    double more_pixels = (double)full->n_active / (double)few.n_active;
    report->prepare_seconds = prepare_s * more_frequencies;
    /* Forming b evaluates what forming N does. */
    report->frame_seconds =
        report->prepare_seconds + times.reduce_s * more_pixels + times.images_s + times.images_by_pixel_s * (more_pixels - 1);
    report->busy_s[report->ops->device_count ? PS_RESOURCE_DEVICE : PS_RESOURCE_CORES] = report->frame_seconds;
    report->busy_s[PS_RESOURCE_BUS] = times.bus_s;
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
    if (code == PS_OK) code = ps_check_sample_reading(report, report->busy_s, error);
    if (code == PS_OK) code = ps_check_sample_writing(report, report->busy_s, error);
    if (code == PS_OK) report->period_s = ps_frame_period(report->busy_s);
    return code;
}
