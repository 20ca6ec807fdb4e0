#include "bench/scale_points.h"

#include <math.h>
#include <stdlib.h>

/* Sides of scans: powers of two, their thirds, and beside them odd ones: 127, 131, 251, 257 and 509 are primes, 129 is 3 x 43, 125 is 5^3.
 */
static const double scans[] = {128, 125, 127, 129, 131, 192, 251, 256, 257, 384, 509, 512, 768, 1024};
static const double detectors[] = {96, 128, 192, 256, 384, 512};
/* Scan steps whose mean number of aliases is about 1, 2, 4, 7, 8, 16, 32 and 55. */
static const double steps_A[] = {0.373, 0.17, 0.26, 0.48, 0.53, 0.74, 1.05, 1.35};
static const double frames[] = {1, 2, 4, 8, 16};
static const double base_step_A = 0.373;
enum { BASE_SCAN = 128, BASE_DETECTOR = 96, PIXELS_PER_RADIUS = 8, PRODUCTS_PER_PAIR = 40 };

const char *ps_scale_axis_name(ps_scale_axis axis) {
    static const char *const names[] = {"scan side, positions", "detector side, pixels", "aliases of a frequency (mean)",
                                        "frames in a batch"};
    return names[axis];
}

const char *ps_scale_stage_name(ps_scale_stage stage) {
    static const char *const names[] = {"put", "prepare", "reduce", "solve", "ssb"};
    return names[stage];
}

static ps_scale_point base_point(ps_scale_axis axis, double x) {
    ps_scale_point point = {.axis = axis, .x = x, .step_A = base_step_A, .n_frames = 1};
    point.problem = (ps_bench_problem){"scale", BASE_SCAN, BASE_DETECTOR, (double)BASE_DETECTOR / PIXELS_PER_RADIUS, 0};
    for (int s = 0; s < PS_SCALE_N_STAGES; s++) point.seconds[s] = NAN;
    return point;
}

int ps_scale_list(ps_scale_point *points) {
    int n = 0;
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i++, n++) {
        points[n] = base_point(PS_SCALE_SCAN, scans[i]);
        points[n].problem.scan = (int64_t)scans[i];
    }
    for (size_t i = 0; i < sizeof detectors / sizeof *detectors; i++, n++) {
        points[n] = base_point(PS_SCALE_DETECTOR, detectors[i]);
        points[n].problem.detector = (int64_t)detectors[i];
        points[n].problem.disc_px = detectors[i] / PIXELS_PER_RADIUS;
    }
    for (size_t i = 0; i < sizeof steps_A / sizeof *steps_A; i++, n++) {
        points[n] = base_point(PS_SCALE_ALIASES, 0);
        points[n].step_A = steps_A[i];
    }
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++, n++) {
        points[n] = base_point(PS_SCALE_FRAMES, frames[i]);
        points[n].n_frames = (int64_t)frames[i];
    }
    return n;
}

/* Operations of a real transform of n points to half of its coefficients. */
static double transform(double n) {
    return 2.5 * n * log2(n);
}

/* What cannot be avoided, up to a factor: bytes of the counts; evaluations of the transfer in overlaps of apertures and the products with
 * it; transforms of every active pixel's scan; aliases^2 of each frequency, in both unknowns, and an inverse transform; the same transform
 * alone. */
static void count_work(ps_scale_point *point, const ps_plan *plan) {
    const ps_system_desc *desc = &plan->desc;
    double positions = (double)(desc->scan_rows * desc->scan_columns), active = (double)desc->n_active, squares = 0;
    double pairs = ps_bench_overlaps(plan), fine = positions * (double)(desc->upsampling * desc->upsampling);
    for (int64_t i = 1; i < desc->n_frequencies; i++) squares += pow((double)desc->frequencies[i].n_aliases, 2);
    double mean = (double)desc->n_aliases / (double)desc->n_frequencies;
    point->work[PS_SCALE_PUT] = positions * (double)(desc->detector_rows * desc->detector_columns) * sizeof(uint16_t);
    point->work[PS_SCALE_PREPARE] = pairs * (PRODUCTS_PER_PAIR + 8 * mean);
    point->work[PS_SCALE_REDUCE] = active * transform(positions) + pairs * PRODUCTS_PER_PAIR;
    point->work[PS_SCALE_SOLVE] = 32 * squares + 2 * transform(fine);
    point->work[PS_SCALE_SSB] = transform(fine);
}

ps_code ps_scale_plan(ps_scale_point *point, ps_plan *plan, ps_error *error) {
    PS_TRY(ps_bench_problem_plan_at(&point->problem, point->step_A, plan, error));
    count_work(point, plan);
    point->n_active = plan->desc.n_active;
    point->upsampling = plan->desc.upsampling;
    if (point->axis == PS_SCALE_ALIASES) point->x = (double)plan->desc.n_aliases / (double)plan->desc.n_frequencies;
    return PS_OK;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ps_scale_relative_cost(const ps_scale_point *points, int n, int at, ps_scale_stage stage) {
    double costs[PS_SCALE_MOST_POINTS];
    int n_costs = 0;
    for (int i = 0; i < n; i++)
        if (points[i].axis == points[at].axis && isfinite(points[i].seconds[stage]))
            costs[n_costs++] = points[i].seconds[stage] / points[i].work[stage];
    if (n_costs == 0 || !isfinite(points[at].seconds[stage])) return NAN;
    qsort(costs, (size_t)n_costs, sizeof *costs, compare_doubles);
    return points[at].seconds[stage] / points[at].work[stage] / costs[n_costs / 2];
}
