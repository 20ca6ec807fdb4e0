/* What the CPU histogram backends share: state and bookkeeping; they differ in how they count. Internal to kernels/cpu. */
#ifndef PS_KERNELS_CPU_HISTOGRAM_CPU_H
#define PS_KERNELS_CPU_HISTOGRAM_CPU_H

#include "kernels/histogram.h"

/* GCC's and Clang's 128-bit integer: exact sums of squares of 33-bit differences over 2^40 patterns. */
__extension__ typedef __int128 ps_int128;
__extension__ typedef unsigned __int128 ps_uint128;

typedef struct {
    ps_int128 sum;
    ps_uint128 square;
    uint64_t n_saturated;
    double minimum, maximum;
} ps_cpu_pixel;

typedef struct ps_cpu_histogram ps_cpu_histogram;
/* Adds patterns [n_frames, n_pixels] to counts and pixels of h; returns the sum of all their finite values. */
typedef ps_int128 (*ps_cpu_count)(ps_cpu_histogram *h, const void *frames, int64_t n_frames);

struct ps_cpu_histogram {
    ps_histogram base;
    ps_cpu_count count;
    ps_histogram_desc desc; /* centre points at the copy below */
    const ps_histogram_map *map;
    double *centre;
    int64_t n_slots;   /* bins and PS_EXTRA_SLOTS */
    uint32_t *counts;  /* [n_pixels, n_slots] of the patterns since the last spill */
    uint64_t *spilled; /* [n_pixels, n_slots] of those before; NULL until the first spill */
    int64_t since_spill, spill_frames;
    ps_cpu_pixel *pixels; /* [n_pixels] */
    ps_int128 *totals;    /* [n_segments] */
    void *buffer;         /* [capacity, n_pixels] */
    int64_t capacity;
    int n_threads;
    ps_histogram_times times;
};

ps_int128 ps_cpu_histogram_count_reference(ps_cpu_histogram *h, const void *frames, int64_t n_frames);
ps_int128 ps_cpu_histogram_count_fast(ps_cpu_histogram *h, const void *frames, int64_t n_frames);

#endif
