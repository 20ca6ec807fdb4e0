#include "optics/picture.h"

#include <math.h>
#include <stdlib.h>

void ps_picture_free(ps_picture *p) {
    free(p->filled);
    free(p->smooth);
    free(p->piece);
    free(p->silent);
    free(p->left_out);
    free(p->sorted);
    free(p->queue);
}

ps_code ps_picture_create(int64_t rows, int64_t columns, ps_picture *p, ps_error *error) {
    size_t n = (size_t)(rows * columns);
    *p = (ps_picture){.rows = rows, .columns = columns};
    p->filled = malloc(n * sizeof *p->filled);
    p->smooth = malloc(n * sizeof *p->smooth);
    p->piece = calloc(n, sizeof *p->piece);
    p->silent = calloc(n, sizeof *p->silent);
    p->left_out = calloc(n, sizeof *p->left_out);
    p->sorted = malloc(n * sizeof *p->sorted);
    p->queue = malloc(n * sizeof *p->queue);
    if (p->filled && p->smooth && p->piece && p->silent && p->left_out && p->sorted && p->queue) return PS_OK;
    ps_picture_free(p);
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to measure the bright-field disc");
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ps_picture_median(double *values, int64_t n) {
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

bool ps_picture_touches_edge(const ps_picture *p) {
    for (int64_t row = 0; row < p->rows; row++)
        if (p->piece[row * p->columns] || p->piece[(row + 1) * p->columns - 1]) return true;
    for (int64_t column = 0; column < p->columns; column++)
        if (p->piece[column] || p->piece[(p->rows - 1) * p->columns + column]) return true;
    return false;
}

double ps_picture_outside_px(const ps_disc *disc, int64_t row, int64_t column, const double pitch[2]) {
    double a = ((double)row - disc->center_px[0]) * pitch[0], b = ((double)column - disc->center_px[1]) * pitch[1];
    return (hypot(a, b) - disc->radius) / sqrt(pitch[0] * pitch[1]);
}

double ps_picture_level(ps_picture *p, const ps_disc *disc, const double pitch[2], double from, double to, double fallback) {
    int64_t n = 0;
    for (int64_t i = 0; i < p->rows * p->columns; i++) {
        double distance = ps_picture_outside_px(disc, i / p->columns, i % p->columns, pitch);
        if (distance >= from && distance <= to) p->sorted[n++] = p->filled[i];
    }
    return n > 0 ? ps_picture_median(p->sorted, n) : fallback;
}

/* Part of the circle that lies beyond the edge, and how much of the rest is not as bright as it should be, or bright outside the circle. */
void ps_picture_compare(const ps_picture *p, const double pitch[2], ps_disc *disc, double *out_of_round) {
    double circle = M_PI * disc->radius * disc->radius / (pitch[0] * pitch[1]), inside = 0.0, wrong = 0.0;
    for (int64_t i = 0; i < p->rows * p->columns; i++) {
        double distance = ps_picture_outside_px(disc, i / p->columns, i % p->columns, pitch);
        inside += fmin(fmax(0.5 - distance, 0.0), 1.0);
        if (fabs(distance) > 1.0) wrong += p->piece[i] != (distance < 0.0);
    }
    disc->missing = disc->is_clipped ? fmax(1.0 - inside / circle, 0.0) : 0.0;
    *out_of_round = wrong / fmax(inside, 1.0);
}

ps_code ps_picture_refuse(const ps_disc *disc, const double pitch[2], double out_of_round, ps_error *error) {
    return PS_FAIL(
        error, PS_E_INPUT,
        "there is no bright-field disc to measure: what is bright differs from a disc in %.0f %% of its area (best circle: centre "
        "(%.1f, %.1f) px, radius %.1f px)",
        100.0 * out_of_round, disc->center_px[0], disc->center_px[1], disc->radius / sqrt(pitch[0] * pitch[1]));
}
