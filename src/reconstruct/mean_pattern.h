/* The mean diffraction pattern of a recording, over the whole detector. */
#ifndef PS_RECONSTRUCT_MEAN_PATTERN_H
#define PS_RECONSTRUCT_MEAN_PATTERN_H

#include "reconstruct/loader.h"

/* Reads source through the loader (which must be idle). mean: [detector_rows, detector_columns], counts, over the positions that do not hold
 * the marker of the dtype; n_marked: the same shape, positions that do, may be NULL. Exact for integer counts below 2^53 in sum. */
ps_code ps_mean_pattern(ps_loader *loader, const ps_loader_shape *shape, const char *source, double *mean, int64_t *n_marked,
                        ps_error *error);

#endif
