/* The rows of docs/performance.md's table that a backend with a device decides alone: 1 to 8 and 16, on the published case. */
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/check.h"
#include "core/log.h"
#include "kernels/backend_bench.h"

enum { MOST_FRAMES = 8, N_STRENGTHS = 8 };
static const uint64_t seed = 20241024;
static const ps_strength strengths[N_STRENGTHS] = {{0.01, 0.01}, {0.03, 0.03}, {0.1, 0.1}, {0.2, 0.2},
                                                   {0.3, 0.3},   {0.5, 0.5},   {1.0, 1.0}, {3.0, 3.0}};

typedef struct {
    const ps_bench_options *options;
    ps_bench_report *report;
    ps_bench_ceilings ceilings;
    ps_backend *backend;
    bool in_double; /* how N is summed here by default */
    /* of the system at hand */
    ps_plan plan;
    ps_system *system;
    ps_methods methods;
    ps_frame *frames[MOST_FRAMES];
    int n_frames, n_batch; /* created; taken by the next reduction */
    double doses[MOST_FRAMES];
    ps_methods solved; /* by the next solution */
    int n_solved;      /* strengths */
    float *image[2];   /* [N_STRENGTHS, image]; never read */
} device_case;

static void release_system(device_case *c) {
    for (int i = 0; i < c->n_frames; i++) ps_frame_destroy(c->frames[i]);
    ps_system_destroy(c->system);
    ps_plan_free(&c->plan);
    for (int i = 0; i < 2; i++) free(c->image[i]);
    c->image[0] = c->image[1] = NULL;
    c->system = NULL;
    c->n_frames = 0;
}

static ps_code create_system(device_case *c, const ps_bench_problem *problem, ps_methods methods, ps_error *error) {
    release_system(c);
    c->methods = methods;
    PS_TRY(ps_bench_problem_plan(problem, &c->plan, error));
    const ps_system_desc *desc = &c->plan.desc;
    size_t image = (size_t)(desc->scan_rows * desc->scan_columns * desc->upsampling * desc->upsampling);
    for (int i = 0; i < 2; i++)
        if (!(c->image[i] = malloc(N_STRENGTHS * image * sizeof(float))))
            return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for images");
    return ps_system_create(c->backend, desc, methods, &c->system, error);
}

static ps_code add_frame(device_case *c, double *gather_s, ps_error *error) {
    double *mean = malloc((size_t)c->plan.desc.n_active * sizeof *mean);
    ps_code code = PS_OK;
    int i = c->n_frames;
    PS_GO_ALLOC(error, mean);
    PS_GO(ps_frame_create(c->system, PS_U16, &c->frames[i], error));
    c->n_frames++;
    PS_GO(ps_bench_fill(c->frames[i], seed + (uint64_t)i, gather_s, error));
    PS_GO(ps_frame_mean_counts(c->frames[i], mean, NULL, error));
    PS_GO(ps_plan_dose(&c->plan, mean, NULL, &c->doses[i], error));
done:
    free(mean);
    return code;
}

static double count_of(void *context, int64_t position, int64_t pixel) {
    const device_case *c = context;
    return c->options->ops->bench->count(seed, position, c->plan.desc.detector_rows * c->plan.desc.detector_columns, pixel);
}

static ps_code prepare(void *context, ps_error *error) {
    device_case *c = context;
    return ps_system_prepare(c->system, error);
}

static ps_code reduce(void *context, ps_error *error) {
    device_case *c = context;
    return ps_frame_reduce(c->frames, c->n_batch, c->doses, error);
}

static ps_code solve(void *context, ps_error *error) {
    device_case *c = context;
    ps_solution phase = {.phase_f32 = c->image[0]}, both = {.phase_f32 = c->image[0], .log_amplitude_f32 = c->image[1]};
    for (int i = 0; i < c->n_batch; i++) {
        if (c->solved & PS_METHOD_PHASE) PS_TRY(ps_system_solve(c->frames[i], PS_METHOD_PHASE, c->n_solved, strengths, &phase, error));
        if (c->solved & PS_METHOD_COMPLEX) PS_TRY(ps_system_solve(c->frames[i], PS_METHOD_COMPLEX, c->n_solved, strengths, &both, error));
    }
    return PS_OK;
}

static ps_code next_frame(void *context, ps_error *error) {
    PS_TRY(reduce(context, error));
    return solve(context, error);
}

static ps_code ssb_wave(void *context, ps_error *error) {
    device_case *c = context;
    return ps_frame_ssb(c->frames[0], PS_SSB_WAVE, c->image[0], NULL, NULL, error);
}

static ps_code ssb_image(void *context, ps_error *error) {
    PS_TRY(reduce(context, error));
    return ssb_wave(context, error);
}

static ps_code ssb_phase(void *context, ps_error *error) {
    device_case *c = context;
    double loss;
    return ps_frame_ssb(c->frames[0], PS_SSB_PHASE, c->image[0], NULL, &loss, error);
}

static ps_bench_row *add_row(device_case *c, const char *number, const char *name, const ps_bench_times *times, double target_ms,
                             double floor_ms) {
    bool published = !c->options->quick;
    ps_bench_row *row = ps_bench_add_row(c->report, number, name, times, published ? target_ms : 0.0, published ? floor_ms : 0.0);
    if (row) fprintf(stderr, "measured %s: %.3f ms\n", name, row->median_s * 1e3);
    return row;
}

static void rate_of_evaluations(const device_case *c, ps_bench_row *row) {
    if (row) snprintf(row->rate, sizeof row->rate, "%.3g side bands evaluated per s", ps_bench_overlaps(&c->plan) / row->median_s);
}

static void rate_of_bytes(const device_case *c, ps_bench_row *row, double bytes) {
    if (row)
        snprintf(row->rate, sizeof row->rate, "%.0f GB/s, %.0f %% of copying", bytes / row->median_s * 1e-9,
                 100.0 * bytes / row->median_s / c->ceilings.copy_bytes_per_s);
}

static double spectrum_bytes(const device_case *c) {
    const ps_system_desc *desc = &c->plan.desc;
    return 8.0 * (double)desc->n_active * (double)desc->scan_rows * (double)(desc->scan_columns / 2 + 1);
}

/* Rows 1, 2, 3: one preparation, N checked against its precision. */
static ps_code measure_prepare(device_case *c, const ps_bench_problem *problem, ps_methods methods, bool in_double, const char *number,
                               const char *name, double target_ms, double floor_ms, ps_error *error) {
    ps_bench_times times;
    c->options->ops->bench->set_precision(c->backend, in_double);
    PS_TRY(create_system(c, problem, methods, error));
    PS_TRY(prepare(c, error));
    for (ps_methods method = PS_METHOD_PHASE; method <= PS_METHOD_COMPLEX; method <<= 1)
        if (methods & method) PS_TRY(ps_bench_check_normal(c->system, method, &c->plan, in_double ? 1e-12 : 1e-6, c->report, error));
    PS_TRY(ps_bench_repeat(c->options->repeats, prepare, c, &times, error));
    rate_of_evaluations(c, add_row(c, number, name, &times, target_ms, floor_ms));
    return PS_OK;
}

static ps_code measure_preparations(device_case *c, const ps_bench_problem *problem, ps_error *error) {
    const ps_methods both = PS_METHODS_PREPARED;
    PS_TRY(measure_prepare(c, problem, PS_METHOD_PHASE, false, "1", "prepare phase, N in float", 12.0, 8.0, error));
    PS_TRY(measure_prepare(c, problem, PS_METHOD_COMPLEX, false, "2", "prepare complex, N in float", 12.0, 12.0, error));
    PS_TRY(measure_prepare(c, problem, both, false, "3", "prepare both, N in float", 12.0, 12.0, error));
    PS_TRY(measure_prepare(c, problem, PS_METHOD_PHASE, true, "1", "prepare phase, N in double", 12.0, 8.0, error));
    PS_TRY(measure_prepare(c, problem, PS_METHOD_COMPLEX, true, "2", "prepare complex, N in double", 12.0, 12.0, error));
    PS_TRY(measure_prepare(c, problem, both, true, "3", "prepare both, N in double", 12.0, 12.0, error));
    c->options->ops->bench->set_precision(c->backend, c->in_double);
    return PS_OK;
}

/* Row 6, with the means the transform needs. */
static ps_code measure_spectra(device_case *c, ps_error *error) {
    ps_bench_times gather = {0}, means = {0}, spectra = {0}, all = {0};
    for (int i = -1; i < c->options->repeats && i < PS_BENCH_MOST_REPEATS; i++) {
        double gather_s, means_s, spectra_s;
        PS_TRY(ps_bench_fill(c->frames[0], seed, &gather_s, error));
        PS_TRY(c->options->ops->bench->spectra(c->frames[0], &means_s, &spectra_s, error));
        if (i < 0) continue;
        gather.seconds[i] = gather_s;
        means.seconds[i] = means_s;
        spectra.seconds[i] = spectra_s;
        all.seconds[i] = gather_s + means_s + spectra_s;
        gather.n = means.n = spectra.n = all.n = i + 1;
    }
    double counts = 2.0 * (double)c->plan.desc.n_active * (double)(c->plan.desc.scan_rows * c->plan.desc.scan_columns);
    add_row(c, "6", "counts on the device to g", &all, 12.0, 9.0);
    rate_of_bytes(c, add_row(c, "", "  of that: active pixels gathered and turned", &gather, 0.0, 0.0), 2.0 * counts);
    rate_of_bytes(c, add_row(c, "", "  of that: means", &means, 0.0, 0.0), counts);
    rate_of_bytes(c, add_row(c, "", "  of that: to float, transform, tiles", &spectra, 0.0, 0.0), counts + spectrum_bytes(c));
    return PS_OK;
}

/* Row 4. */
static ps_code measure_strengths(device_case *c, ps_error *error) {
    ps_bench_times times;
    c->n_solved = c->n_batch = 1;
    c->solved = PS_METHOD_PHASE;
    PS_TRY(ps_bench_repeat(c->options->repeats, solve, c, &times, error));
    add_row(c, "4", "new strength, phase: image on the device", &times, 0.5, 0.1);
    c->solved = PS_METHOD_COMPLEX;
    PS_TRY(ps_bench_repeat(c->options->repeats, solve, c, &times, error));
    add_row(c, "4", "new strength, complex: images on the device", &times, 1.5, 0.1);
    c->options->ops->bench->keep_images(c->backend, false);
    c->solved = PS_METHOD_PHASE;
    PS_TRY(ps_bench_repeat(c->options->repeats, solve, c, &times, error));
    add_row(c, "", "  phase, image in host memory", &times, 0.0, 0.0);
    c->solved = PS_METHOD_COMPLEX;
    PS_TRY(ps_bench_repeat(c->options->repeats, solve, c, &times, error));
    add_row(c, "", "  complex, images in host memory", &times, 0.0, 0.0);
    c->options->ops->bench->keep_images(c->backend, true);
    return PS_OK;
}

/* Row 5, for several batch sizes; times are per frame. */
static ps_code measure_frames(device_case *c, ps_error *error) {
    ps_bench_times times;
    char name[96];
    c->solved = PS_METHODS_PREPARED;
    c->n_solved = N_STRENGTHS;
    for (c->n_batch = 1; c->n_batch <= c->n_frames; c->n_batch *= 2) {
        PS_TRY(ps_bench_repeat(c->options->repeats, reduce, c, &times, error));
        for (int i = 0; i < times.n; i++) times.seconds[i] /= c->n_batch;
        snprintf(name, sizeof name, "b and data norm, per frame of %d with g on the device", c->n_batch);
        rate_of_bytes(c, add_row(c, "", name, &times, 0.0, 2.3), spectrum_bytes(c));
        PS_TRY(ps_bench_repeat(c->options->repeats, next_frame, c, &times, error));
        for (int i = 0; i < times.n; i++) times.seconds[i] /= c->n_batch;
        snprintf(name, sizeof name, "next frame of %d: b, both methods, %d strengths", c->n_batch, N_STRENGTHS);
        add_row(c, "5", name, &times, c->n_batch < 4 ? 10.0 : 6.0, 2.3);
    }
    return PS_OK;
}

static ps_code measure_regularized(device_case *c, const ps_bench_problem *problem, ps_error *error) {
    PS_TRY(create_system(c, problem, PS_METHODS_PREPARED, error));
    PS_TRY(prepare(c, error));
    PS_TRY(add_frame(c, NULL, error));
    PS_TRY(ps_bench_check_spectrum(c->frames[0], &c->plan, c->doses[0], count_of, c, 1e-6, c->report, error));
    c->n_batch = 1;
    PS_TRY(reduce(c, error));
    PS_TRY(ps_bench_check_right_side(c->frames[0], PS_METHOD_PHASE, &c->plan, c->doses[0], 1e-6, c->report, error));
    PS_TRY(ps_bench_check_right_side(c->frames[0], PS_METHOD_COMPLEX, &c->plan, c->doses[0], 1e-6, c->report, error));
    PS_TRY(measure_spectra(c, error));
    PS_TRY(reduce(c, error));
    PS_TRY(measure_strengths(c, error));
    size_t in_use, peak, budget;
    double per_frame = 6.5 * (double)c->plan.desc.n_active * (double)(c->plan.desc.scan_rows * c->plan.desc.scan_columns);
    c->options->ops->bench->memory(c->backend, &in_use, &peak, &budget);
    while (c->n_frames < MOST_FRAMES && (double)(c->n_frames + 1) * per_frame < 0.8 * (double)budget) PS_TRY(add_frame(c, NULL, error));
    return measure_frames(c, error);
}

/* Rows 7 and 8. */
static ps_code measure_ssb(device_case *c, const ps_bench_problem *problem, const char *label, bool with_phase, ps_error *error) {
    ps_bench_times times;
    char name[96];
    PS_TRY(create_system(c, problem, PS_METHOD_SSB, error));
    PS_TRY(add_frame(c, NULL, error));
    c->n_batch = 1;
    PS_TRY(ps_bench_repeat(c->options->repeats, ssb_image, c, &times, error));
    snprintf(name, sizeof name, "SSB image, g on the device, %s", label);
    rate_of_bytes(c, add_row(c, "7", name, &times, with_phase ? 6.0 : 8.0, 2.3), spectrum_bytes(c));
    if (!with_phase) return PS_OK;
    PS_TRY(ps_bench_repeat(c->options->repeats, ssb_phase, c, &times, error));
    snprintf(name, sizeof name, "SSB mean phase and loss, %s", label);
    add_row(c, "8", name, &times, 25.0, 18.0);
    return PS_OK;
}

/* Row 16: the same frame within a small budget: the same b to the last bit, and never more memory than stated. */
static ps_code measure_memory(device_case *c, const ps_bench_problem *problem, ps_error *error) {
    const ps_methods both = PS_METHODS_PREPARED;
    double expected[4 * PS_MAX_ALIASES], found[4 * PS_MAX_ALIASES];
    int64_t frequency = c->plan.desc.n_frequencies / 3;
    ps_backend *whole = c->backend;
    ps_backend_options options = {.device = c->options->device};
    ps_memory_plan plan;
    ps_bench_times times;
    char name[96];
    PS_TRY(create_system(c, problem, both, error));
    frequency = c->plan.desc.n_frequencies / 3;
    PS_TRY(prepare(c, error));
    PS_TRY(add_frame(c, NULL, error));
    c->n_batch = 1;
    PS_TRY(reduce(c, error));
    PS_TRY(ps_frame_get_right_side(c->frames[0], PS_METHOD_COMPLEX, frequency, expected, NULL, error));
    PS_TRY(ps_backend_memory_plan(c->options->ops, &c->plan.desc, both, PS_U16, 0, 1, &plan, error));
    size_t made = (size_t)2 << 30; /* counts made on the device need some of their own */
    options.memory_budget_bytes =
        plan.system_bytes + plan.frame_bytes + (plan.workspace_bytes / 4 > made ? plan.workspace_bytes / 4 : made);
    release_system(c);
    ps_code code = ps_backend_open(c->options->ops, &options, &c->backend, error);
    size_t in_use = 0, peak = 0, budget = 0;
    if (code == PS_OK) code = create_system(c, problem, both, error);
    if (code == PS_OK) code = prepare(c, error);
    if (code == PS_OK) code = add_frame(c, NULL, error);
    if (code == PS_OK) code = ps_bench_repeat(c->options->repeats, reduce, c, &times, error);
    if (code == PS_OK) code = ps_frame_get_right_side(c->frames[0], PS_METHOD_COMPLEX, frequency, found, NULL, error);
    if (code == PS_OK) {
        c->options->ops->bench->memory(c->backend, &in_use, &peak, &budget);
        snprintf(name, sizeof name, "g through chunks and b, in %.2f GiB", (double)budget / (1 << 30));
        ps_bench_row *row = add_row(c, "16", name, &times, 0.0, 0.0);
        if (row) snprintf(row->rate, sizeof row->rate, "peak %.3f GiB of device memory", (double)peak / (1 << 30));
        int n = c->plan.desc.frequencies[frequency].n_aliases * 4;
        code =
            ps_bench_add_check(c->report, "b in a small budget, bits", memcmp(expected, found, (size_t)n * sizeof *found) != 0, 0.0, error);
        if (code == PS_OK)
            code =
                ps_bench_add_check(c->report, "peak memory over budget, bytes", peak > budget ? (double)(peak - budget) : 0.0, 0.0, error);
    }
    release_system(c);
    ps_backend_close(c->backend);
    c->backend = whole;
    return code;
}

static void read_driver(ps_bench_report *report) {
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    if (!file) return;
    if (!fgets(report->driver, sizeof report->driver, file)) report->driver[0] = '\0';
    report->driver[strcspn(report->driver, "\n")] = '\0';
    fclose(file);
}

static void add_ceilings(device_case *c) {
    ps_bench_report *report = c->report;
    ps_bench_add_ceiling(report, "device copy, read + write", c->ceilings.copy_bytes_per_s * 1e-12, "TB/s");
    ps_bench_add_ceiling(report, "pinned host to device", c->ceilings.upload_bytes_per_s * 1e-9, "GB/s");
    ps_bench_add_ceiling(report, "float FMA", c->ceilings.float_fma_per_s * 1e-12, "T/s");
    ps_bench_add_ceiling(report, "double FMA", c->ceilings.double_fma_per_s * 1e-12, "T/s");
    ps_bench_add_ceiling(report, "double FMA, mma.m8n8k4", c->ceilings.double_mma_fma_per_s * 1e-12, "T/s");
    ps_bench_add_ceiling(report, "clock under load", c->ceilings.clock_hz * 1e-9, "GHz");
    ps_bench_add_ceiling(report, "clock, stated maximum", c->ceilings.max_clock_khz * 1e-6, "GHz");
    ps_bench_add_ceiling(report, "memory clock", c->ceilings.memory_clock_khz * 1e-6, "GHz");
}

/* Its images are looked at. */
static ps_code measure_storage(device_case *c, ps_error *error) {
    c->options->ops->bench->keep_images(c->backend, false);
    ps_code code = ps_bench_g(c->options, c->backend, c->report, error);
    c->options->ops->bench->keep_images(c->backend, true);
    return code;
}

static bool is_wanted(const device_case *c, const char *rows) {
    return !c->options->rows || strstr(c->options->rows, rows);
}

static ps_code measure_all(device_case *c, ps_error *error) {
    const ps_bench_tolerance tolerance = {1e-6, 1e-6, 1e-6, 2e-6};
    const ps_bench_problem *problem = c->options->quick ? &ps_bench_small : &ps_bench_published;
    ps_bench_problem u1 = *problem;
    u1.upsampling = 1;
    ps_bench_describe(c->backend, c->report);
    read_driver(c->report);
    PS_TRY(c->options->ops->bench->ceilings(c->backend, &c->ceilings, error));
    add_ceilings(c);
    PS_TRY(ps_bench_check_small(c->backend, &tolerance, c->report, error));
    c->options->ops->bench->keep_images(c->backend, true);
    if (is_wanted(c, "prepare")) PS_TRY(measure_preparations(c, problem, error));
    if (is_wanted(c, "frames")) PS_TRY(measure_regularized(c, problem, error));
    if (is_wanted(c, "ssb")) PS_TRY(measure_ssb(c, problem, "U = 3", false, error));
    if (is_wanted(c, "ssb")) PS_TRY(measure_ssb(c, &u1, "U = 1", true, error));
    if (is_wanted(c, "memory")) PS_TRY(measure_memory(c, problem, error));
    release_system(c); /* its memory is wanted */
    if (is_wanted(c, "storage")) PS_TRY(measure_storage(c, error));
    if (is_wanted(c, "fit")) PS_TRY(ps_bench_fit(c->options, c->backend, c->report, error));
    return is_wanted(c, "unpack") ? ps_bench_unpack(c->options, c->backend, &u1, c->report, error) : PS_OK;
}

ps_code ps_bench_device(const ps_bench_options *options, ps_bench_report *report, ps_error *error) {
    device_case c = {.options = options, .report = report};
    ps_backend_options backend_options = {.device = options->device,
                                          .memory_budget_bytes = (size_t)(options->budget_GiB * (double)(1 << 30))};
    ps_device_info info;
    PS_TRY(ps_backend_open(options->ops, &backend_options, &c.backend, error));
    ps_backend_info(c.backend, &info);
    c.in_double = strncmp(info.precision, "N float64", strlen("N float64")) == 0;
    ps_code code = measure_all(&c, error);
    release_system(&c);
    ps_backend_close(c.backend);
    return code;
}
