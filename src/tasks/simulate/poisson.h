/* Counting noise: exact Poisson numbers, one per (seed, frame, pixel, position), the same however the work is divided. */
#ifndef PS_TASKS_SIMULATE_POISSON_H
#define PS_TASKS_SIMULATE_POISSON_H

#include <stdint.h>

typedef struct {
    uint64_t seed;
    uint32_t frame, pixel; /* pixel: detector_row * detector_columns + detector_column */
} ps_noise_source;

/* mean: [n_positions] >= 0; counts: [n_positions], UINT32_MAX when the number is larger. Position i of mean is scan position i. Means below
 * 10 by inversion of the cumulative sum, others by Hoermann's transformed rejection (PTRS). Thread-safe. */
void ps_poisson_draw(const ps_noise_source *source, int64_t n_positions, const float *mean, uint32_t *counts);

#endif
