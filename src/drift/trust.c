#include "drift/trust.h"

#include <math.h>
#include <stdlib.h>

static const double same_hill_px = 2.5, least_overlap = 0.25, half_trusted = 3.0, most_alike = 0.9999;

/* Pearson's correlation where the images overlap; part: of the image that does. */
static double overlap_correlation(int64_t rows, int64_t columns, const float *first, const float *second, const double shift[2],
                                  double *part) {
    int64_t dr = (int64_t)lround(shift[0]), dk = (int64_t)lround(shift[1]), n_rows = rows - llabs(dr), n_columns = columns - llabs(dk);
    double sum[2] = {0}, square[2] = {0}, product = 0.0, n = (double)n_rows * (double)n_columns;
    *part = n_rows > 0 && n_columns > 0 ? n / ((double)rows * (double)columns) : 0.0;
    if (!(*part > 0.0)) return 0.0;
    for (int64_t r = 0; r < n_rows; r++) {
        const float *a = first + (r + (dr < 0 ? -dr : 0)) * columns + (dk < 0 ? -dk : 0);
        const float *b = second + (r + (dr > 0 ? dr : 0)) * columns + (dk > 0 ? dk : 0);
        for (int64_t k = 0; k < n_columns; k++) {
            double x = a[k], y = b[k];
            sum[0] += x;
            sum[1] += y;
            square[0] += x * x;
            square[1] += y * y;
            product += x * y;
        }
    }
    double variance = (square[0] - sum[0] * sum[0] / n) * (square[1] - sum[1] * sum[1] / n);
    return variance > 0.0 ? (product - sum[0] * sum[1] / n) / sqrt(variance) : 0.0;
}

/* Fisher's z of a correlation over the part of the independent pixels that overlaps, in standard deviations. */
static double likeness(double correlation, double n) {
    return atanh(fmin(most_alike, fmax(-most_alike, correlation))) * sqrt(fmax(1.0, n - 3.0));
}

ps_code ps_drift_find_trust(int64_t rows, int64_t columns, const float *first, const float *second, double n_independent,
                            const double shift[2], double *trust, ps_error *error) {
    ps_drift_peaks rivals;
    double part, least = INFINITY;
    PS_TRY(ps_drift_find_peaks(rows, columns, first, second, false, &rivals, error));
    double chosen = overlap_correlation(rows, columns, first, second, shift, &part), chosen_part = part;
    least = likeness(chosen, chosen_part * n_independent);
    for (int i = 0; i < rivals.n; i++) {
        const double *at = rivals.peaks[i].shift;
        if (hypot(at[0] - shift[0], at[1] - shift[1]) < same_hill_px) continue;
        double rival = overlap_correlation(rows, columns, first, second, at, &part), n = fmin(part, chosen_part) * n_independent;
        if (part < least_overlap) continue;
        least = fmin(least, (likeness(chosen, n) - likeness(rival, n)) / M_SQRT2);
    }
    *trust = least > 0.0 ? least / (least + half_trusted) : 0.0;
    return PS_OK;
}
