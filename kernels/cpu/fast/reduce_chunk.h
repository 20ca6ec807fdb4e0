/* One chunk of pixels of a reduction. Internal to reduce.c. */
#ifndef PS_KERNELS_CPU_FAST_REDUCE_CHUNK_H
#define PS_KERNELS_CPU_FAST_REDUCE_CHUNK_H

#include "kernels/cpu/fast/fast.h"

typedef struct {
    ps_cpu_frame *const *frames;
    int64_t n_frames;
    int64_t first_block, n_blocks;
    int64_t stride;       /* floats of one frequency of one frame's spectra */
    const float *spectra; /* [n_frames, half-plane, stride] */
} ps_fast_chunk;

/* Of one thread; ps_fast_reduce_bytes. */
typedef struct ps_fast_reduce_scratch ps_fast_reduce_scratch;

/* threads: one for each of the backend's. Owned by the caller, after an error too: ps_fast_reduce_scratch_free. */
ps_code ps_fast_reduce_scratch_create(const ps_cpu_system *system, int64_t n_frames, ps_fast_reduce_scratch **threads, ps_error *error);
void ps_fast_reduce_scratch_free(const ps_cpu_system *system, ps_fast_reduce_scratch *threads);

/* Forms the chunk's g in spectra and adds what it makes of every frame's sums. */
ps_code ps_fast_reduce_chunk(const ps_fast_chunk *c, float *spectra, ps_fast_reduce_scratch *threads, ps_error *error);

#endif
