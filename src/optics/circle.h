/* The circle through points of its rim. */
#ifndef PS_OPTICS_CIRCLE_H
#define PS_OPTICS_CIRCLE_H

#include <stdint.h>

#include "core/error.h"

/* Least squares of the distances of those points that lie within four times the median distance of the circle, started from the best of
 * many circles through three of the points, so that outliers do not matter. Deterministic. points: [n, 2]. PS_E_INPUT when the points do
 * not tell (too few, or nearly on a line). */
ps_code ps_circle_fit(const double *points, int64_t n, double center[2], double *radius, ps_error *error);

#endif
