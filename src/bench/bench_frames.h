/* Made-up patterns with the statistics of real ones, for benchmarks. */
#ifndef PS_BENCH_BENCH_FRAMES_H
#define PS_BENCH_BENCH_FRAMES_H

#include <stdint.h>

#include "core/error.h"
#include "core/types.h"

typedef struct {
    int64_t n_frames, n_pixels;
    ps_dtype dtype;
    void *frames;   /* [n_frames, n_pixels] of dtype; owned: ps_bench_frames_free */
    double *centre; /* [n_pixels] what centring subtracts */
} ps_bench_frames;

/* An integrating detector without its pedestal subtracted: pedestals spread over [4171, 5744) ADU, noise of 15 ADU, and photons of up to
 * 1000 ADU in one value of 25. dtype: PS_U16 or PS_F32. */
ps_code ps_bench_frames_raw(int64_t n_frames, int64_t n_pixels, ps_dtype dtype, ps_bench_frames *made, ps_error *error);
/* A counting detector: 10 counts a pixel with their noise. dtype: PS_U8 or PS_U16. */
ps_code ps_bench_frames_counts(int64_t n_frames, int64_t n_pixels, ps_dtype dtype, ps_bench_frames *made, ps_error *error);
void ps_bench_frames_free(ps_bench_frames *made);

#endif
