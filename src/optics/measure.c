#include "optics/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "optics/circle.h"
#include "optics/measure_cut.h"
#include "optics/picture.h"

enum { MOST_ROUNDS = 30, FEWEST_PIXELS = 5 };
static const double rim_px = 1.5;             /* a soft rim lies within this much of the radius */
static const double fullest = 0.98;           /* part of the detector above which no edge is left to see */
static const double most_out_of_round = 0.25; /* of the disc's area may differ from a circle */
/* of the rim that is seen may lie elsewhere than the circle's; of a disc that is as good as round by itself; of one that is round */
static const double most_rim_wrong = 0.5, clean_rim_wrong = 0.15, round_rim_wrong = 0.02;

/* Median of the finite values in the 3 x 3 window; NAN when there is none. */
static double window_median(const ps_picture *p, const double *image, int64_t row, int64_t column) {
    double values[9];
    int n = 0;
    for (int64_t r = row - 1; r <= row + 1; r++)
        for (int64_t c = column - 1; c <= column + 1; c++)
            if (r >= 0 && c >= 0 && r < p->rows && c < p->columns && isfinite(image[r * p->columns + c]))
                values[n++] = image[r * p->columns + c];
    return n > 0 ? ps_picture_median(values, n) : NAN;
}

/* Bad pixels take the median of their good neighbours, from the border of a bad region inwards. */
static void fill_bad(ps_picture *p, const double *mean, const uint8_t *bad) {
    int64_t n = p->rows * p->columns, n_bad = 0, n_filled = 1;
    for (int64_t i = 0; i < n; i++) {
        p->filled[i] = (bad && bad[i]) || !isfinite(mean[i]) ? NAN : mean[i];
        n_bad += isnan(p->filled[i]);
    }
    for (; n_bad > 0 && n_filled > 0; n_bad -= n_filled) {
        n_filled = 0;
        for (int64_t i = 0; i < n; i++)
            p->smooth[i] = isnan(p->filled[i]) ? window_median(p, p->filled, i / p->columns, i % p->columns) : p->filled[i];
        for (int64_t i = 0; i < n; i++) n_filled += isnan(p->filled[i]) && !isnan(p->smooth[i]);
        memcpy(p->filled, p->smooth, (size_t)n * sizeof *p->filled);
    }
}

/* Half of the median of what lies above it, found from the highest value down. */
static double find_threshold(ps_picture *p) {
    int64_t n = p->rows * p->columns;
    double level = 0.0;
    for (int64_t i = 0; i < n; i++) level = fmax(level, p->smooth[i]);
    for (int round = 0; round < MOST_ROUNDS && level > 0.0; round++) {
        int64_t above = 0;
        for (int64_t i = 0; i < n; i++)
            if (p->smooth[i] > 0.5 * level) p->sorted[above++] = p->smooth[i];
        double next = ps_picture_median(p->sorted, above);
        if (next == level) break;
        level = next;
    }
    return 0.5 * level;
}

/* Marks the pixels connected to `start` with `label`; returns how many. */
static int64_t flood(ps_picture *p, int64_t start, double threshold, uint8_t label) {
    static const int steps[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    int64_t n = 1;
    p->queue[0] = start;
    p->piece[start] = label;
    for (int64_t at = 0; at < n; at++)
        for (int k = 0; k < 4; k++) {
            int64_t row = p->queue[at] / p->columns + steps[k][0], column = p->queue[at] % p->columns + steps[k][1];
            if (row < 0 || column < 0 || row >= p->rows || column >= p->columns) continue;
            int64_t pixel = row * p->columns + column;
            if (p->piece[pixel] == label || !(p->smooth[pixel] > threshold)) continue;
            p->piece[pixel] = label;
            p->queue[n++] = pixel;
        }
    return n;
}

/* Leaves 1 in the largest piece and 0 elsewhere; returns its size. */
static int64_t find_piece(ps_picture *p, double threshold) {
    int64_t n = p->rows * p->columns, largest = 0, start = -1;
    enum { SEEN = 2, CHOSEN = 1 };
    for (int64_t i = 0; i < n; i++) {
        if (p->piece[i] || !(p->smooth[i] > threshold)) continue;
        int64_t size = flood(p, i, threshold, SEEN);
        if (size <= largest) continue;
        largest = size;
        start = i;
    }
    if (start >= 0) flood(p, start, threshold, CHOSEN);
    for (int64_t i = 0; i < n; i++) p->piece[i] = p->piece[i] == CHOSEN;
    return largest;
}

static void centroid_and_area(const ps_picture *p, const double pitch[2], ps_disc *disc) {
    double area = 0.0, sum[2] = {0.0, 0.0};
    for (int64_t i = 0; i < p->rows * p->columns; i++) {
        if (!p->piece[i]) continue;
        area += 1.0;
        sum[0] += (double)(i / p->columns);
        sum[1] += (double)(i % p->columns);
    }
    for (int axis = 0; axis < 2; axis++) disc->center_px[axis] = sum[axis] / area;
    disc->radius = sqrt(area * pitch[0] * pitch[1] / M_PI);
}

/* A rim pixel counts by how far it rises from the background to the plateau. */
static void refine(ps_picture *p, const double pitch[2], ps_disc *disc) {
    double background = ps_picture_level(p, disc, pitch, 2.0, 4.0, 0.0), area = 0.0, sum[2] = {0.0, 0.0};
    if (!(background < 0.5 * disc->plateau)) background = 0.0;
    for (int64_t i = 0; i < p->rows * p->columns; i++) {
        int64_t row = i / p->columns, column = i % p->columns;
        double distance = ps_picture_outside_px(disc, row, column, pitch), weight = distance < 0.0 ? 1.0 : 0.0;
        if (fabs(distance) < rim_px) weight = fmin(fmax((p->filled[i] - background) / (disc->plateau - background), 0.0), 1.0);
        area += weight;
        sum[0] += weight * (double)row;
        sum[1] += weight * (double)column;
    }
    for (int axis = 0; axis < 2; axis++) disc->center_px[axis] = sum[axis] / area;
    disc->radius = sqrt(area * pitch[0] * pitch[1] / M_PI);
}

/* Where the pattern falls through the threshold between pixels of the piece and their neighbours: points [n, 2] in the unit of the pitch.
 */
static int64_t rim_points(const ps_picture *p, double threshold, const double pitch[2], double *points) {
    static const int steps[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    int64_t n = 0;
    for (int64_t i = 0; i < p->rows * p->columns; i++)
        for (int k = 0; p->piece[i] && k < 4; k++) {
            int64_t row = i / p->columns + steps[k][0], column = i % p->columns + steps[k][1];
            if (row < 0 || column < 0 || row >= p->rows || column >= p->columns) continue;
            int64_t other = row * p->columns + column;
            if (p->smooth[other] > threshold) continue;
            double part = (p->smooth[i] - threshold) / (p->smooth[i] - p->smooth[other]);
            points[2 * n] = ((double)(i / p->columns) + part * steps[k][0]) * pitch[0];
            points[2 * n + 1] = ((double)(i % p->columns) + part * steps[k][1]) * pitch[1];
            n++;
        }
    return n;
}

static ps_code fit_rim(const ps_picture *p, double threshold, int64_t n_pixels, const double pitch[2], ps_disc *disc, ps_error *error) {
    ps_code code = PS_OK;
    double center[2], *points = malloc((size_t)(8 * n_pixels) * sizeof *points);
    PS_GO_ALLOC(error, points);
    int64_t n = rim_points(p, threshold, pitch, points);
    PS_GO(ps_circle_fit(points, n, center, &disc->radius, error));
    for (int axis = 0; axis < 2; axis++) disc->center_px[axis] = center[axis] / pitch[axis];
done:
    free(points);
    return code;
}

/* ---- a disc that is seen whole, or that the detector's edge cuts ---- */

/* size: pixels of the piece. */
static ps_code measure_piece(ps_picture *p, double threshold, int64_t size, const double pitch[2], ps_disc *disc, ps_error *error) {
    double out_of_round;
    disc->is_clipped = ps_picture_touches_edge(p);
    if (disc->is_clipped) {
        PS_TRY(fit_rim(p, threshold, size, pitch, disc, error));
    } else {
        centroid_and_area(p, pitch, disc);
        refine(p, pitch, disc);
    }
    ps_picture_compare(p, pitch, disc, &out_of_round);
    return out_of_round <= most_out_of_round ? PS_OK : ps_picture_refuse(disc, pitch, out_of_round, error);
}

/* ---- the measurement ---- */

static ps_code measure(ps_picture *p, const double *mean, const uint8_t *bad, const double pitch[2], ps_disc *disc, ps_error *error) {
    int64_t n = p->rows * p->columns;
    double threshold = find_threshold(p);
    ps_error reason = {0}, cut_reason = {0};
    *disc = (ps_disc){.plateau = 2.0 * threshold};
    if (!(threshold > 0.0)) return PS_FAIL(error, PS_E_INPUT, "there is no bright-field disc to measure: the mean pattern holds no counts");
    int64_t size = find_piece(p, threshold);
    if ((double)size > fullest * (double)n)
        return PS_FAIL(error, PS_E_INPUT,
                       "the whole detector of %" PRId64 " x %" PRId64
                       " pixels is bright: no edge of the bright-field disc can be seen, it is larger than the detector",
                       p->rows, p->columns);
    if (size < FEWEST_PIXELS)
        return PS_FAIL(error, PS_E_INPUT, "there is no bright-field disc to measure: only %" PRId64 " connected pixels are bright", size);
    ps_picture_find_silent(p, mean, bad, disc->plateau);
    ps_code code = measure_piece(p, threshold, size, pitch, disc, &reason);
    if (code == PS_E_MEMORY) return PS_FAIL(error, code, "%s", reason.text);
    ps_disc alone = *disc;
    bool is_alone = ps_picture_join(p, threshold) == size;
    if (is_alone && code == PS_OK && ps_picture_is_whole(p, pitch, disc, round_rim_wrong)) return PS_OK;
    ps_code cut = ps_picture_measure_cut(p, threshold, pitch, disc, &cut_reason);
    if (cut == PS_OK) return PS_OK;
    *disc = alone;
    if (code == PS_OK && ps_picture_is_whole(p, pitch, disc, is_alone ? most_rim_wrong : clean_rim_wrong))
        return PS_OK; /* other discs on a background of zeros */
    return PS_FAIL(error, cut, "%s", is_alone && code != PS_OK ? reason.text : cut_reason.text);
}

ps_code ps_disc_measure(const double *mean, const uint8_t *bad, int64_t rows, int64_t columns, const double pitch[2], ps_disc *disc,
                        ps_error *error) {
    PS_ASSERT(rows > 0 && columns > 0 && pitch[0] > 0 && pitch[1] > 0);
    ps_picture p;
    PS_TRY(ps_picture_create(rows, columns, &p, error));
    fill_bad(&p, mean, bad);
    for (int64_t i = 0; i < rows * columns; i++) {
        double value = window_median(&p, p.filled, i / columns, i % columns);
        p.smooth[i] = isnan(value) ? 0.0 : value;
    }
    ps_code code = measure(&p, mean, bad, pitch, disc, error);
    ps_picture_free(&p);
    return code;
}
