/* What is known of every pixel of the region once all ranks' counts are together. */
#ifndef PS_TASKS_HISTOGRAM_MAPS_H
#define PS_TASKS_HISTOGRAM_MAPS_H

#include <stdint.h>

#include "core/error.h"

/* [n_pixels] each. */
typedef struct {
    uint64_t *n_values; /* finite ones */
    uint64_t *underflow, *overflow, *nonfinite, *n_saturated;
    double *mean, *variance, *median, *mode, *minimum, *maximum; /* 0 where a pixel has no finite value */
    uint64_t *total;                                             /* [n_bins] the histogram of all pixels together */
} ps_histogram_maps;

ps_code ps_histogram_maps_allocate(int64_t n_pixels, int64_t n_bins, ps_histogram_maps *maps, ps_error *error);
void ps_histogram_maps_free(ps_histogram_maps *maps);

#endif
