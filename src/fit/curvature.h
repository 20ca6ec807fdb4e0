/* How well a fit's parameters are known, from the curvature of what they explain. Rank 0. */
#ifndef PS_FIT_CURVATURE_H
#define PS_FIT_CURVATURE_H

#include "fit/search.h"

typedef struct {
    int n;
    bool is_known[PS_FIT_MOST_PARAMETERS]; /* false: at its bound, or along a direction that the data do not tell at all */
    double error[PS_FIT_MOST_PARAMETERS];  /* standard errors in the parameters' units; 0 where it is not known */
    double correlation[PS_FIT_MOST_PARAMETERS * PS_FIT_MOST_PARAMETERS]; /* [n, n] */
    int n_weak;                                /* directions of the parameters, in natural sizes, that are hardly told, worst first */
    double weak_error[PS_FIT_MOST_PARAMETERS]; /* [n_weak] standard error along each */
    double weak[PS_FIT_MOST_PARAMETERS * PS_FIT_MOST_PARAMETERS]; /* [n_weak, n] */
} ps_fit_curvature;

/* Direction whose standard error is above this, in natural sizes (for aberrations rad of phase at the rim), is a weak one. */
#define PS_FIT_WEAK 0.7

/* values: [parameters] the maximum; signal: power of the band over the variance of its noise per datum, so that signal times a fraction is
 * a logarithm of a likelihood. */
ps_code ps_fit_find_curvature(const ps_fit_problem *problem, const double *values, double signal, ps_fit_curvature *found, ps_error *error);

/* Eigenvalues (ascending) and eigenvectors (rows) of a symmetric matrix [n, n], which is overwritten. */
void ps_fit_eigen(int n, double *matrix, double *values, double *vectors);

#endif
