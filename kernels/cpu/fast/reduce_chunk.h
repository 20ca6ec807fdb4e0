/* One chunk of pixels of a reduction. Internal to reduce.c. */
#ifndef PS_KERNELS_CPU_FAST_REDUCE_CHUNK_H
#define PS_KERNELS_CPU_FAST_REDUCE_CHUNK_H

#include "kernels/cpu/fast/fast.h"

typedef struct {
    ps_cpu_frame *const *frames;
    int64_t n_frames;
    int64_t first_block, n_blocks;
    ps_fast_g *const *g; /* [n_frames] of these blocks */
} ps_fast_chunk;

/* Of one thread; ps_fast_reduce_bytes. */
typedef struct ps_fast_reduce_scratch ps_fast_reduce_scratch;

/* threads: one for each of the backend's. Owned by the caller, after an error too: ps_fast_reduce_scratch_free. */
ps_code ps_fast_reduce_scratch_create(const ps_cpu_system *system, int64_t n_frames, ps_fast_reduce_scratch **threads, ps_error *error);
void ps_fast_reduce_scratch_free(const ps_cpu_system *system, ps_fast_reduce_scratch *threads);

/* Adds to every frame's sums what the chunk's g makes of them. */
void ps_fast_reduce_chunk(const ps_fast_chunk *c, ps_fast_reduce_scratch *threads);

#endif
