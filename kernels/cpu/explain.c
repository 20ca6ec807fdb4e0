#include "kernels/cpu/explain.h"

#include <math.h>

int64_t ps_cpu_explain_entries(int64_t n_frequencies, const int64_t *first_alias) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n_frequencies; i++) {
        int64_t n = first_alias[i + 1] - first_alias[i];
        sum += n * n;
    }
    return sum;
}

static double mean_diagonal(int64_t n_frequencies, const int64_t *first_alias, const double complex *normal) {
    double sum = 0.0;
    for (int64_t i = 0; i < n_frequencies; i++) {
        int64_t n = first_alias[i + 1] - first_alias[i];
        for (int64_t a = 0; a < n; a++) sum += creal(normal[a * (n + 1)]);
        normal += n * n;
    }
    return sum / (double)first_alias[n_frequencies];
}

/* N + D = L L^H in place, then |L^-1 b|^2. D > 0 keeps every pivot positive but for rounding, which is below it. */
static double explain_one(int64_t n, double ridge, double complex *normal, double complex *right) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double complex *row = normal + i * n;
        for (int64_t j = 0; j < i; j++) {
            const double complex *other = normal + j * n;
            double complex value = row[j];
            for (int64_t k = 0; k < j; k++) value -= row[k] * conj(other[k]);
            row[j] = value / creal(other[j]);
        }
        double pivot = creal(row[i]) + ridge;
        double complex b = right[i];
        for (int64_t k = 0; k < i; k++) {
            pivot -= creal(row[k]) * creal(row[k]) + cimag(row[k]) * cimag(row[k]);
            b -= row[k] * right[k];
        }
        double root = sqrt(fmax(pivot, 0.5 * ridge));
        row[i] = root;
        right[i] = b / root;
        sum += creal(right[i]) * creal(right[i]) + cimag(right[i]) * cimag(right[i]);
    }
    return sum;
}

double ps_cpu_explain(int64_t n_frequencies, const int64_t *first_alias, double strength, double complex *normal, double complex *right) {
    double ridge = strength * mean_diagonal(n_frequencies, first_alias, normal), sum = 0.0;
    if (!(ridge > 0.0)) return 0.0;
    for (int64_t i = 0; i < n_frequencies; i++) {
        int64_t n = first_alias[i + 1] - first_alias[i];
        sum += explain_one(n, ridge, normal, right + first_alias[i]);
        normal += n * n;
    }
    return sum;
}
