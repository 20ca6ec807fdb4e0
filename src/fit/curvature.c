#include "fit/curvature.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double step = 0.1;             /* of the differences, in natural sizes */
static const double least_curvature = 1e-4; /* a standard error of 100 natural sizes: not told at all */

/* Jacobi's rotations: small matrices, once per fit. */
static void rotate(int n, double *a, double *vectors, int p, int q) {
    double apq = a[p * n + q];
    if (apq == 0.0) return;
    double theta = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
    double t = (theta >= 0.0 ? 1.0 : -1.0) / (fabs(theta) + sqrt(theta * theta + 1.0)), c = 1.0 / sqrt(t * t + 1.0), s = t * c;
    for (int k = 0; k < n; k++) {
        double akp = a[k * n + p], akq = a[k * n + q];
        a[k * n + p] = c * akp - s * akq;
        a[k * n + q] = s * akp + c * akq;
    }
    for (int k = 0; k < n; k++) {
        double apk = a[p * n + k], aqk = a[q * n + k], vp = vectors[p * n + k], vq = vectors[q * n + k];
        a[p * n + k] = c * apk - s * aqk;
        a[q * n + k] = s * apk + c * aqk;
        vectors[p * n + k] = c * vp - s * vq;
        vectors[q * n + k] = s * vp + c * vq;
    }
}

static void swap_rows(int n, double *vectors, int i, int j) {
    for (int k = 0; k < n; k++) {
        double kept = vectors[i * n + k];
        vectors[i * n + k] = vectors[j * n + k];
        vectors[j * n + k] = kept;
    }
}

void ps_fit_eigen(int n, double *matrix, double *values, double *vectors) {
    enum { SWEEPS = 40 };
    for (int i = 0; i < n * n; i++) vectors[i] = i % (n + 1) == 0;
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) rotate(n, matrix, vectors, p, q);
    for (int i = 0; i < n; i++) values[i] = matrix[i * (n + 1)];
    for (int i = 0; i < n; i++) {
        int least = i;
        for (int j = i + 1; j < n; j++)
            if (values[j] < values[least]) least = j;
        double kept = values[i];
        values[i] = values[least], values[least] = kept;
        if (least != i) swap_rows(n, vectors, i, least);
    }
}

/* Parameters that can be moved both ways. */
static int list_movable(const ps_fit_problem *problem, const double *values, int *movable) {
    int n = 0;
    for (int i = 0; i < problem->parameters.n; i++) {
        const ps_fit_parameter *p = &problem->parameters.items[i];
        if (values[i] - step * p->size >= p->low && values[i] + step * p->size <= p->high) movable[n++] = i;
    }
    return n;
}

/* Trials: the place; +- along each axis; then ++, +-, -+, -- of each pair. */
static int64_t count_trials(int n) {
    return 1 + 2 * n + 2 * (int64_t)n * (n - 1);
}

static void place_trials(const ps_fit_problem *problem, const double *values, int n, const int *movable, double *places) {
    const ps_fit_parameters *p = &problem->parameters;
    double *to = places;
    for (int64_t t = 0; t < count_trials(n); t++) memcpy(places + t * p->n, values, (size_t)p->n * sizeof *values);
    to += p->n;
    for (int i = 0; i < n; i++)
        for (int sign = 1; sign >= -1; sign -= 2, to += p->n) to[movable[i]] += sign * step * p->items[movable[i]].size;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            for (int signs = 0; signs < 4; signs++, to += p->n) {
                to[movable[i]] += (signs & 2 ? -step : step) * p->items[movable[i]].size;
                to[movable[j]] += (signs & 1 ? -step : step) * p->items[movable[j]].size;
            }
}

/* information: [n, n] minus the second derivatives, times signal. */
static void form_information(int n, const double *fractions, double signal, double *information) {
    const double *pairs = fractions + 1 + 2 * n;
    double scale = signal / (step * step);
    for (int i = 0; i < n; i++) {
        information[i * (n + 1)] = -scale * (fractions[1 + 2 * i] + fractions[2 + 2 * i] - 2.0 * fractions[0]);
        for (int j = 0; j < i; j++, pairs += 4)
            information[i * n + j] = information[j * n + i] = -0.25 * scale * (pairs[0] - pairs[1] - pairs[2] + pairs[3]);
    }
}

/* Covariance in natural sizes over the movable; weak directions into found. */
static void invert(int n, const int *movable, double *information, ps_fit_curvature *found, double *covariance, double *scratch) {
    double *values = scratch, *vectors = scratch + n;
    ps_fit_eigen(n, information, values, vectors);
    memset(covariance, 0, (size_t)(n * n) * sizeof *covariance);
    for (int e = 0; e < n; e++) {
        const double *v = vectors + e * n;
        double curvature = fmax(values[e], least_curvature), error = 1.0 / sqrt(curvature);
        for (int i = 0; i < n * n; i++) covariance[i] += v[i / n] * v[i % n] / curvature;
        if (error > PS_FIT_WEAK) {
            double *weak = found->weak + found->n_weak * found->n;
            for (int i = 0; i < n; i++) weak[movable[i]] = v[i];
            found->weak_error[found->n_weak++] = error;
        }
        for (int i = 0; i < n; i++)
            if (values[e] <= least_curvature && v[i] * v[i] > 0.1) found->is_known[movable[i]] = false;
    }
}

static void read_covariance(const ps_fit_problem *problem, int n, const int *movable, const double *covariance, ps_fit_curvature *found) {
    for (int i = 0; i < found->n; i++) found->correlation[i * (found->n + 1)] = 1.0;
    for (int i = 0; i < n; i++) {
        int at = movable[i];
        found->error[at] = found->is_known[at] ? sqrt(covariance[i * (n + 1)]) * problem->parameters.items[at].size : 0.0;
        for (int j = 0; j < n; j++)
            found->correlation[at * found->n + movable[j]] =
                covariance[i * n + j] / sqrt(covariance[i * (n + 1)] * covariance[j * (n + 1)]);
    }
}

ps_code ps_fit_find_curvature(const ps_fit_problem *problem, const double *values, double signal, ps_fit_curvature *found,
                              ps_error *error) {
    int movable[PS_FIT_MOST_PARAMETERS], n = list_movable(problem, values, movable);
    int64_t n_trials = count_trials(n);
    ps_code code = PS_OK;
    double *places = malloc((size_t)(n_trials * problem->parameters.n + 1) * sizeof *places);
    double *fractions = malloc((size_t)n_trials * sizeof *fractions), *matrices = malloc((size_t)(4 * n * n + n + 1) * sizeof *matrices);
    *found = (ps_fit_curvature){.n = problem->parameters.n};
    PS_GO_ALLOC(error, places);
    PS_GO_ALLOC(error, fractions);
    PS_GO_ALLOC(error, matrices);
    for (int i = 0; i < n; i++) found->is_known[movable[i]] = true;
    place_trials(problem, values, n, movable, places);
    PS_GO(ps_fit_try(problem, n_trials, places, fractions, error));
    form_information(n, fractions, signal, matrices);
    invert(n, movable, matrices, found, matrices + n * n, matrices + 2 * n * n);
    read_covariance(problem, n, movable, matrices + n * n, found);
done:
    free(places);
    free(fractions);
    free(matrices);
    return code;
}
