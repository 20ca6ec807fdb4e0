#include "bench/scale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/scale_print.h"
#include "core/busy.h"
#include "core/log.h"
#include "core/options.h"

enum { N_PATTERNS = 64, N_TURNS = 3 }; /* made up, handed over again and again */
static const double short_s = 1;

typedef struct {
    const char *backend, *json, *svg;
    double seconds, memory_GiB;
    int64_t threads;
} settings;

/* One point at work. */
typedef struct {
    ps_plan plan;
    ps_system *system;
    ps_frame *frames[16];
    uint16_t *patterns; /* [N_PATTERNS, detector pixels] */
    float *image;
    double dose[16];
    bool on_device;
} bench_case;

static ps_code parse(settings *given, int n_arguments, char **arguments, bool *help, ps_error *error) {
    const ps_option options[] = {
        {"--backend", PS_OPTION_TEXT, &given->backend, "cpu, cuda or cuda:N (a device); without it cuda where there is a device, else cpu"},
        {"--seconds", PS_OPTION_NUMBER, &given->seconds, "points that would take longer are left out, and named (20)"},
        {"--memory-GiB", PS_OPTION_NUMBER, &given->memory_GiB, "memory of the backend; points that do not fit are left out (8)"},
        {"--threads", PS_OPTION_INTEGER, &given->threads, "cpu: threads; without it all"},
        {"--json", PS_OPTION_TEXT, &given->json, "file for the same as JSON"},
        {"--svg", PS_OPTION_TEXT, &given->svg, "file for the same as plots"},
    };
    ps_command_line line = {.command = "bench scale",
                            .synopsis = "[OPTIONS]",
                            .description =
                                "How the time of each stage grows with the scan (128 to 1024), the detector (96 to 512), the aliases\n"
                                "of a frequency (1 to 64) and the frames of a batch (1 to 16), beside the work there is to do.\n"
                                "Stages: putting counts, preparing both methods, reducing, solving complex at one strength with\n"
                                "its image, an SSB image. Stages that cost more than 1.5 times the median of their axis for the\n"
                                "same work are marked.",
                            .options = options,
                            .n_options = sizeof options / sizeof *options};
    PS_TRY(ps_options_parse(&line, n_arguments, arguments, help, error));
    if (!*help && (!(given->seconds > 0) || !(given->memory_GiB > 0) || given->threads < 0))
        return PS_FAIL(error, PS_E_ARGUMENT, "--seconds and --memory-GiB must be above 0, --threads not negative");
    return PS_OK;
}

/* ---- one point ---- */

static ps_code make_patterns(bench_case *c, ps_error *error) {
    const ps_system_desc *desc = &c->plan.desc;
    size_t n = (size_t)(N_PATTERNS * desc->detector_rows * desc->detector_columns);
    int64_t fine = desc->scan_rows * desc->scan_columns * desc->upsampling * desc->upsampling;
    uint64_t random = 1;
    c->patterns = malloc(n * sizeof *c->patterns);
    c->image = malloc((size_t)fine * sizeof *c->image);
    if (!c->patterns || !c->image) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate made-up patterns");
    for (size_t i = 0; i < n; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        c->patterns[i] = (uint16_t)__builtin_popcount((uint32_t)(random >> 40) & 0xfffffu);
    }
    return PS_OK;
}

static void release(bench_case *c) {
    for (size_t i = 0; i < sizeof c->frames / sizeof *c->frames; i++) ps_frame_destroy(c->frames[i]);
    ps_system_destroy(c->system);
    ps_plan_free(&c->plan);
    free(c->patterns);
    free(c->image);
}

static ps_code put(const bench_case *c, ps_frame *frame, ps_error *error) {
    int64_t n = c->plan.desc.scan_rows * c->plan.desc.scan_columns;
    for (int64_t at = 0; at < n; at += N_PATTERNS)
        PS_TRY(ps_frame_upload(frame, at, n - at < N_PATTERNS ? n - at : N_PATTERNS, c->patterns, error));
    return PS_OK;
}

static ps_code reduce(bench_case *c, const ps_scale_point *point, ps_error *error) {
    double data_norm;
    PS_TRY(ps_frame_reduce(c->frames, point->n_frames, c->dose, error));
    return ps_frame_data_norm(c->frames[0], &data_norm, error); /* waits for a device */
}

static ps_code solve(bench_case *c, ps_error *error) {
    const ps_strength strength = {0.1, 0.1};
    const ps_solution solution = {.phase_f32 = c->image};
    return ps_system_solve(c->frames[0], PS_METHOD_COMPLEX, 1, &strength, &solution, error);
}

static ps_code run_stage(bench_case *c, const ps_scale_point *point, ps_scale_stage stage, ps_error *error) {
    double scale;
    switch (stage) {
    case PS_SCALE_PREPARE:
        PS_TRY(ps_system_prepare(c->system, error));
        return ps_system_scales(c->system, PS_METHOD_COMPLEX, &scale, &scale, error); /* waits for a device */
    case PS_SCALE_REDUCE: return reduce(c, point, error);
    case PS_SCALE_SOLVE: return solve(c, error);
    default: return ps_frame_ssb(c->frames[0], PS_SSB_WAVE, c->image, NULL, NULL, error);
    }
}

/* Of the wall where a device computes, else of the processor, which other work on the machine does not lengthen. */
static double clock_s(const bench_case *c) {
    ps_busy_times times = ps_busy_read();
    return c->on_device ? times.wall_s : times.processor_s;
}

/* Once, and again where that is short: the first time also loads and starts what it needs. */
static ps_code time_stage(bench_case *c, ps_scale_point *point, ps_scale_stage stage, ps_error *error) {
    double shortest_s = INFINITY;
    int64_t n = stage == PS_SCALE_REDUCE ? point->n_frames : 1;
    for (int turn = 0; turn < N_TURNS && (turn == 0 || shortest_s < short_s); turn++) {
        double begin_s = clock_s(c);
        PS_TRY(run_stage(c, point, stage, error));
        double took_s = clock_s(c) - begin_s;
        if (took_s < shortest_s) shortest_s = took_s;
    }
    point->seconds[stage] = shortest_s / (double)n;
    return PS_OK;
}

/* A frame anew, and its counts into it. */
static ps_code put_frame(bench_case *c, int64_t at, double *took_s, ps_error *error) {
    ps_frame_destroy(c->frames[at]);
    c->frames[at] = NULL;
    PS_TRY(ps_frame_create(c->system, PS_U16, &c->frames[at], error));
    double begin_s = clock_s(c);
    PS_TRY(put(c, c->frames[at], error));
    PS_TRY(ps_frame_mean_counts(c->frames[at], NULL, NULL, error)); /* waits for a device */
    *took_s = clock_s(c) - begin_s;
    c->dose[at] = 10;
    return PS_OK;
}

static ps_code put_frames(bench_case *c, ps_scale_point *point, ps_error *error) {
    double shortest_s = INFINITY;
    for (int64_t i = 0; i < point->n_frames; i++)
        for (int turn = 0; turn < N_TURNS && (turn == 0 || shortest_s < short_s); turn++) {
            double took_s;
            PS_TRY(put_frame(c, i, &took_s, error));
            if (took_s < shortest_s) shortest_s = took_s;
        }
    point->seconds[PS_SCALE_PUT] = shortest_s;
    return PS_OK;
}

static ps_code measure(ps_backend *backend, ps_scale_point *point, bench_case *c, ps_error *error) {
    PS_TRY(make_patterns(c, error));
    PS_TRY(ps_system_create(backend, &c->plan.desc, PS_METHODS_PREPARED | PS_METHOD_SSB, &c->system, error));
    PS_TRY(time_stage(c, point, PS_SCALE_PREPARE, error));
    PS_TRY(put_frames(c, point, error));
    for (ps_scale_stage stage = PS_SCALE_REDUCE; stage < PS_SCALE_N_STAGES; stage++) PS_TRY(time_stage(c, point, stage, error));
    return PS_OK;
}

/* ---- all points ---- */

/* Seconds that a point should take once, as the points before it did for their work; 0: nothing was measured yet. */
static double predict(const ps_scale_point *points, int at) {
    double total_s = 0;
    for (int stage = 0; stage < PS_SCALE_N_STAGES; stage++) {
        double work = 0, seconds = 0;
        for (int i = 0; i < at; i++)
            if (isfinite(points[i].seconds[stage])) work += points[i].work[stage], seconds += points[i].seconds[stage];
        double unit_s = work > 0 ? seconds / work : 0;
        int times = stage == PS_SCALE_PUT || stage == PS_SCALE_REDUCE ? (int)points[at].n_frames : 1;
        total_s += unit_s * points[at].work[stage] * times;
    }
    return total_s;
}

/* Whether the point can be measured; else why not. */
static bool fits(const ps_backend_ops *ops, const settings *given, ps_scale_point *points, int at, const ps_plan *plan) {
    ps_scale_point *point = &points[at];
    ps_memory_plan memory = {0};
    ps_error reason = {0};
    double bytes = given->memory_GiB * 1073741824.0, expected_s = predict(points, at);
    ps_code code = ps_backend_memory_plan(ops, &plan->desc, PS_METHODS_PREPARED | PS_METHOD_SSB, PS_U16, (size_t)bytes, point->n_frames,
                                          &memory, &reason);
    point->peak_bytes = (int64_t)memory.peak_bytes;
    if (code != PS_OK)
        snprintf(point->skipped, sizeof point->skipped, "%.150s", reason.text);
    else if (memory.frames_per_batch < point->n_frames)
        snprintf(point->skipped, sizeof point->skipped, "%lld of %lld frames fit %g GiB", (long long)memory.frames_per_batch,
                 (long long)point->n_frames, given->memory_GiB);
    else if (expected_s > given->seconds)
        snprintf(point->skipped, sizeof point->skipped, "about %.0f s, more than --seconds %g", expected_s, given->seconds);
    return !point->skipped[0];
}

static ps_code do_point(ps_backend *backend, const settings *given, ps_scale_point *points, int at, ps_error *error) {
    bench_case c = {.on_device = backend->ops->device_count != NULL};
    ps_error reason = {0};
    ps_code code = ps_scale_plan(&points[at], &c.plan, &reason);
    if (code != PS_OK)
        snprintf(points[at].skipped, sizeof points[at].skipped, "%.150s", reason.text);
    else if (fits(backend->ops, given, points, at, &c.plan))
        code = measure(backend, &points[at], &c, &reason);
    if (code == PS_E_MEMORY) snprintf(points[at].skipped, sizeof points[at].skipped, "%.150s", reason.text);
    release(&c);
    return code == PS_OK || points[at].skipped[0] ? PS_OK : PS_FAIL(error, code, "%s", reason.text);
}

static ps_code measure_all(ps_backend *backend, const settings *given, ps_scale_point *points, int n, ps_error *error) {
    ps_progress *progress = ps_progress_begin("points", n, 10);
    ps_code code = PS_OK;
    for (int i = 0; i < n && code == PS_OK; i++) {
        code = do_point(backend, given, points, i, error);
        ps_progress_update(progress, i + 1, NULL);
    }
    ps_progress_end(progress);
    return code;
}

static ps_code run(const settings *given, ps_error *error) {
    static ps_scale_table table;
    const ps_backend_request request = {.name = given->backend, .where_name = "ptyseries bench scale: --backend"};
    const ps_backend_ops *ops = NULL;
    ps_backend_options options;
    ps_backend *backend = NULL;
    ps_code code = PS_OK;
    PS_TRY(ps_backend_select(&request, &ops, &options, error));
    options.memory_budget_bytes = (size_t)(given->memory_GiB * 1073741824.0);
    if (given->threads > 0) options.n_threads = (int)given->threads;
    PS_TRY(ps_backend_open(ops, &options, &backend, error));
    ps_backend_info(backend, &table.device);
    table.on_device = ops->device_count != NULL;
    snprintf(table.backend, sizeof table.backend, "%s", ops->name);
    table.n = ps_scale_list(table.points);
    PS_GO(measure_all(backend, given, table.points, table.n, error));
    ps_scale_print(&table, stdout);
    if (given->json) PS_GO(ps_scale_write_json(&table, given->json, error));
    if (given->svg) PS_GO(ps_scale_write_svg(&table, given->svg, error));
done:
    ps_backend_close(backend);
    return code;
}

int ps_bench_scale(int n_arguments, char **arguments) {
    settings given = {.seconds = 20, .memory_GiB = 8};
    ps_error error = {0};
    bool help = false;
    ps_code code = parse(&given, n_arguments, arguments, &help, &error);
    if (code == PS_OK && !help) code = run(&given, &error);
    if (code != PS_OK) ps_log(PS_LOG_ERROR, "%s", error.text);
    return ps_code_exit_status(code);
}
