#include "input/adapters/bad_pixels.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RADIUS = 2, MAX_NEIGHBOURS = (2 * RADIUS + 1) * (2 * RADIUS + 1) - 1, MIN_NEIGHBOURS = 3, HIGHEST_IGNORED = 2 };
static const double MAD_TO_SIGMA = 1.4826; /* of a normal distribution */

typedef struct {
    const double *mean;
    const uint8_t *bad;
    int64_t rows, columns, n_positions;
    double sigma;
} pattern;

static bool is_good(const pattern *p, int64_t u, int64_t v) {
    int64_t i = u * p->columns + v;
    return isfinite(p->mean[i]) && !(p->bad && p->bad[i]);
}

static void sort_values(double *values, int n) { /* insertion: n is at most 24 */
    for (int i = 1; i < n; i++) {
        double value = values[i];
        int j = i;
        for (; j > 0 && values[j - 1] > value; j--) values[j] = values[j - 1];
        values[j] = value;
    }
}

static double sorted_median(const double *values, int n) {
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

static int collect_neighbours(const pattern *p, int64_t u, int64_t v, double *values) {
    int n = 0;
    for (int64_t i = u - RADIUS; i <= u + RADIUS; i++)
        for (int64_t j = v - RADIUS; j <= v + RADIUS; j++) {
            bool inside = i >= 0 && j >= 0 && i < p->rows && j < p->columns, itself = i == u && j == v;
            if (inside && !itself && is_good(p, i, j)) values[n++] = p->mean[i * p->columns + j];
        }
    return n;
}

static bool is_hot(const pattern *p, int64_t u, int64_t v) {
    double values[MAX_NEIGHBOURS], deviations[MAX_NEIGHBOURS];
    int n = is_good(p, u, v) ? collect_neighbours(p, u, v, values) : 0;
    if (n < MIN_NEIGHBOURS) return false;
    sort_values(values, n);
    double median = sorted_median(values, n), rest = values[n - 1 - HIGHEST_IGNORED], reference = rest > median ? rest : median;
    for (int i = 0; i < n; i++) deviations[i] = fabs(values[i] - median);
    sort_values(deviations, n);
    double scatter = MAD_TO_SIGMA * sorted_median(deviations, n), positions = (double)p->n_positions;
    double counts = fmax(reference * positions, 1.0); /* an empty neighbourhood still may see one count by chance */
    return p->mean[u * p->columns + v] - reference > p->sigma * hypot(sqrt(counts) / positions, scatter);
}

ps_code ps_hot_pixels(const double *mean, int64_t n_positions, int64_t rows, int64_t columns, double sigma, const uint8_t *bad,
                      uint8_t *hot, int64_t *n_hot, ps_error *error) {
    if (!(sigma > 0) || n_positions < 1)
        return PS_FAIL(error, PS_E_ARGUMENT, "hot pixels: sigma %g over %lld positions, expected both above 0", sigma,
                       (long long)n_positions);
    pattern p = {mean, bad, rows, columns, n_positions, sigma};
    *n_hot = 0;
    for (int64_t u = 0; u < rows; u++)
        for (int64_t v = 0; v < columns; v++) *n_hot += hot[u * columns + v] = is_hot(&p, u, v);
    return PS_OK;
}
