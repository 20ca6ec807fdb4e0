/* Checks that come before any timing: a backend against the plain float64 path. */
#ifndef PS_BENCH_CHECK_H
#define PS_BENCH_CHECK_H

#include "bench/report.h"
#include "kernels/backend_list.h"
#include "optics/plan.h"

/* How far a backend may be from float64, relative to the largest entry; docs/physics.md section 9. */
typedef struct {
    double normal, right_side, eigenvalues, images;
} ps_bench_tolerance;

/* Everything the backend computes, on a small problem: N, eigenvalues, b, and all results of every method. */
ps_code ps_bench_check_small(ps_backend *backend, const ps_bench_tolerance *tolerance, ps_bench_report *report, ps_error *error);
/* N of a few frequencies of a prepared system, against the transfer of the plain path. */
ps_code ps_bench_check_normal(ps_system *system, ps_methods method, const ps_plan *plan, double tolerance, ps_bench_report *report,
                              ps_error *error);
/* b of a few frequencies of a reduced frame, against the plain transfer and the backend's own g. Weights are 1. */
ps_code ps_bench_check_right_side(ps_frame *frame, ps_methods method, const ps_plan *plan, double dose, double tolerance,
                                  ps_bench_report *report, ps_error *error);
/* g of a few frequencies and pixels against a plain sum over the scan. count(context, position, pixel): the frame's counts, pixel in the
 * whole detector. */
ps_code ps_bench_check_spectrum(ps_frame *frame, const ps_plan *plan, double dose,
                                double (*count)(void *context, int64_t position, int64_t pixel), void *context, double tolerance,
                                ps_bench_report *report, ps_error *error);

/* Largest |found - expected| over the largest |expected| of n (complex: pairs) values; NaN when any is. */
double ps_bench_difference(int64_t n, bool is_complex, const double *found, const double *expected);

#endif
