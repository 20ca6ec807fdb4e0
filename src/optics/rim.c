#include "optics/rim.h"

#include <math.h>
#include <string.h>

#include "core/assert.h"

enum { MOST_STEPS = 40, REACH = 3, FEWEST_SECTORS = 8, MOST_SECTORS = 36, FEWEST_AT_RIM = 6 };
static const double band_px = 1.5;      /* of the rim on both sides that is looked at */
static const double well_inside_px = 1; /* where no count can only mean that a pixel does not count */
static const double brightest = 3.0;    /* of the disc's level, for a pixel that counts what is there */

double ps_rim_outside_px(const ps_rim_view *view, const ps_disc *disc, int64_t row, int64_t column) {
    double a = ((double)row - disc->center_px[0]) * view->pitch[0], b = ((double)column - disc->center_px[1]) * view->pitch[1];
    return (hypot(a, b) - disc->radius) / sqrt(view->pitch[0] * view->pitch[1]);
}

/* ---- what is left out ----------------------------------------------------------------------------------------------------------- */

static bool is_gap_inside(const ps_rim_view *view, const ps_disc *disc, int64_t row, int64_t column) {
    if (row < 0 || column < 0 || row >= view->rows || column >= view->columns) return false;
    return view->silent[row * view->columns + column] && ps_rim_outside_px(view, disc, row, column) < -well_inside_px;
}

/* Whether a pixel without counts at the rim lies on a row, a column or a radius along which a gap comes from inside. */
static bool continues_gap(const ps_rim_view *view, const ps_disc *disc, int64_t row, int64_t column) {
    double a = disc->center_px[0] - (double)row, b = disc->center_px[1] - (double)column, length = fmax(hypot(a, b), 1e-9);
    for (int k = 1; k <= REACH; k++) {
        if (is_gap_inside(view, disc, row - k, column) || is_gap_inside(view, disc, row + k, column)) return true;
        if (is_gap_inside(view, disc, row, column - k) || is_gap_inside(view, disc, row, column + k)) return true;
        if (is_gap_inside(view, disc, row + llround(k * a / length), column + llround(k * b / length))) return true;
    }
    return false;
}

static bool says_nothing(const ps_rim_view *view, const ps_disc *disc, int64_t row, int64_t column, double distance) {
    int64_t pixel = row * view->columns + column;
    if (view->silent[pixel] == PS_SILENT_BAD || view->image[pixel] > brightest * view->fullest * view->plateau) return true;
    if (view->silent[pixel] == PS_SILENT_NOT) return false;
    return distance < -well_inside_px || (distance < REACH && continues_gap(view, disc, row, column));
}

int64_t ps_rim_leave_out(const ps_rim_view *view, const ps_disc *disc, uint8_t *left_out) {
    int64_t n = 0;
    for (int64_t i = 0; i < view->rows * view->columns; i++) {
        double distance = ps_rim_outside_px(view, disc, i / view->columns, i % view->columns);
        left_out[i] = says_nothing(view, disc, i / view->columns, i % view->columns, distance);
        n += left_out[i] && distance < band_px;
    }
    return n;
}

/* ---- the circle ----------------------------------------------------------------------------------------------------------------- */

/* Part of the way from the background to the disc's level, cut as far on both sides, so that chance at few counts makes no part smaller. */
static double fullness(const ps_rim_view *view, int64_t pixel) {
    double part = (view->image[pixel] - view->background) / (view->plateau - view->background);
    return fmin(fmax(part, 1.0 - view->fullest), view->fullest);
}

/* The same of the circle. */
static double coverage(double distance) {
    return fmin(fmax(0.5 - distance, 0.0), 1.0);
}

/* Symmetric 3 x 3 by Cramer's rule; false when it is singular. */
static bool solve3(const double m[3][3], const double r[3], double x[3]) {
    double c0 = m[1][1] * m[2][2] - m[1][2] * m[2][1], c1 = m[1][2] * m[2][0] - m[1][0] * m[2][2],
           c2 = m[1][0] * m[2][1] - m[1][1] * m[2][0];
    double determinant = m[0][0] * c0 + m[0][1] * c1 + m[0][2] * c2;
    if (!(fabs(determinant) > 1e-6 * m[0][0] * m[0][0] * m[0][0])) return false;
    x[0] = (c0 * r[0] + (m[0][2] * m[2][1] - m[0][1] * m[2][2]) * r[1] + (m[0][1] * m[1][2] - m[0][2] * m[1][1]) * r[2]) / determinant;
    x[1] = (c1 * r[0] + (m[0][0] * m[2][2] - m[0][2] * m[2][0]) * r[1] + (m[0][2] * m[1][0] - m[0][0] * m[1][2]) * r[2]) / determinant;
    x[2] = (c2 * r[0] + (m[0][1] * m[2][0] - m[0][0] * m[2][1]) * r[1] + (m[0][0] * m[1][1] - m[0][1] * m[1][0]) * r[2]) / determinant;
    return true;
}

/* change: of radius, row, column, in pixels (the geometric mean of the pitches). A pixel under the rim gains what the rim moves outwards.
 */
static bool rim_step(const ps_rim_view *view, const uint8_t *left_out, const ps_disc *disc, double change[3]) {
    double normal[3][3] = {{0}}, excess[3] = {0};
    int64_t n = 0;
    for (int64_t i = 0; i < view->rows * view->columns; i++) {
        int64_t row = i / view->columns, column = i % view->columns;
        double distance = ps_rim_outside_px(view, disc, row, column);
        if (left_out[i] || fabs(distance) > band_px) continue;
        double a = ((double)row - disc->center_px[0]) * view->pitch[0], b = ((double)column - disc->center_px[1]) * view->pitch[1];
        double length = fmax(hypot(a, b), 1e-12), gain[3] = {1.0, a / length, b / length};
        double more = fullness(view, i) - coverage(distance);
        n += fabs(distance) < 0.5;
        for (int j = 0; j < 3; j++) {
            excess[j] += more * gain[j];
            for (int k = 0; k < 3; k++) normal[j][k] += fabs(distance) < 0.5 ? gain[j] * gain[k] : 0.0;
        }
    }
    return n >= FEWEST_AT_RIM && solve3(normal, excess, change);
}

bool ps_rim_refine(const ps_rim_view *view, const uint8_t *left_out, ps_disc *disc) {
    PS_ASSERT(view->plateau > view->background && view->fullest >= 1);
    double pixel = sqrt(view->pitch[0] * view->pitch[1]), start = disc->radius;
    for (int step = 0; step < MOST_STEPS; step++) {
        double change[3];
        if (!rim_step(view, left_out, disc, change)) return false;
        double size = fabs(change[0]) + fabs(change[1]) + fabs(change[2]), part = size > 1.0              ? 1.0 / size
                                                                                  : step > MOST_STEPS / 2 ? 0.5
                                                                                                          : 1.0;
        disc->radius += part * change[0] * pixel;
        for (int axis = 0; axis < 2; axis++) disc->center_px[axis] += part * change[1 + axis] * pixel / view->pitch[axis];
        if (!(disc->radius > 0.5 * start && disc->radius < 2.0 * start)) return false;
        if (size < 1e-4) break;
    }
    return true;
}

/* ---- how well it fits ----------------------------------------------------------------------------------------------------------- */

/* The rim in parts of equal angle. */
typedef struct {
    int n;
    double limit, reach; /* pixels: an edge further off is wrong; what is looked at on both sides */
    double excess[MOST_SECTORS], at_rim[MOST_SECTORS], left_out[MOST_SECTORS];
} sector_list;

/* -1: too far from the rim. */
static int sector_of(const ps_rim_view *view, const ps_disc *disc, const sector_list *sectors, int64_t row, int64_t column,
                     double *distance) {
    *distance = ps_rim_outside_px(view, disc, row, column);
    if (fabs(*distance) > sectors->reach) return -1;
    double a = ((double)row - disc->center_px[0]) * view->pitch[0], b = ((double)column - disc->center_px[1]) * view->pitch[1];
    return (int)((atan2(b, a) / (2.0 * M_PI) + 0.5) * sectors->n) % sectors->n;
}

static void fill_sectors(const ps_rim_view *view, const uint8_t *left_out, const ps_disc *disc, sector_list *sectors) {
    double radius_px = disc->radius / sqrt(view->pitch[0] * view->pitch[1]), limit = fmax(1.0, 0.03 * radius_px), distance;
    *sectors = (sector_list){
        .n = (int)fmin(fmax(2.0 * M_PI * radius_px / 3.0, FEWEST_SECTORS), MOST_SECTORS), .limit = limit, .reach = limit + 1.5};
    for (int64_t i = 0; i < view->rows * view->columns; i++) {
        int sector = sector_of(view, disc, sectors, i / view->columns, i % view->columns, &distance);
        if (sector < 0) continue;
        sectors->left_out[sector] += left_out[i] != 0;
        if (left_out[i]) continue;
        sectors->excess[sector] += fullness(view, i) - coverage(distance);
        sectors->at_rim[sector] += fabs(distance) < 0.5;
    }
}

static bool is_seen(const sector_list *sectors, int k) {
    return sectors->at_rim[k] > 0.0 && sectors->left_out[k] <= 2.0 * sectors->at_rim[k];
}

static bool is_wrong(const sector_list *sectors, int k) {
    return is_seen(sectors, k) && fabs(sectors->excess[k] / sectors->at_rim[k]) > sectors->limit;
}

void ps_rim_misfit(const ps_rim_view *view, const uint8_t *left_out, const ps_disc *disc, double *seen, double *wrong) {
    sector_list sectors;
    int n_seen = 0, n_wrong = 0;
    fill_sectors(view, left_out, disc, &sectors);
    for (int k = 0; k < sectors.n; k++) {
        n_seen += is_seen(&sectors, k);
        n_wrong += is_wrong(&sectors, k);
    }
    *seen = (double)n_seen / sectors.n;
    *wrong = n_seen > 0 ? (double)n_wrong / n_seen : 1.0;
}

void ps_rim_leave_out_wrong(const ps_rim_view *view, const ps_disc *disc, uint8_t *left_out) {
    sector_list sectors;
    double distance;
    fill_sectors(view, left_out, disc, &sectors);
    for (int64_t i = 0; i < view->rows * view->columns; i++) {
        int sector = sector_of(view, disc, &sectors, i / view->columns, i % view->columns, &distance);
        if (sector < 0) continue;
        bool beside = is_wrong(&sectors, (sector + 1) % sectors.n) || is_wrong(&sectors, (sector + sectors.n - 1) % sectors.n);
        if (beside || is_wrong(&sectors, sector)) left_out[i] = 1;
    }
}
