#include "optics/circle.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { FEWEST_POINTS = 8, MOST_STEPS = 50, TRIALS = 200, TRIMMED_FITS = 3 };
static const double smallest_arc = 0.2; /* tangent of a quarter of the arc; a quarter circle has 0.41 */

/* Solves the symmetric 3 x 3 system by elimination with pivoting; false when it is singular. */
static bool solve3(double a[3][4], double x[3]) {
    for (int k = 0; k < 3; k++) {
        int pivot = k;
        for (int i = k + 1; i < 3; i++)
            if (fabs(a[i][k]) > fabs(a[pivot][k])) pivot = i;
        if (!(fabs(a[pivot][k]) > 1e-12)) return false;
        for (int j = 0; j < 4; j++) {
            double kept = a[k][j];
            a[k][j] = a[pivot][j];
            a[pivot][j] = kept;
        }
        for (int i = k + 1; i < 3; i++) {
            double factor = a[i][k] / a[k][k];
            for (int j = k; j < 4; j++) a[i][j] -= factor * a[k][j];
        }
    }
    for (int k = 2; k >= 0; k--) {
        x[k] = a[k][3];
        for (int j = k + 1; j < 3; j++) x[k] -= a[k][j] * x[j];
        x[k] /= a[k][k];
    }
    return true;
}

/* Adds the outer product of (row, right side) to the normal equations. */
static void add_equation(double normal[3][4], const double row[3], double right) {
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) normal[i][j] += row[i] * row[j];
        normal[i][3] += row[i] * right;
    }
}

/* Through three points: x^2 + y^2 = 2 a x + 2 b y + c is linear in the unknowns. */
static bool through_points(const double *const three[3], double circle[3]) {
    double equations[3][4], x[3];
    for (int i = 0; i < 3; i++) {
        const double *p = three[i];
        equations[i][0] = 2 * p[0];
        equations[i][1] = 2 * p[1];
        equations[i][2] = 1.0;
        equations[i][3] = p[0] * p[0] + p[1] * p[1];
    }
    if (!solve3(equations, x)) return false;
    double square = x[2] + x[0] * x[0] + x[1] * x[1];
    if (!(square > 0.0)) return false;
    circle[0] = x[0];
    circle[1] = x[1];
    circle[2] = sqrt(square);
    return true;
}

static double distance(const double *point, const double circle[3]) {
    return hypot(point[0] - circle[0], point[1] - circle[1]) - circle[2];
}

/* Gauss-Newton on the distances of the points within `limit` of the circle it starts from. */
static bool geometric_fit(const double *points, int64_t n, double limit, double circle[3]) {
    const double start[3] = {circle[0], circle[1], circle[2]};
    for (int step = 0; step < MOST_STEPS; step++) {
        double normal[3][4] = {{0}}, change[3];
        for (int64_t i = 0; i < n; i++) {
            const double *p = points + 2 * i;
            double rho = hypot(p[0] - circle[0], p[1] - circle[1]);
            if (!(rho > 0.0) || fabs(distance(p, start)) > limit) continue;
            const double row[3] = {(p[0] - circle[0]) / rho, (p[1] - circle[1]) / rho, 1.0};
            add_equation(normal, row, rho - circle[2]);
        }
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 4; j++) normal[i][j] /= (double)n;
        if (!solve3(normal, change)) return false;
        for (int i = 0; i < 3; i++) circle[i] += change[i];
        if (fabs(change[0]) + fabs(change[1]) + fabs(change[2]) < 1e-10) break;
    }
    return isfinite(circle[0]) && isfinite(circle[1]) && isfinite(circle[2]) && circle[2] > 0.0;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* sorted: [n] scratch. */
static double median_distance(const double *points, int64_t n, const double circle[3], double *sorted) {
    for (int64_t i = 0; i < n; i++) sorted[i] = fabs(distance(points + 2 * i, circle));
    qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
    return sorted[n / 2];
}

/* Of many circles through three of the points, the one with the least median distance: outliers have no say in it. */
static bool robust_start(const double *points, int64_t n, double *sorted, double circle[3]) {
    double least = INFINITY, trial[3] = {0};
    uint64_t state = 1;
    for (int i = 0; i < TRIALS; i++) {
        const double *three[3];
        for (int k = 0; k < 3; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            three[k] = points + 2 * (int64_t)((state >> 33) % (uint64_t)n);
        }
        double middle = through_points(three, trial) ? median_distance(points, n, trial, sorted) : INFINITY;
        if (!(middle < least)) continue;
        least = middle;
        for (int k = 0; k < 3; k++) circle[k] = trial[k];
    }
    return isfinite(least);
}

/* The arc's height over its half-chord tells how well it fixes the circle; 1 for half a circle or more. */
static double arc_height(const double *points, int64_t n, const double circle[3]) {
    double mean[2] = {0, 0}, lowest = 1.0;
    for (int64_t i = 0; i < n; i++)
        for (int axis = 0; axis < 2; axis++) mean[axis] += (points[2 * i + axis] - circle[axis]) / (double)n;
    double length = hypot(mean[0], mean[1]);
    if (!(length > 1e-9 * circle[2])) return 1.0;
    for (int64_t i = 0; i < n; i++) { /* cosine of the angle from the arc's middle */
        double along = ((points[2 * i] - circle[0]) * mean[0] + (points[2 * i + 1] - circle[1]) * mean[1]) / (length * circle[2]);
        lowest = fmin(lowest, along);
    }
    return lowest <= 0.0 ? 1.0 : (1.0 - lowest) / sqrt(1.0 - lowest * lowest);
}

/* Centres and scales the points in place: all distances from the middle below about 1. */
static double normalise(double *points, int64_t n, double middle[2]) {
    double extent = 0.0;
    for (int axis = 0; axis < 2; axis++) {
        middle[axis] = 0.0;
        for (int64_t i = 0; i < n; i++) middle[axis] += points[2 * i + axis] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) extent = fmax(extent, hypot(points[2 * i] - middle[0], points[2 * i + 1] - middle[1]));
    if (!(extent > 0.0)) return 0.0;
    for (int64_t i = 0; i < 2 * n; i++) points[i] = (points[i] - middle[i % 2]) / extent;
    return extent;
}

static bool fit(const double *points, int64_t n, double *sorted, double circle[3]) {
    if (!robust_start(points, n, sorted, circle)) return false;
    for (int round = 0; round < TRIMMED_FITS; round++) {
        double limit = fmax(4.0 * median_distance(points, n, circle, sorted), 1e-9);
        if (!geometric_fit(points, n, limit, circle)) return false;
    }
    return arc_height(points, n, circle) > smallest_arc;
}

ps_code ps_circle_fit(const double *points, int64_t n, double center[2], double *radius, ps_error *error) {
    ps_code code = PS_OK;
    double circle[3] = {0}, middle[2], *own = NULL, *sorted = NULL;
    if (n < FEWEST_POINTS)
        return PS_FAIL(error, PS_E_INPUT, "only %" PRId64 " points of the bright-field disc's rim lie on the detector", n);
    own = malloc((size_t)(2 * n) * sizeof *own);
    sorted = malloc((size_t)n * sizeof *sorted);
    PS_GO_ALLOC(error, own && sorted);
    for (int64_t i = 0; i < 2 * n; i++) own[i] = points[i];
    double extent = normalise(own, n, middle);
    if (!(extent > 0.0) || !fit(own, n, sorted, circle)) {
        code =
            PS_FAIL(error, PS_E_INPUT, "the part of the bright-field disc's rim that lies on the detector is too short to tell its circle");
        goto done;
    }
    for (int axis = 0; axis < 2; axis++) center[axis] = middle[axis] + extent * circle[axis];
    *radius = extent * circle[2];
done:
    free(own);
    free(sorted);
    return code;
}
