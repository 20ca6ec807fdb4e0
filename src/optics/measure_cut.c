/* A disc that gaps cut into pieces, or that is not where its area and centroid would have it: the circle of the rim that is seen. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "optics/circle.h"
#include "optics/measure_cut.h"
#include "optics/rim.h"

enum { WIDEST_GAP = 64, RIM_ROUNDS = 4 };
static const double most_out_of_round = 0.25; /* of the disc's area may differ from a circle, gaps apart */
static const double most_rim_wrong = 0.5;     /* of the rim that is seen may lie elsewhere than the circle's */
static const double least_rim_seen = 0.25;    /* of the circle */
static const double silent_level = 0.02;      /* of the disc's, for pixels that do not count */
static const double surely_silent = 40.0;     /* counts that pixels should have had before their having none says that they do not count */

/* Pixels of a row or column, `step` apart, that lie in runs of dark ones too long for chance. */
static void find_runs(ps_picture *p, const uint8_t *dark, int64_t begin, int64_t step, int64_t length, int64_t shortest) {
    for (int64_t i = 0, end; i < length; i = end + 1) {
        for (end = i; end < length && dark[begin + end * step]; end++) continue;
        for (int64_t k = i; end - i >= shortest && k < end; k++)
            if (!p->silent[begin + k * step]) p->silent[begin + k * step] = PS_SILENT_ZERO;
    }
}

/* Zeros by chance are told from pixels that do not count by the length of their run: the smallest mean there is stands for one count. */
void ps_picture_find_silent(ps_picture *p, const double *mean, const uint8_t *bad, double plateau) {
    int64_t n = p->rows * p->columns;
    double one_count = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        p->silent[i] = (bad && bad[i]) || !isfinite(mean[i]) ? PS_SILENT_BAD : PS_SILENT_NOT;
        p->left_out[i] = p->silent[i] || mean[i] <= silent_level * plateau;
        if (!p->silent[i] && mean[i] > 0.0) one_count = fmin(one_count, mean[i]);
    }
    p->one_count = one_count;
    double shortest = fmin(ceil(surely_silent * one_count / plateau), (double)n);
    for (int64_t row = 0; row < p->rows; row++) find_runs(p, p->left_out, row * p->columns, 1, p->columns, (int64_t)shortest);
    for (int64_t column = 0; column < p->columns; column++) find_runs(p, p->left_out, column, p->columns, p->rows, (int64_t)shortest);
}

/* The pixel next to (row, column) in a direction, beyond pixels that never count; -1: none that is bright. */
static int64_t next_bright(const ps_picture *p, int64_t row, int64_t column, const int step[2], double threshold) {
    for (int k = 0; k <= WIDEST_GAP; k++) {
        row += step[0];
        column += step[1];
        if (row < 0 || column < 0 || row >= p->rows || column >= p->columns) return -1;
        int64_t pixel = row * p->columns + column;
        if (p->smooth[pixel] > threshold) return pixel;
        if (!p->silent[pixel]) return -1;
    }
    return -1;
}

/* Adds to the piece what is bright on the other side of gaps; returns its size. */
int64_t ps_picture_join(ps_picture *p, double threshold) {
    static const int steps[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    int64_t n = 0;
    for (int64_t i = 0; i < p->rows * p->columns; i++)
        if (p->piece[i]) p->queue[n++] = i;
    for (int64_t at = 0; at < n; at++)
        for (int k = 0; k < 4; k++) {
            int64_t pixel = next_bright(p, p->queue[at] / p->columns, p->queue[at] % p->columns, steps[k], threshold);
            if (pixel < 0 || p->piece[pixel]) continue;
            p->piece[pixel] = 1;
            p->queue[n++] = pixel;
        }
    return n;
}

/* Where the pattern falls through the threshold behind a bright pixel; nothing at the detector's edge, nor where the pixel behind is bad.
 */
static int64_t add_crossing(const ps_picture *p, int64_t row, int64_t column, const int step[2], double threshold, const double pitch[2],
                            double *points, int64_t n) {
    int64_t r = row + step[0], c = column + step[1], pixel = row * p->columns + column, other = r * p->columns + c;
    if (r < 0 || c < 0 || r >= p->rows || c >= p->columns || p->silent[other] == PS_SILENT_BAD || p->smooth[other] > threshold) return n;
    double part = (p->smooth[pixel] - threshold) / (p->smooth[pixel] - p->smooth[other]);
    points[2 * n] = ((double)row + part * step[0]) * pitch[0];
    points[2 * n + 1] = ((double)column + part * step[1]) * pitch[1];
    return n + 1;
}

/* The outer edge only: the first and the last bright pixel of each row and column, so that the sides of gaps do not count. points: [n, 2]
 */
static int64_t outline_points(const ps_picture *p, double threshold, const double pitch[2], double *points) {
    int64_t n = 0;
    for (int axis = 0; axis < 2; axis++) {
        int64_t n_lines = axis == 0 ? p->rows : p->columns, length = axis == 0 ? p->columns : p->rows;
        int64_t along = axis == 0 ? 1 : p->columns, across = axis == 0 ? p->columns : 1;
        for (int64_t line = 0; line < n_lines; line++) {
            int64_t first = 0, last = length - 1;
            while (first < length && !p->piece[line * across + first * along]) first++;
            while (last > first && !p->piece[line * across + last * along]) last--;
            if (first == length) continue;
            const int back[2] = {axis == 0 ? 0 : -1, axis == 0 ? -1 : 0}, on[2] = {-back[0], -back[1]};
            n = add_crossing(p, axis == 0 ? line : first, axis == 0 ? first : line, back, threshold, pitch, points, n);
            n = add_crossing(p, axis == 0 ? line : last, axis == 0 ? last : line, on, threshold, pitch, points, n);
        }
    }
    return n;
}

static ps_code fit_outline(const ps_picture *p, double threshold, const double pitch[2], ps_disc *disc, ps_error *error) {
    ps_code code = PS_OK;
    double center[2], *points = malloc((size_t)(4 * (p->rows + p->columns)) * sizeof *points);
    PS_GO_ALLOC(error, points);
    int64_t n = outline_points(p, threshold, pitch, points);
    PS_GO(ps_circle_fit(points, n, center, &disc->radius, error));
    for (int axis = 0; axis < 2; axis++) disc->center_px[axis] = center[axis] / pitch[axis];
done:
    free(points);
    return code;
}

static ps_rim_view view_of(ps_picture *p, const double pitch[2], const ps_disc *disc) {
    double near = ps_picture_level(p, disc, pitch, 2.0, 4.0, 0.0),
           background = fmin(near, ps_picture_level(p, disc, pitch, 4.0, 8.0, near));
    double inner = -fmax(2.0, 0.3 * disc->radius / sqrt(pitch[0] * pitch[1])); /* clear of a soft rim */
    double plateau = fmax(ps_picture_level(p, disc, pitch, -INFINITY, inner, disc->plateau), disc->plateau);
    return (ps_rim_view){.rows = p->rows,
                         .columns = p->columns,
                         .pitch = pitch,
                         .image = p->filled,
                         .silent = p->silent,
                         .background = background < 0.5 * plateau ? background : 0.0,
                         .plateau = plateau,
                         .fullest = 1.0 + 3.0 * sqrt(fmin(p->one_count / plateau, 1.0))};
}

/* Whether no pixels that never count lie inside the disc or at its rim, and no more than a part of the rim is elsewhere than it should be.
 */
bool ps_picture_is_whole(ps_picture *p, const double pitch[2], const ps_disc *disc, double most_wrong) {
    double seen, wrong;
    ps_rim_view view = view_of(p, pitch, disc);
    if (ps_rim_leave_out(&view, disc, p->left_out) > 0) return false;
    ps_rim_misfit(&view, p->left_out, disc, &seen, &wrong);
    return wrong <= most_wrong;
}

static ps_code refuse_pieces(const ps_disc *disc, const double pitch[2], double seen, double wrong, ps_error *error) {
    return PS_FAIL(error, PS_E_INPUT,
                   "there is no bright-field disc to measure: the bright pieces do not make one circle (best: centre (%.1f, %.1f) px, "
                   "radius %.1f px; %.0f %% of its rim is seen, %.0f %% of that is not where it should be); give the centre and the size, "
                   "or a mask of what does not count",
                   disc->center_px[0], disc->center_px[1], disc->radius / sqrt(pitch[0] * pitch[1]), 100.0 * seen, 100.0 * wrong);
}

/* A shadow that is not dark enough to be a gap leaves its part of the rim elsewhere: the circle of the other parts. */
static ps_code refine_without_wrong(ps_picture *p, const double pitch[2], ps_disc *disc, ps_error *error) {
    double seen = 0.0, wrong = 1.0;
    bool is_found = true;
    for (int round = 0; is_found && round < RIM_ROUNDS; round++) {
        ps_rim_view view = view_of(p, pitch, disc);
        ps_rim_leave_out(&view, disc, p->left_out);
        ps_rim_leave_out_wrong(&view, disc, p->left_out);
        ps_rim_misfit(&view, p->left_out, disc, &seen, &wrong);
        is_found = seen >= least_rim_seen && ps_rim_refine(&view, p->left_out, disc);
    }
    ps_rim_view view = view_of(p, pitch, disc);
    ps_rim_leave_out(&view, disc, p->left_out);
    return is_found ? PS_OK : refuse_pieces(disc, pitch, seen, wrong, error);
}

ps_code ps_picture_measure_cut(ps_picture *p, double threshold, const double pitch[2], ps_disc *disc, ps_error *error) {
    double seen = 0.0, wrong = 1.0, out_of_round;
    bool is_found = true;
    disc->is_clipped = ps_picture_touches_edge(p);
    PS_TRY(fit_outline(p, threshold, pitch, disc, error));
    for (int round = 0; is_found && round < RIM_ROUNDS; round++) { /* what is left out follows from the circle, and the other way round */
        ps_rim_view view = view_of(p, pitch, disc);
        ps_rim_leave_out(&view, disc, p->left_out);
        is_found = ps_rim_refine(&view, p->left_out, disc);
        ps_rim_misfit(&view, p->left_out, disc, &seen, &wrong);
    }
    if (!is_found || seen < least_rim_seen || wrong > most_rim_wrong) return refuse_pieces(disc, pitch, seen, wrong, error);
    if (wrong > 0.0) PS_TRY(refine_without_wrong(p, pitch, disc, error));
    for (int64_t i = 0; i < p->rows * p->columns; i++) /* gaps are no fault of the disc's shape */
        if (p->left_out[i]) p->piece[i] = ps_picture_outside_px(disc, i / p->columns, i % p->columns, pitch) < 0.0;
    ps_picture_compare(p, pitch, disc, &out_of_round);
    return out_of_round <= most_out_of_round ? PS_OK : ps_picture_refuse(disc, pitch, out_of_round, error);
}
