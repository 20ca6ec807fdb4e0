/* Brings the ranks' counts together. No rank ever holds more than a block of anyone's 64-bit counts: a block of pixels at a time is summed
 * and shared out, each rank finishes its part of it (statistics, writing), and only maps, one number per pixel, go to everyone. */
#ifndef PS_TASKS_HISTOGRAM_REDUCE_H
#define PS_TASKS_HISTOGRAM_REDUCE_H

#include "cluster/cluster.h"
#include "kernels/histogram.h"
#include "tasks/histogram/maps.h"

/* Takes finished counts [n_pixels, n_bins] of pixels first_pixel ...; called on the rank that owns them. */
typedef ps_code (*ps_counts_sink)(void *context, int64_t first_pixel, int64_t n_pixels, const uint64_t *counts, ps_error *error);

enum { PS_REDUCE_BLOCK_BYTES = 64 << 20 };

typedef struct {
    const ps_cluster *cluster;
    const ps_histogram_map *map;
    int64_t n_pixels;    /* of histogram */
    int64_t first_pixel; /* of them, in maps and for the sink */
    size_t block_bytes;  /* of counts sent by a rank in one call; at least one pixel per rank */
    ps_counts_sink sink;
    void *context;
} ps_reduction;

/* Collective. histogram must be finished. Fills maps (on every rank) at the reduction's pixels and adds to maps->total this rank's share,
 * which the caller sums over ranks at the end. */
ps_code ps_histogram_reduce(const ps_reduction *reduction, ps_histogram *histogram, ps_histogram_maps *maps, ps_error *error);

#endif
