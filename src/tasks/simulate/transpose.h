/* Turns a frame's counts around: they arrive as all positions of some pixels and leave as all pixels of some positions. Kept in
 * memory or in a temporary file, which has no name from the start, so that nothing is left behind whatever happens.
 *
 * Counts lie in tiles of positions_per_block positions by pixels_per_group pixels, [position, pixel] inside; the tiles of one block
 * of positions lie together. */
#ifndef PS_TASKS_SIMULATE_TRANSPOSE_H
#define PS_TASKS_SIMULATE_TRANSPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

typedef struct {
    int64_t n_positions, n_pixels;
    int64_t positions_per_block, pixels_per_group;
    size_t element_bytes;
    bool in_memory;
} ps_transpose_shape;

typedef struct ps_transpose ps_transpose;

/* directory: where the temporary file goes; it takes n_positions * n_pixels elements. */
ps_code ps_transpose_create(const char *directory, const ps_transpose_shape *shape, ps_transpose **turning, ps_error *error);
void ps_transpose_destroy(ps_transpose *turning);

/* counts: [pixels of the group, n_positions]. Uses OpenMP threads. */
ps_code ps_transpose_put(ps_transpose *turning, int64_t group, const void *counts, int n_threads, ps_error *error);
/* tiles: room for positions_per_block * n_pixels elements, filled with the block's tiles, one group after another; for an in-memory turning
 * *found points at them instead and tiles is not touched. */
ps_code ps_transpose_get(ps_transpose *turning, int64_t block, void *tiles, const void **found, ps_error *error);
/* pixels: [n_pixels] of position number `position` of the block whose tiles these are. Thread-safe. */
void ps_transpose_pick(const ps_transpose *turning, int64_t block, const void *tiles, int64_t position, void *pixels);

#endif
