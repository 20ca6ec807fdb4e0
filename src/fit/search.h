/* From a start to the nearest set of optics that explains most. Rank 0. */
#ifndef PS_FIT_SEARCH_H
#define PS_FIT_SEARCH_H

#include "fit/parameters.h"
#include "fit/spread.h"

/* What is searched: the parameters' values on top of the base's. */
typedef struct {
    ps_fit_spread *spread;
    int band;             /* of the spread */
    const double *step_A; /* [2] of the band */
    ps_optics base;
    ps_fit_parameters parameters;
} ps_fit_problem;

/* fractions: [n] of the values [n, parameters]. */
ps_code ps_fit_try(const ps_fit_problem *problem, int64_t n, const double *values, double *fractions, ps_error *error);

/* A local search by NLopt (sequential quadratic programming, gradients by central differences that one call tries together), at most
 * most_steps steps. values: [parameters] the start, and the best that was met; fraction: what it explains, never less than the start. */
ps_code ps_fit_climb(const ps_fit_problem *problem, int most_steps, double *values, double *fraction, ps_error *error);

#endif
