/* The global stage: every rotation with every defocus, coarsely. Rank 0. */
#ifndef PS_FIT_GRID_H
#define PS_FIT_GRID_H

#include "fit/parameters.h"
#include "fit/spread.h"

/* A rectangle of the grid; ends included. One rotation or one defocus where they are known. */
typedef struct {
    double rotation_deg[2], rotation_step_deg;
    double C10_A[2], C10_step_A;
} ps_fit_rectangle;

typedef struct {
    ps_optics optics;
    double fraction;
} ps_fit_candidate;

/* All of the rectangle on top of `base`; fractions: [n_rotations, n_defoci], malloc'd. */
ps_code ps_fit_grid_values(ps_fit_spread *spread, int band, const double step_A[2], const ps_optics *base, const ps_fit_rectangle *grid,
                           int64_t *n_rotations, int64_t *n_defoci, double **fractions, ps_error *error);

/* Joins the rectangle's local maxima to a list of the `most` best candidates, best first. */
ps_code ps_fit_grid_search(ps_fit_spread *spread, int band, const double step_A[2], const ps_optics *base, const ps_fit_rectangle *grid,
                           int most, ps_fit_candidate *candidates, int *n, ps_error *error);

/* The same at a fraction of the cost: `thin` is a band of few pixels that holds all of the rectangle, and `band` what lies around its best
 * peaks alone. *clarity becomes how many standard deviations of its values the best of them stands above their median, where that is more
 * than it was: where no rectangle is clear, peaks of `band` may have been missed, and ps_fit_grid_search is for the caller to call. */
ps_code ps_fit_grid_glance(ps_fit_spread *spread, int thin, int band, const double step_A[2], const ps_optics *base,
                           const ps_fit_rectangle *grid, int most, ps_fit_candidate *candidates, int *n, double *clarity, ps_error *error);

int64_t ps_fit_grid_points(const ps_fit_rectangle *grid);

double ps_fit_median(int64_t n, double *values); /* n > 0; sorts them */

/* The same for one candidate that is known already. */
void ps_fit_join_candidate(int most, ps_fit_candidate *candidates, int *n, const ps_fit_candidate *candidate);

#endif
