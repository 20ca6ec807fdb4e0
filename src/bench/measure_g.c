/* g in the ways that it is held: its bytes, how far results of the compact form are from those of the exact one, and how fast b and SSB
 * are from each. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fit_counts.h"
#include "bench/measure.h"
#include "kernels/backend_bench.h"

enum { STREAMED, EXACT, COMPACT, WAYS, PHASE = 0, SSB, IMAGES };
static const char *const way_names[WAYS] = {"not held", "exact", "compact"};
static const double strength = 0.1, most_error = 1e-3; /* of the phase's span: docs/physics.md section 8 */

/* A disc of `radius` pixels. */
typedef struct {
    const char *name;
    int64_t scan, detector;
    double radius;
    bool is_timed; /* with counts made on the device, where the backend has one */
} g_size;

typedef struct {
    const ps_bench_options *options;
    ps_backend *backend;
    ps_plan plan;
    ps_system *system;
    ps_frame *frame;
    double dose;
    size_t g_bytes;
    float *images[2][IMAGES]; /* of the exact form, of the one at hand */
} g_case;

static ps_bench_fit_case problem_of(const g_size *size) {
    double pitch = 30.0 / size->radius, centre = 0.5 * (double)(size->detector - 1);
    return (ps_bench_fit_case){.optics = {.voltage_V = 300e3,
                                          .semiangle_mrad = 30.0,
                                          .scan_step_A = {0.373, 0.373},
                                          .detector_pitch_mrad = {pitch, pitch},
                                          .detector_center_px = {centre + 0.3, centre - 0.2},
                                          .rotation_deg = 176.3,
                                          .C_A = {-105.0, 25.0},
                                          .angle_rad = {0.0, 0.4}},
                               .scan = size->scan,
                               .detector = size->detector,
                               .mean = 10.0};
}

static void release(g_case *c) {
    ps_frame_destroy(c->frame);
    ps_system_destroy(c->system);
    ps_plan_free(&c->plan);
    c->frame = NULL;
    c->system = NULL;
}

static ps_code build(g_case *c, const g_size *size, int way, ps_error *error) {
    const ps_bench_fit_case problem = problem_of(size);
    const ps_plan_options options = {.scan_rows = size->scan,
                                     .scan_columns = size->scan,
                                     .detector_rows = size->detector,
                                     .detector_columns = size->detector,
                                     .upsampling = 1,
                                     .smoothness_phase_inv_A = INFINITY,
                                     .smoothness_complex_inv_A = INFINITY,
                                     .g_storage = way == COMPACT ? PS_G_COMPACT : PS_G_EXACT,
                                     .keeps_g = way != STREAMED};
    const ps_methods methods = PS_METHOD_PHASE | PS_METHOD_SSB;
    ps_memory_plan memory;
    double *mean = NULL;
    ps_code code = PS_OK;
    PS_GO(ps_plan_build(&problem.optics, &options, &c->plan, error));
    PS_GO(ps_backend_memory_plan(c->options->ops, &c->plan.desc, methods, PS_U16, 0, 1, &memory, error));
    c->g_bytes = memory.g_bytes;
    PS_GO(ps_system_create(c->backend, &c->plan.desc, methods, &c->system, error));
    PS_GO(ps_system_prepare(c->system, error));
    PS_GO(ps_frame_create(c->system, PS_U16, &c->frame, error));
    PS_GO(size->is_timed && c->options->ops->bench ? ps_bench_fill(c->frame, 20241024, NULL, error)
                                                   : ps_bench_fit_upload(&problem, c->frame, error));
    mean = malloc((size_t)c->plan.desc.n_active * sizeof *mean);
    PS_GO_ALLOC(error, mean);
    PS_GO(ps_frame_mean_counts(c->frame, mean, NULL, error));
    PS_GO(ps_plan_dose(&c->plan, mean, NULL, &c->dose, error));
done:
    free(mean);
    return code;
}

static ps_code reduce(void *context, ps_error *error) {
    g_case *c = context;
    return ps_frame_reduce(&c->frame, 1, &c->dose, error);
}

static ps_code ssb_phase(void *context, ps_error *error) {
    g_case *c = context;
    double loss;
    return ps_frame_ssb(c->frame, PS_SSB_PHASE, c->images[1][SSB], NULL, &loss, error);
}

static ps_code make_images(g_case *c, float *const images[IMAGES], ps_error *error) {
    const ps_strength both = {strength, strength};
    const ps_solution solution = {.phase_f32 = images[PHASE]};
    PS_TRY(reduce(c, error));
    PS_TRY(ps_system_solve(c->frame, PS_METHOD_PHASE, 1, &both, &solution, error));
    return ps_frame_ssb(c->frame, PS_SSB_PHASE, images[SSB], NULL, NULL, error);
}

/* The largest difference over the first's span; NaN when any is. */
static double error_of_span(int64_t n, const float *exact, const float *found) {
    double least = INFINITY, most = -INFINITY, largest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double difference = fabs((double)found[i] - (double)exact[i]);
        least = fmin(least, exact[i]);
        most = fmax(most, exact[i]);
        if (!(difference <= largest)) largest = difference;
    }
    return largest / (most - least);
}

static ps_code check(g_case *c, const g_size *size, int way, ps_bench_report *report, ps_error *error) {
    static const char *const names[IMAGES] = {"phase", "SSB mean phase"};
    int64_t n = size->scan * size->scan;
    if (way == STREAMED) return make_images(c, c->images[0], error);
    PS_TRY(make_images(c, c->images[1], error));
    for (int i = 0; i < IMAGES; i++) {
        char name[96];
        bool same = memcmp(c->images[0][i], c->images[1][i], (size_t)n * sizeof(float)) == 0;
        snprintf(name, sizeof name, "g %s, %s: %s, %s", way_names[way], size->name, names[i], way == EXACT ? "bits" : "of its span");
        PS_TRY(ps_bench_add_check(report, name, way == EXACT ? (double)!same : error_of_span(n, c->images[0][i], c->images[1][i]),
                                  way == EXACT ? 0.0 : most_error, error));
    }
    return PS_OK;
}

static ps_code add_row(g_case *c, const g_size *size, int way, const char *what, ps_code (*run)(void *context, ps_error *error),
                       ps_bench_report *report, ps_error *error) {
    ps_bench_times times;
    char name[96];
    PS_TRY(ps_bench_repeat(c->options->repeats, run, c, &times, error));
    snprintf(name, sizeof name, "g %s, %s: %s", way_names[way], size->name, what);
    ps_bench_row *row = ps_bench_add_row(report, "", name, &times, 0.0, 0.0);
    if (!row) return PS_OK;
    fprintf(stderr, "measured %s: %.3f ms\n", name, row->median_s * 1e3);
    snprintf(row->rate, sizeof row->rate, "%lld pixels, g of a frame %.1f MiB%s", (long long)c->plan.desc.n_active,
             (double)c->g_bytes / (1 << 20), way == STREAMED ? " if it were held" : "");
    return PS_OK;
}

static ps_code measure_way(g_case *c, const g_size *size, int way, ps_bench_report *report, ps_error *error) {
    PS_TRY(build(c, size, way, error));
    PS_TRY(check(c, size, way, report, error));
    if (!size->is_timed) return PS_OK;
    PS_TRY(add_row(c, size, way, "b, data norm and SSB sums", reduce, report, error));
    return add_row(c, size, way, "SSB mean phase and loss", ssb_phase, report, error);
}

static ps_code measure_size(g_case *c, const g_size *size, ps_bench_report *report, ps_error *error) {
    ps_code code = PS_OK;
    for (int i = 0; i < 2 * IMAGES; i++) {
        float **image = &c->images[i / IMAGES][i % IMAGES];
        *image = malloc((size_t)(size->scan * size->scan) * sizeof **image);
        PS_GO_ALLOC(error, *image);
    }
    for (int way = 0; way < WAYS; way++) {
        PS_GO(measure_way(c, size, way, report, error));
        release(c);
    }
done:
    release(c);
    for (int i = 0; i < 2 * IMAGES; i++) free(c->images[i / IMAGES][i % IMAGES]);
    memset(c->images, 0, sizeof c->images);
    return code;
}

ps_code ps_bench_g(const ps_bench_options *options, ps_backend *backend, ps_bench_report *report, ps_error *error) {
    static const g_size on_host[] = {{"256 x 256", 256, 32, 12.0, true}, {"1024 x 1024", 1024, 12, 4.0, true}};
    static const g_size on_device[] = {{"256 x 256", 256, 32, 12.0, false},
                                       {"1000 x 1000", 1000, 16, 6.0, false},
                                       {"1024 x 1024", 1024, 16, 6.0, false},
                                       {"S at U = 1", 512, 192, 54.4, true},
                                       {"1024 x 1024, large disc", 1024, 48, 20.0, true}};
    bool large = options->ops->bench && !options->quick;
    const g_size *sizes = large ? on_device : on_host;
    size_t n = large ? sizeof on_device / sizeof *on_device : sizeof on_host / sizeof *on_host;
    g_case c = {.options = options, .backend = backend};
    for (size_t i = 0; i < n; i++) PS_TRY(measure_size(&c, &sizes[i], report, error));
    return PS_OK;
}
