/* Pixels not to trust, by robust rules. docs/histogram.md says them in words. Rank-local. */
#ifndef PS_TASKS_HISTOGRAM_MASKS_H
#define PS_TASKS_HISTOGRAM_MASKS_H

#include <stdint.h>

#include "core/error.h"

/* Bits of a mask; a pixel may have several. */
enum { PS_MASK_HOT = 1, PS_MASK_DEAD = 2, PS_MASK_NOISY = 4, PS_MASK_SATURATED = 8, PS_MASK_GIVEN = 16, PS_MASK_KINDS = 5 };
extern const char *const ps_mask_names[PS_MASK_KINDS]; /* "hot", "dead", "noisy", "saturated", "given" */

/* Thresholds. Neighbours are the other pixels of the 5 x 5 window that are not given as bad. */
typedef struct {
    double hot_sigma;     /* the mean exceeds the neighbours' by so many times the noise (ps_hot_pixels) */
    double dead_fraction; /* activity, n (mean - minimum), below this fraction of the neighbours' lower quartile, which must be >= 100 */
    double noisy_ratio;   /* variance above this many times the neighbours' upper quartile and the counting noise mean - minimum */
    double saturated_fraction; /* more than this fraction of the values is saturated */
} ps_mask_rules;

/* Maps of [rows, columns] each. */
typedef struct {
    int64_t rows, columns;
    const uint64_t *n_values, *n_saturated;
    const double *mean, *variance, *minimum;
    const uint8_t *given; /* 1: given as bad */
} ps_mask_input;

/* mask: [rows, columns] bits; n_masked: [PS_MASK_KINDS] pixels of each kind. Pixels that are given have only that bit. */
ps_code ps_masks_find(const ps_mask_input *input, const ps_mask_rules *rules, uint32_t *mask, int64_t *n_masked, ps_error *error);

#endif
