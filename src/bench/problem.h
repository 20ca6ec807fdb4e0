/* The problems `ptyseries bench` measures on. */
#ifndef PS_BENCH_PROBLEM_H
#define PS_BENCH_PROBLEM_H

#include "optics/plan.h"

typedef struct {
    const char *name;
    int64_t scan, detector; /* positions and pixels along each side */
    double disc_px;         /* radius of the bright-field disc */
    int64_t upsampling;     /* 0: auto */
} ps_bench_problem;

/* docs/performance.md: the published case (512 x 512 scan, 192 x 192 detector, 9298 active pixels, U = 3), the same at U = 1, and
 * smaller ones for checks and for CPUs. All share its optics. */
extern const ps_bench_problem ps_bench_published, ps_bench_published_u1, ps_bench_small, ps_bench_tiny;

/* With another scan step than the published one. */
ps_code ps_bench_problem_plan_at(const ps_bench_problem *problem, double step_A, ps_plan *plan, ps_error *error);
ps_code ps_bench_problem_plan(const ps_bench_problem *problem, ps_plan *plan, ps_error *error);
/* Evaluations of one side band that cannot be avoided, physics section 3: pixels in the overlap of two apertures, summed over both
 * side bands of all solved aliases. */
double ps_bench_overlaps(const ps_plan *plan);

#endif
