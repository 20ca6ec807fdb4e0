#include "drift/move.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { TAPS = 8 };

/* Lanczos' window of TAPS points, around a fraction of a pixel; the weights add up to 1. */
static void find_weights(double fraction, double weights[TAPS]) {
    double sum = 0.0;
    for (int i = 0; i < TAPS; i++) {
        double x = (double)(i - TAPS / 2 + 1) - fraction, half = 0.5 * TAPS;
        weights[i] = fabs(x) < 1e-12 ? 1.0 : fabs(x) >= half ? 0.0 : half * sin(M_PI * x) * sin(M_PI * x / half) / (M_PI * M_PI * x * x);
        sum += weights[i];
    }
    for (int i = 0; i < TAPS; i++) weights[i] /= sum;
}

/* Along one axis: n places with `step` between them in each of `lines` lines with `line` between those. first, last: of what is reached. */
static void move_along(int64_t n, int64_t step, int64_t lines, int64_t line, const float *from, double shift, float *to, int64_t range[2]) {
    double whole = floor(shift), weights[TAPS];
    int64_t offset = (int64_t)whole - TAPS / 2 + 1;
    bool is_whole = shift == whole;
    find_weights(shift - whole, weights);
    int64_t before = is_whole ? (int64_t)whole : offset, behind = is_whole ? (int64_t)whole : offset + TAPS - 1;
    range[0] = before < 0 ? -before : 0;
    range[1] = behind > 0 ? n - behind : n;
    for (int64_t l = 0; l < lines; l++)
        for (int64_t i = 0; i < n; i++) {
            double sum = 0.0;
            bool is_inside = i >= range[0] && i < range[1];
            for (int t = 0; is_inside && !is_whole && t < TAPS; t++) sum += weights[t] * from[l * line + (i + offset + t) * step];
            if (is_inside && is_whole) sum = from[l * line + (i + (int64_t)whole) * step];
            to[l * line + i * step] = (float)sum;
        }
}

void ps_drift_move_back(int64_t rows, int64_t columns, const float *image, const double shift[2], float *to, int64_t inside[4],
                        float *room) {
    bool is_far = fabs(shift[0]) >= (double)rows || fabs(shift[1]) >= (double)columns;
    memset(inside, 0, 4 * sizeof *inside);
    memset(to, 0, (size_t)(rows * columns) * sizeof *to);
    if (is_far) return;
    move_along(columns, 1, rows, columns, image, shift[1], room, inside + 2);
    move_along(rows, columns, columns, 1, room, shift[0], to, inside);
    if (inside[0] < inside[1] && inside[2] < inside[3]) return;
    memset(inside, 0, 4 * sizeof *inside);
    memset(to, 0, (size_t)(rows * columns) * sizeof *to);
}
