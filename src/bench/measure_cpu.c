/* The CPU backends' rows, on a problem a workstation finishes in seconds: the plain float64 path and the fast path beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/check.h"
#include "bench/measure.h"
#include "method/method.h"

typedef struct {
    const ps_backend_ops *ops;
    ps_plan plan;
    ps_backend *backend;
    ps_system *system;
    ps_frame *frame;
    double dose;
    float *image;
    ps_methods solved; /* by solve */
} cpu_case;

static uint16_t *random_counts(const ps_system_desc *desc) {
    int64_t n = desc->scan_rows * desc->scan_columns * desc->detector_rows * desc->detector_columns;
    uint16_t *counts = malloc((size_t)n * sizeof *counts);
    uint64_t random = 1;
    for (int64_t i = 0; counts && i < n; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        counts[i] = (uint16_t)__builtin_popcount((uint32_t)(random >> 40) & 0xfffffu);
    }
    return counts;
}

static ps_code build(cpu_case *c, const ps_bench_options *options, ps_error *error) {
    ps_backend_options backend_options = {.n_threads = options->n_threads, .device = options->device};
    double *mean = NULL;
    uint16_t *counts = NULL;
    ps_code code = PS_OK;
    PS_GO(ps_bench_problem_plan(&ps_bench_small, &c->plan, error));
    const ps_system_desc *desc = &c->plan.desc;
    PS_GO(ps_backend_open(c->ops, &backend_options, &c->backend, error));
    counts = random_counts(desc);
    mean = malloc((size_t)desc->n_active * sizeof *mean);
    c->image = malloc((size_t)(desc->scan_rows * desc->scan_columns * desc->upsampling * desc->upsampling) * sizeof *c->image);
    PS_GO_ALLOC(error, counts && mean && c->image);
    PS_GO(ps_system_create(c->backend, desc, PS_METHODS_ALL, &c->system, error));
    PS_GO(ps_frame_create(c->system, PS_U16, &c->frame, error));
    PS_GO(ps_frame_upload(c->frame, 0, desc->scan_rows * desc->scan_columns, counts, error));
    PS_GO(ps_frame_mean_counts(c->frame, mean, NULL, error));
    PS_GO(ps_plan_dose(&c->plan, mean, NULL, &c->dose, error));
done:
    free(mean);
    free(counts);
    return code;
}

static void release(cpu_case *c) {
    ps_frame_destroy(c->frame);
    ps_system_destroy(c->system);
    ps_backend_close(c->backend);
    ps_plan_free(&c->plan);
    free(c->image);
}

static ps_code prepare(void *context, ps_error *error) {
    cpu_case *c = context;
    return ps_system_prepare(c->system, error);
}

static ps_code reduce(void *context, ps_error *error) {
    cpu_case *c = context;
    return ps_frame_reduce(&c->frame, 1, &c->dose, error);
}

static ps_code solve(void *context, ps_error *error) {
    cpu_case *c = context;
    const ps_strength strength = {0.1, 0.1};
    ps_solution solution = {.phase_f32 = c->image};
    return ps_system_solve(c->frame, c->solved, 1, &strength, &solution, error);
}

static ps_code ssb_wave(void *context, ps_error *error) {
    cpu_case *c = context;
    return ps_frame_ssb(c->frame, PS_SSB_WAVE, c->image, NULL, NULL, error);
}

static ps_code add_row(cpu_case *c, const char *number, const char *name, ps_code (*run)(void *context, ps_error *error), int repeats,
                       ps_bench_report *report, ps_error *error) {
    ps_bench_times times;
    char whole[96];
    PS_TRY(ps_bench_repeat(repeats, run, c, &times, error));
    snprintf(whole, sizeof whole, "%s: %s", c->ops->name, name);
    ps_bench_add_row(report, number, whole, &times, 0.0, 0.0);
    return PS_OK;
}

/* The rows of one backend. */
static ps_code measure(cpu_case *c, int repeats, ps_bench_report *report, ps_error *error) {
    PS_TRY(add_row(c, "3", "prepare both methods", prepare, repeats, report, error));
    PS_TRY(add_row(c, "5", "next frame: g, b, data norm, SSB sums", reduce, repeats, report, error));
    for (int i = 0; i < ps_n_methods; i++) {
        char name[64];
        c->solved = ps_method_table[i]->bits;
        snprintf(name, sizeof name, "new strength, %s", ps_method_table[i]->name);
        if (c->solved & PS_METHODS_PREPARED) PS_TRY(add_row(c, "4", name, solve, repeats, report, error));
    }
    return add_row(c, "7", "SSB image from its sums", ssb_wave, repeats, report, error);
}

/* Row 15: how much faster the fast path is, for the rows that both have. */
static void compare(ps_bench_report *report, int first_plain, int first_fast) {
    for (int i = 0; first_fast + i < report->n_rows; i++) {
        ps_bench_row *fast = &report->rows[first_fast + i];
        snprintf(fast->rate, sizeof fast->rate, "%.1f x the plain path (target 8, on all cores)",
                 report->rows[first_plain + i].median_s / fast->median_s);
    }
}

static ps_code measure_backend(const ps_backend_ops *ops, const ps_bench_tolerance *tolerance, const ps_bench_options *options,
                               ps_bench_report *report, ps_error *error) {
    cpu_case c = {.ops = ops};
    ps_code code = PS_OK;
    PS_GO(build(&c, options, error));
    ps_bench_describe(c.backend, report);
    if (tolerance) PS_GO(ps_bench_check_small(c.backend, tolerance, report, error));
    PS_GO(measure(&c, options->repeats, report, error));
done:
    release(&c);
    return code;
}

static ps_code measure_operations(const ps_bench_options *options, ps_bench_report *report, ps_error *error) {
    const ps_bench_tolerance fast = {1e-6, 1e-6, 1e-6, 2e-6};
    ps_bench_options few = *options;
    few.repeats = options->repeats > 3 ? 3 : options->repeats; /* the plain path takes seconds */
    int first_plain = report->n_rows;
    PS_TRY(measure_backend(&ps_backend_cpu_reference, NULL, &few, report, error));
    int first_fast = report->n_rows;
    PS_TRY(measure_backend(options->ops, &fast, options, report, error));
    compare(report, first_plain, first_fast);
    return PS_OK;
}

/* Rows of a backend that is opened for them. */
static ps_code measure_open(const ps_bench_options *options,
                            ps_code (*measure_rows)(const ps_bench_options *options, ps_backend *backend, ps_bench_report *report,
                                                    ps_error *error),
                            ps_bench_report *report, ps_error *error) {
    const ps_backend_options backend_options = {.n_threads = options->n_threads, .device = options->device};
    ps_backend *backend = NULL;
    PS_TRY(ps_backend_open(options->ops, &backend_options, &backend, error));
    ps_bench_describe(backend, report);
    ps_code code = measure_rows(options, backend, report, error);
    ps_backend_close(backend);
    return code;
}

ps_code ps_bench_cpu(const ps_bench_options *options, ps_bench_report *report, ps_error *error) {
    if (!options->rows || strstr(options->rows, "operations")) PS_TRY(measure_operations(options, report, error));
    if (!options->rows || strstr(options->rows, "storage")) PS_TRY(measure_open(options, ps_bench_g, report, error));
    return !options->rows || strstr(options->rows, "fit") ? measure_open(options, ps_bench_fit, report, error) : PS_OK;
}
