/* One small problem through two backends. */
#include <math.h>
#include <stdlib.h>

#include "bench/check.h"
#include "bench/problem.h"

static const ps_methods all_methods = PS_METHOD_PHASE | PS_METHOD_COMPLEX | PS_METHOD_SSB;
static const ps_strength strengths[] = {{0.05, 0.02}, {1.0, 0.5}};
enum { N_STRENGTHS = sizeof strengths / sizeof *strengths };

/* What one backend makes of the problem. */
typedef struct {
    ps_system *system;
    ps_frame *frame;
    double *phase, *complex_phase, *log_amplitude; /* [N_STRENGTHS, image] */
    double *wave, *mean_phase;                     /* [image] */
    double curves[8], loss;
} answers;

static void free_answers(answers *a) {
    if (a->frame) ps_frame_destroy(a->frame);
    if (a->system) ps_system_destroy(a->system);
    free(a->phase);
    free(a->complex_phase);
    free(a->log_amplitude);
    free(a->wave);
    free(a->mean_phase);
}

/* Counts with structure in both scan and detector, so that images are not noise alone. */
static uint16_t *make_counts(const ps_system_desc *desc) {
    int64_t pixels = desc->detector_rows * desc->detector_columns, positions = desc->scan_rows * desc->scan_columns;
    uint16_t *counts = malloc((size_t)(positions * pixels) * sizeof *counts);
    uint32_t random = 12345;
    for (int64_t i = 0; counts && i < positions * pixels; i++) {
        int64_t position = i / pixels, row = position / desc->scan_columns, column = position % desc->scan_columns;
        random = random * 1664525u + 1013904223u;
        double wave = sin(0.9 * (double)row + 0.4 * (double)column + 0.002 * (double)(i % pixels));
        counts[i] = (uint16_t)(60.0 + 20.0 * wave + (random >> 28));
    }
    return counts;
}

static ps_code reduce(ps_backend *backend, const ps_plan *plan, const uint16_t *counts, answers *a, ps_error *error) {
    double *mean = malloc((size_t)plan->desc.n_active * sizeof *mean), *weights = malloc((size_t)plan->desc.n_active * sizeof *weights),
           dose;
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, mean && weights);
    PS_GO(ps_system_create(backend, &plan->desc, all_methods, &a->system, error));
    PS_GO(ps_frame_create(a->system, PS_U16, &a->frame, error));
    PS_GO(ps_frame_upload(a->frame, 0, plan->desc.scan_rows * plan->desc.scan_columns, counts, error));
    PS_GO(ps_frame_mean_counts(a->frame, mean, NULL, error));
    PS_GO(ps_plan_dose(plan, mean, NULL, &dose, error));
    ps_plan_poisson_weights(plan, mean, dose, weights);
    PS_GO(ps_system_set_weights(a->system, weights, error));
    PS_GO(ps_system_prepare(a->system, error));
    PS_GO(ps_frame_reduce(&a->frame, 1, &dose, error));
done:
    free(mean);
    free(weights);
    return code;
}

static ps_code answer(ps_backend *backend, const ps_plan *plan, const uint16_t *counts, answers *a, ps_error *error) {
    size_t n = (size_t)(plan->desc.scan_rows * plan->desc.scan_columns * plan->desc.upsampling * plan->desc.upsampling);
    ps_code code = PS_OK;
    a->phase = malloc(N_STRENGTHS * n * sizeof(double));
    a->complex_phase = malloc(N_STRENGTHS * n * sizeof(double));
    a->log_amplitude = malloc(N_STRENGTHS * n * sizeof(double));
    a->wave = malloc(n * sizeof(double));
    a->mean_phase = malloc(n * sizeof(double));
    PS_GO_ALLOC(error, a->phase && a->complex_phase && a->log_amplitude && a->wave && a->mean_phase);
    PS_GO(reduce(backend, plan, counts, a, error));
    ps_solution phase = {.phase_f64 = a->phase, .residual = a->curves, .effective_dof = a->curves + 2};
    ps_solution both = {
        .phase_f64 = a->complex_phase, .log_amplitude_f64 = a->log_amplitude, .residual = a->curves + 4, .effective_dof = a->curves + 6};
    PS_GO(ps_system_solve(a->frame, PS_METHOD_PHASE, N_STRENGTHS, strengths, &phase, error));
    PS_GO(ps_system_solve(a->frame, PS_METHOD_COMPLEX, N_STRENGTHS, strengths, &both, error));
    PS_GO(ps_frame_ssb(a->frame, PS_SSB_WAVE, NULL, a->wave, NULL, error));
    PS_GO(ps_frame_ssb(a->frame, PS_SSB_PHASE, NULL, a->mean_phase, &a->loss, error));
done:
    return code;
}

static ps_code compare_images(const ps_plan *plan, const answers *found, const answers *expected, const ps_bench_tolerance *tolerance,
                              ps_bench_report *report, ps_error *error) {
    int64_t n = plan->desc.scan_rows * plan->desc.scan_columns * plan->desc.upsampling * plan->desc.upsampling;
    const struct {
        const char *name;
        int64_t n;
        const double *found, *expected;
    } images[] = {{"small: phase images", N_STRENGTHS * n, found->phase, expected->phase},
                  {"small: complex method's phase images", N_STRENGTHS * n, found->complex_phase, expected->complex_phase},
                  {"small: log-amplitude images", N_STRENGTHS * n, found->log_amplitude, expected->log_amplitude},
                  {"small: SSB image", n, found->wave, expected->wave},
                  {"small: SSB mean phase", n, found->mean_phase, expected->mean_phase},
                  {"small: SSB loss", 1, &found->loss, &expected->loss},
                  {"small: residuals and effective degrees of freedom", 8, found->curves, expected->curves}};
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        PS_TRY(ps_bench_add_check(report, images[i].name, ps_bench_difference(images[i].n, false, images[i].found, images[i].expected),
                                  tolerance->images, error));
    return PS_OK;
}

static void keep_larger(double *largest, double value) {
    if (!(value <= *largest)) *largest = value;
}

/* N, eigenvalues and b of every frequency. */
static ps_code compare_systems(const ps_plan *plan, const answers *found, const answers *expected, const ps_bench_tolerance *tolerance,
                               ps_bench_report *report, ps_error *error) {
    double largest[3] = {0.0, 0.0, 0.0}, values[2][8 * PS_MAX_ALIASES];
    size_t most = (size_t)(8 * PS_MAX_ALIASES * PS_MAX_ALIASES);
    double *normal = malloc(2 * most * sizeof *normal);
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, normal);
    for (int64_t i = 1; i < plan->desc.n_frequencies; i++) {
        int64_t n = plan->desc.frequencies[i].n_aliases;
        const answers *both[2] = {found, expected};
        for (int side = 0; side < 2; side++)
            PS_GO(ps_system_get_normal(both[side]->system, PS_METHOD_COMPLEX, i, normal + (size_t)side * most, error));
        keep_larger(&largest[0], ps_bench_difference(4 * n * n, true, normal, normal + most));
        for (int side = 0; side < 2; side++) PS_GO(ps_system_get_eigenvalues(both[side]->system, i, values[side], error));
        keep_larger(&largest[1], ps_bench_difference(n, false, values[0], values[1]));
        for (int side = 0; side < 2; side++)
            PS_GO(ps_frame_get_right_side(both[side]->frame, PS_METHOD_COMPLEX, i, values[side], NULL, error));
        keep_larger(&largest[2], ps_bench_difference(2 * n, true, values[0], values[1]));
    }
    PS_GO(ps_bench_add_check(report, "small: N", largest[0], tolerance->normal, error));
    PS_GO(ps_bench_add_check(report, "small: eigenvalues", largest[1], tolerance->eigenvalues, error));
    PS_GO(ps_bench_add_check(report, "small: b", largest[2], tolerance->right_side, error));
done:
    free(normal);
    return code;
}

ps_code ps_bench_check_small(ps_backend *backend, const ps_bench_tolerance *tolerance, ps_bench_report *report, ps_error *error) {
    ps_plan plan = {0};
    ps_backend *plain = NULL;
    ps_backend_options options = {0};
    answers found = {0}, expected = {0};
    uint16_t *counts = NULL;
    ps_code code = PS_OK;
    PS_GO(ps_bench_problem_plan(&ps_bench_tiny, &plan, error));
    counts = make_counts(&plan.desc);
    PS_GO_ALLOC(error, counts);
    PS_GO(ps_backend_open(&ps_backend_cpu_reference, &options, &plain, error));
    PS_GO(answer(backend, &plan, counts, &found, error));
    PS_GO(answer(plain, &plan, counts, &expected, error));
    PS_GO(compare_systems(&plan, &found, &expected, tolerance, report, error));
    PS_GO(compare_images(&plan, &found, &expected, tolerance, report, error));
done:
    free_answers(&found);
    free_answers(&expected);
    ps_backend_close(plain);
    ps_plan_free(&plan);
    free(counts);
    return code;
}
