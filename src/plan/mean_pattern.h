/* The mean diffraction pattern of a recording, over the whole detector. */
#ifndef PS_PLAN_MEAN_PATTERN_H
#define PS_PLAN_MEAN_PATTERN_H

#include "input/loader.h"

/* Reads source through the loader (which must be idle). mean: [detector_rows, detector_columns], counts, over the positions that do not
 * hold the invalid-count value of the dtype; n_marked: the same shape, positions that do, may be NULL. Exact for integer counts below 2^53
 * in sum. PS_E_INTERRUPTED when a stop is wanted; the caller cancels the loader after an error. */
ps_code ps_mean_pattern(ps_loader *loader, const ps_loader_shape *shape, const char *source, double *mean, int64_t *n_marked,
                        ps_error *error);

/* Adds n_positions patterns of n_pixels to sum, leaving out what is no count (the invalid-count value of the dtype; what is not finite),
 * which `marked` counts; then sums become means over the positions that were counted, 0 where there were none. */
void ps_pattern_add(ps_dtype dtype, const void *counts, int64_t n_positions, int64_t n_pixels, double *sum, int64_t *marked);
void ps_pattern_mean(int64_t n_positions, int64_t n_pixels, const int64_t *marked, double *sum);

#endif
