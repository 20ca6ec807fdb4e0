/* Choosing a strength: generalized cross-validation over a grid. docs/physics.md section 5. */
#ifndef PS_METHOD_CURVES_H
#define PS_METHOD_CURVES_H

#include <stdint.h>

/* The grid an automatic strength is chosen from: 1e-4 ... 1e2, 12 a decade. */
enum { PS_N_CURVE_STRENGTHS = 73 };
void ps_curve_strengths(double *strengths); /* [PS_N_CURVE_STRENGTHS], ascending */

/* gcv[i] = (residual[i]/n_data) / (1 - effective degrees of freedom[i]/n_data)^2; returns the index of the least. n_data: complex values of
 * the full plane that were fitted, active pixels times scan frequencies but zero. */
int64_t ps_curve_gcv(int64_t n, const double *residual, const double *effective_dof, double n_data, double *gcv);

#endif
