/* Fits of optics: blind, and of the next frame of a series, from a frame that is loaded. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fit_counts.h"
#include "bench/measure.h"
#include "core/log.h"
#include "fit/bands.h"
#include "fit/fit.h"
#include "kernels/backend_bench.h"

static const double strength = 0.01;

/* Problem S with aberrations to third order, and a frame like those of a virus at low magnification. */
static const ps_bench_fit_case published = {.name = "512 x 512 scan, 192 x 192 detector",
                                            .optics = {.voltage_V = 300e3,
                                                       .semiangle_mrad = 30.0,
                                                       .scan_step_A = {0.373, 0.373},
                                                       .detector_pitch_mrad = {30.0 / 54.4, 30.0 / 54.4},
                                                       .detector_center_px = {95.8, 95.3},
                                                       .rotation_deg = 176.3,
                                                       .C_A = {-105.0, 25.0, 900.0, 700.0},
                                                       .angle_rad = {0.0, 0.4, 1.1, -0.7}},
                                            .scan = 512,
                                            .detector = 192,
                                            .mean = 10.0};
static const ps_bench_fit_case virus_like = {.name = "127 x 127 scan, 42 x 42 detector",
                                             .optics = {.voltage_V = 300e3,
                                                        .semiangle_mrad = 1.03,
                                                        .scan_step_A = {31.25, 31.25},
                                                        .detector_pitch_mrad = {0.068084, 0.068084},
                                                        .detector_center_px = {20.1, 20.6},
                                                        .rotation_deg = 120.0,
                                                        .C_A = {-128000.0, 2200.0},
                                                        .angle_rad = {0.0, -1.4}},
                                             .scan = 127,
                                             .detector = 42,
                                             .mean = 10.0};

typedef struct {
    const ps_bench_options *options;
    const ps_bench_fit_case *problem;
    ps_backend *backend;
    ps_plan plan;
    ps_system *system;
    ps_frame *frame;
    double dose;
    /* of the next fit */
    ps_optics start;
    ps_fit_options fit;
    /* of the last one */
    ps_fit_result result;
    double data_s;
    int64_t n_pixels, n_frequencies;
} fit_case;

/* What is known without a fit. */
static ps_optics blind_start(const ps_bench_fit_case *problem) {
    ps_optics start = problem->optics;
    start.rotation_deg = 0.0;
    memset(start.C_A, 0, sizeof start.C_A);
    memset(start.angle_rad, 0, sizeof start.angle_rad);
    return start;
}

static ps_code build(fit_case *c, ps_error *error) {
    const ps_bench_fit_case *problem = c->problem;
    const ps_optics start = blind_start(problem);
    const ps_plan_options options = {.scan_rows = problem->scan,
                                     .scan_columns = problem->scan,
                                     .detector_rows = problem->detector,
                                     .detector_columns = problem->detector,
                                     .upsampling = 1,
                                     .smoothness_phase_inv_A = INFINITY,
                                     .smoothness_complex_inv_A = INFINITY};
    double *mean = NULL;
    ps_code code = PS_OK;
    PS_GO(ps_plan_build(&start, &options, &c->plan, error));
    PS_GO(ps_system_create(c->backend, &c->plan.desc, PS_METHOD_MF, &c->system, error));
    PS_GO(ps_frame_create(c->system, PS_U16, &c->frame, error));
    PS_GO(ps_bench_fit_upload(problem, c->frame, error));
    mean = malloc((size_t)c->plan.desc.n_active * sizeof *mean);
    PS_GO_ALLOC(error, mean);
    PS_GO(ps_frame_mean_counts(c->frame, mean, NULL, error));
    PS_GO(ps_plan_dose(&c->plan, mean, NULL, &c->dose, error));
done:
    free(mean);
    return code;
}

static void release(fit_case *c) {
    ps_frame_destroy(c->frame);
    ps_system_destroy(c->system);
    ps_plan_free(&c->plan);
    free(c);
}

/* From counts that are where the backend wants them to optics and their errors. */
static ps_code fit_frame(void *context, ps_error *error) {
    static const ps_cluster alone = {.n_ranks = 1, .n_node_ranks = 1, .n_nodes = 1};
    fit_case *c = context;
    const ps_backend_ops *ops = c->options->ops;
    ps_fit_data data = {0};
    ps_fit_spread spread = {.cluster = &alone};
    double begin_s = ps_seconds(), means_s, spectra_s;
    ps_code code = PS_OK;
    if (ops->bench) PS_GO(ops->bench->spectra(c->frame, &means_s, &spectra_s, error)); /* anew, as of a frame just loaded */
    PS_GO(ps_fit_data_take(c->frame, &c->plan, c->dose, 0, &data, error));
    PS_GO(ps_fit_bands_make(&data, c->backend, &c->start, 1, strength, &spread, error));
    c->data_s = ps_seconds() - begin_s;
    c->n_pixels = data.n_pixels;
    c->n_frequencies = data.n_frequencies;
    code = ps_fit_run(&spread, &data, &c->start, &c->fit, &c->result, error);
done:
    ps_fit_bands_free(&spread);
    ps_fit_data_free(&data);
    return code;
}

static void choose_free(fit_case *c, bool automatic, bool follows) {
    static const char *const names[] = {"rotation_deg", "C10", "C12", "C21", "C23"};
    c->fit = (ps_fit_options){.automatic = automatic && !follows, .transpose = automatic && !follows};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int quantity = ps_fit_find_name(names[i]);
        c->fit.free[quantity] = automatic ? i < 3 : true;
        c->fit.given[quantity] = follows;
    }
}

/* How far the last fit is from what made the counts, in what is allowed. */
static double distance(const fit_case *c) {
    const ps_optics *truth = &c->problem->optics;
    ps_optics found = c->result.optics;
    if (fabs(remainder(found.rotation_deg - truth->rotation_deg, 360.0)) > 90.0) ps_fit_twin(&c->result.optics, &found);
    double turn = remainder(found.rotation_deg - truth->rotation_deg, 360.0);
    return fmax(fabs(turn) / 0.5, fabs(found.C_A[0] - truth->C_A[0]) / (0.1 * ps_fit_defocus_unit_A(truth)));
}

static ps_code add_fit(fit_case *c, const char *name, double target_s, ps_bench_report *report, ps_error *error) {
    ps_bench_times times;
    char label[96];
    PS_TRY(ps_bench_repeat(c->options->repeats, fit_frame, c, &times, error));
    snprintf(label, sizeof label, "%s: distance from the truth", name);
    PS_TRY(ps_bench_add_check(report, label, distance(c), 1.0, error));
    snprintf(label, sizeof label, "%s, %s", name, c->problem->name);
    ps_bench_row *row = ps_bench_add_row(report, "", label, &times, c->options->quick ? 0.0 : 1e3 * target_s, 0.0);
    if (!row) return PS_OK;
    fprintf(stderr, "measured %s: %.3f ms\n", label, row->median_s * 1e3);
    snprintf(row->rate, sizeof row->rate, "%lld frequencies of %lld pixels, %lld trials; %.1f ms until the search",
             (long long)c->n_frequencies, (long long)c->n_pixels, (long long)c->result.n_evaluations, 1e3 * c->data_s);
    return PS_OK;
}

static ps_code measure(fit_case *c, ps_bench_report *report, ps_error *error) {
    bool automatic = !c->options->ops->bench;
    PS_TRY(build(c, error));
    c->start = blind_start(c->problem);
    choose_free(c, automatic, false);
    PS_TRY(add_fit(c, automatic ? "blind fit, auto" : "blind fit of rotation, C10, C12, C21, C23", automatic ? 2.0 : 0.5, report, error));
    c->start = c->problem->optics;
    c->start.C_A[0] += 0.5 * ps_fit_defocus_unit_A(&c->start);
    c->start.rotation_deg += 0.5;
    choose_free(c, automatic, true);
    return add_fit(c, "fit of the next frame", automatic ? 0.0 : 0.05, report, error);
}

ps_code ps_bench_fit(const ps_bench_options *options, ps_backend *backend, ps_bench_report *report, ps_error *error) {
    fit_case *c = calloc(1, sizeof *c);
    if (!c) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a fit");
    c->options = options;
    c->problem = options->ops->bench && !options->quick ? &published : &virus_like;
    c->backend = backend;
    ps_code code = measure(c, report, error);
    release(c);
    return code;
}
