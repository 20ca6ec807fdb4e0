#include "bench/check.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

enum { N_SAMPLES = 6 };

double ps_bench_difference(int64_t n, bool is_complex, const double *found, const double *expected) {
    double difference = 0.0, largest = 0.0;
    int64_t step = is_complex ? 2 : 1;
    for (int64_t i = 0; i < n * step; i += step) {
        double d = is_complex ? hypot(found[i] - expected[i], found[i + 1] - expected[i + 1]) : fabs(found[i] - expected[i]);
        double size = is_complex ? hypot(expected[i], expected[i + 1]) : fabs(expected[i]);
        if (isnan(d) || isnan(size)) return NAN;
        if (d > difference) difference = d;
        if (size > largest) largest = size;
    }
    return largest > 0.0 ? difference / largest : difference;
}

/* Sampled frequencies: spread over the list, without the zero frequency. */
static int64_t sample(const ps_plan *plan, int index) {
    return 1 + (plan->desc.n_frequencies - 2) * index / (N_SAMPLES - 1);
}

/* The plain path's transfer of one frequency, unknowns first: [dim, n_active]. */
static ps_code plain_transfer(ps_system *plain, const ps_plan *plan, ps_methods method, int64_t frequency, double complex **matrix,
                              ps_error *error) {
    int64_t n = plan->desc.frequencies[frequency].n_aliases, active = plan->desc.n_active, dim = method == PS_METHOD_COMPLEX ? 2 * n : n;
    double complex *t = malloc((size_t)(n * active * 2 + 1) * sizeof *t);
    ps_code code = PS_OK;
    *matrix = malloc((size_t)(dim * active + 1) * sizeof **matrix);
    PS_GO_ALLOC(error, t && *matrix);
    PS_GO(ps_system_get_transfer(plain, frequency, (double *)t, error));
    for (int64_t row = 0; row < dim; row++)
        for (int64_t i = 0; i < active; i++)
            (*matrix)[row * active + i] = t[(row % n * active + i) * 2 + (method == PS_METHOD_PHASE || row >= n)];
done:
    free(t);
    return code;
}

static ps_code open_plain(const ps_plan *plan, ps_backend **backend, ps_system **system, ps_error *error) {
    ps_backend_options options = {0};
    *system = NULL;
    PS_TRY(ps_backend_open(&ps_backend_cpu_reference, &options, backend, error));
    return ps_system_create(*backend, &plan->desc, PS_METHODS_PREPARED, system, error);
}

static void close_plain(ps_backend *backend, ps_system *system) {
    ps_system_destroy(system);
    ps_backend_close(backend);
}

static ps_code compare_normal(ps_system *system, ps_system *plain, ps_methods method, const ps_plan *plan, int64_t frequency,
                              double *difference, ps_error *error) {
    int64_t n = plan->desc.frequencies[frequency].n_aliases, active = plan->desc.n_active, dim = method == PS_METHOD_COMPLEX ? 2 * n : n;
    double complex *matrix = NULL, *expected = malloc((size_t)(dim * dim + 1) * sizeof *expected);
    double complex *found = malloc((size_t)(dim * dim + 1) * sizeof *found);
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, expected && found);
    PS_GO(plain_transfer(plain, plan, method, frequency, &matrix, error));
    PS_GO(ps_system_get_normal(system, method, frequency, (double *)found, error));
    for (int64_t a = 0; a < dim; a++)
        for (int64_t b = 0; b < dim; b++) {
            double complex sum = 0.0;
            for (int64_t i = 0; i < active; i++) sum += conj(matrix[a * active + i]) * matrix[b * active + i];
            expected[a * dim + b] = sum;
        }
    *difference = ps_bench_difference(dim * dim, true, (double *)found, (double *)expected);
done:
    free(matrix);
    free(expected);
    free(found);
    return code;
}

ps_code ps_bench_check_normal(ps_system *system, ps_methods method, const ps_plan *plan, double tolerance, ps_bench_report *report,
                              ps_error *error) {
    ps_backend *backend = NULL;
    ps_system *plain = NULL;
    ps_code code = PS_OK;
    double largest = 0.0;
    PS_GO(open_plain(plan, &backend, &plain, error));
    for (int i = 0; i < N_SAMPLES; i++) {
        double difference = 0.0;
        PS_GO(compare_normal(system, plain, method, plan, sample(plan, i), &difference, error));
        if (!(difference <= largest)) largest = difference;
    }
    PS_GO(ps_bench_add_check(report, method == PS_METHOD_PHASE ? "N, phase" : "N, complex", largest, tolerance, error));
done:
    close_plain(backend, plain);
    return code;
}

static ps_code compare_right_side(ps_frame *frame, ps_system *plain, ps_methods method, const ps_plan *plan, double dose, int64_t frequency,
                                  double *difference, ps_error *error) {
    int64_t n = plan->desc.frequencies[frequency].n_aliases, active = plan->desc.n_active, dim = method == PS_METHOD_COMPLEX ? 2 * n : n;
    double complex *matrix = NULL, *g = malloc((size_t)active * sizeof *g), expected[2 * PS_MAX_ALIASES], found[2 * PS_MAX_ALIASES];
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, g);
    PS_GO(plain_transfer(plain, plan, method, frequency, &matrix, error));
    PS_GO(ps_frame_get_spectrum(frame, frequency, dose, (double *)g, error));
    PS_GO(ps_frame_get_right_side(frame, method, frequency, (double *)found, NULL, error));
    for (int64_t a = 0; a < dim; a++) {
        expected[a] = 0.0;
        for (int64_t i = 0; i < active; i++) expected[a] += conj(matrix[a * active + i]) * g[i];
    }
    *difference = ps_bench_difference(dim, true, (double *)found, (double *)expected);
done:
    free(matrix);
    free(g);
    return code;
}

ps_code ps_bench_check_right_side(ps_frame *frame, ps_methods method, const ps_plan *plan, double dose, double tolerance,
                                  ps_bench_report *report, ps_error *error) {
    ps_backend *backend = NULL;
    ps_system *plain = NULL;
    ps_code code = PS_OK;
    double largest = 0.0;
    PS_GO(open_plain(plan, &backend, &plain, error));
    for (int i = 0; i < N_SAMPLES; i++) {
        double difference = 0.0;
        PS_GO(compare_right_side(frame, plain, method, plan, dose, sample(plan, i), &difference, error));
        if (!(difference <= largest)) largest = difference;
    }
    PS_GO(ps_bench_add_check(report, method == PS_METHOD_PHASE ? "b, phase" : "b, complex", largest, tolerance, error));
done:
    close_plain(backend, plain);
    return code;
}

/* Section 3's sum over the scan, of one pixel at one frequency. */
static double complex plain_sum(const ps_plan *plan, const ps_frequency *f, double dose, int64_t pixel,
                                double (*count)(void *context, int64_t position, int64_t pixel), void *context) {
    const ps_system_desc *desc = &plan->desc;
    double complex sum = 0.0;
    for (int64_t row = 0; row < desc->scan_rows; row++)
        for (int64_t column = 0; column < desc->scan_columns; column++) {
            double turns = (double)(row * f->row % desc->scan_rows) / (double)desc->scan_rows +
                           (double)(column * f->column % desc->scan_columns) / (double)desc->scan_columns;
            sum += count(context, row * desc->scan_columns + column, pixel) * cexp(-2.0 * M_PI * I * turns);
        }
    return sum / ((double)(desc->scan_rows * desc->scan_columns) * dose);
}

ps_code ps_bench_check_spectrum(ps_frame *frame, const ps_plan *plan, double dose,
                                double (*count)(void *context, int64_t position, int64_t pixel), void *context, double tolerance,
                                ps_bench_report *report, ps_error *error) {
    enum { N_PIXELS = 4 };
    const ps_system_desc *desc = &plan->desc;
    double complex *g = malloc((size_t)desc->n_active * sizeof *g), found[N_SAMPLES * N_PIXELS], expected[N_SAMPLES * N_PIXELS];
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, g);
    for (int i = 0; i < N_SAMPLES; i++) {
        int64_t frequency = sample(plan, i);
        PS_GO(ps_frame_get_spectrum(frame, frequency, dose, (double *)g, error));
        for (int j = 0; j < N_PIXELS; j++) {
            int64_t pixel = (desc->n_active - 1) * j / (N_PIXELS - 1);
            found[i * N_PIXELS + j] = g[pixel];
            expected[i * N_PIXELS + j] = plain_sum(plan, &desc->frequencies[frequency], dose, desc->active[pixel], count, context);
        }
    }
    double difference = ps_bench_difference(N_SAMPLES * N_PIXELS, true, (double *)found, (double *)expected);
    PS_GO(ps_bench_add_check(report, "g", difference, tolerance, error));
done:
    free(g);
    return code;
}
