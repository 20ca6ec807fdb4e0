/* One small problem through two backends. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/check.h"
#include "bench/problem.h"
#include "method/method.h"

/* The problem as one backend has it. */
typedef struct {
    ps_system *system;
    ps_frame *frame;
} reduced;

static void free_reduced(reduced *r) {
    ps_frame_destroy(r->frame);
    ps_system_destroy(r->system);
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

static ps_code reduce(ps_backend *backend, const ps_plan *plan, const uint16_t *counts, reduced *a, ps_error *error) {
    double *mean = malloc((size_t)plan->desc.n_active * sizeof *mean), *weights = malloc((size_t)plan->desc.n_active * sizeof *weights),
           dose;
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, mean && weights);
    PS_GO(ps_system_create(backend, &plan->desc, PS_METHODS_ALL, &a->system, error));
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

static void keep_larger(double *largest, double value) {
    if (!(value <= *largest)) *largest = value;
}

/* N, eigenvalues and b of every frequency. */
static ps_code compare_systems(const ps_plan *plan, const reduced *found, const reduced *expected, const ps_bench_tolerance *tolerance,
                               ps_bench_report *report, ps_error *error) {
    double largest[3] = {0.0, 0.0, 0.0}, values[2][8 * PS_MAX_ALIASES];
    size_t most = (size_t)(8 * PS_MAX_ALIASES * PS_MAX_ALIASES);
    double *normal = malloc(2 * most * sizeof *normal);
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, normal);
    for (int64_t i = 1; i < plan->desc.n_frequencies; i++) {
        int64_t n = plan->desc.frequencies[i].n_aliases;
        const reduced *both[2] = {found, expected};
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

/* As doubles: images are float. */
static double difference(const ps_method_settings *settings, int result, int64_t pixels, const void *found, const void *expected) {
    int64_t n = ps_method_result_elements(settings, result, pixels);
    if (!ps_result_is_image(&settings->method->results[result])) return ps_bench_difference(n, false, found, expected);
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < n; i++) {
        keep_larger(&largest, fabs((double)((const float *)expected)[i]));
        keep_larger(&difference, fabs((double)((const float *)found)[i] - (double)((const float *)expected)[i]));
    }
    return difference / largest;
}

/* Every result of one entry of a job. choice: which of several; "": there is one. */
static ps_code compare_results(const ps_method_set *set, const char *choice, const ps_plan *plan, const reduced *found,
                               const reduced *expected, const ps_bench_tolerance *tolerance, ps_bench_report *report, ps_error *error) {
    const ps_system_desc *desc = &plan->desc;
    const ps_method *method = set->items[0].method;
    int64_t pixels = desc->scan_rows * desc->scan_columns * desc->upsampling * desc->upsampling;
    double n_data = (double)desc->n_active * (double)(desc->scan_rows * desc->scan_columns - 1);
    ps_method_results a = {0}, b = {0};
    ps_code code = PS_OK;
    PS_GO(ps_method_results_create(set, pixels, &a, error));
    PS_GO(ps_method_results_create(set, pixels, &b, error));
    PS_GO(ps_method_solve(&set->items[0], found->frame, n_data, a.values[0], error));
    PS_GO(ps_method_solve(&set->items[0], expected->frame, n_data, b.values[0], error));
    for (int r = 0; r < method->n_results; r++) {
        char name[160];
        if (!a.values[0][r]) continue;
        snprintf(name, sizeof name, "small: %s/%s%s%s", method->name, method->results[r].name, *choice ? ", " : "", choice);
        PS_GO(ps_bench_add_check(report, name, difference(&set->items[0], r, pixels, a.values[0][r], b.values[0][r]), tolerance->images,
                                 error));
    }
done:
    ps_method_results_free(&a);
    ps_method_results_free(&b);
    return code;
}

static ps_code compare_methods(const ps_plan *plan, const reduced *found, const reduced *expected, const ps_bench_tolerance *tolerance,
                               ps_bench_report *report, ps_error *error) {
    for (int i = 0; i < ps_n_methods; i++)
        for (int k = 0; k < ps_method_table[i]->n_examples; k++) {
            ps_method_set set;
            char choice[32] = "";
            if (ps_method_table[i]->n_examples > 1) snprintf(choice, sizeof choice, "choice %d", k + 1);
            PS_TRY(ps_method_parse(ps_method_table[i], ps_method_table[i]->examples[k], &set, error));
            ps_code code = compare_results(&set, choice, plan, found, expected, tolerance, report, error);
            ps_method_set_free(&set);
            PS_TRY(code);
        }
    return PS_OK;
}

ps_code ps_bench_check_small(ps_backend *backend, const ps_bench_tolerance *tolerance, ps_bench_report *report, ps_error *error) {
    ps_plan plan = {0};
    ps_backend *plain = NULL;
    ps_backend_options options = {0};
    reduced found = {0}, expected = {0};
    uint16_t *counts = NULL;
    ps_code code = PS_OK;
    PS_GO(ps_bench_problem_plan(&ps_bench_tiny, &plan, error));
    counts = make_counts(&plan.desc);
    PS_GO_ALLOC(error, counts);
    PS_GO(ps_backend_open(&ps_backend_cpu_reference, &options, &plain, error));
    PS_GO(reduce(backend, &plan, counts, &found, error));
    PS_GO(reduce(plain, &plan, counts, &expected, error));
    PS_GO(compare_systems(&plan, &found, &expected, tolerance, report, error));
    PS_GO(compare_methods(&plan, &found, &expected, tolerance, report, error));
done:
    free_reduced(&found);
    free_reduced(&expected);
    ps_backend_close(plain);
    ps_plan_free(&plan);
    free(counts);
    return code;
}
