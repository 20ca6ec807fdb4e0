/* A Fourier transform of n = first * second values for 8 or 16 pixels side by side in one block of threads.
 *
 * Thread t holds pixel t % lanes. Step 1: thread (j, pixel), j < second, transforms its `first` values j + second * m in registers,
 * turns them by exp(-2 pi i j k1 / n) and leaves them in shared memory. Step 2: for each k1 < first a thread transforms the `second` values
 * of its pixel there into the frequencies k1 + first * k2. Lanes are pixels, so nothing is ever transposed, and any order of frequencies is
 * as good as another. The first step takes its values from a source and the second gives them to a sink, straight from and to global
 * memory: each value crosses shared memory once.
 *
 * Shared memory: PS_FFT_PITCH values for each k1. A half warp moves 16 values at a time, of one k1 (16 lanes) or of two (8 lanes): for odd
 * k1 the two halves of 16 change places, so those of two neighbours lie in different banks. */
#ifndef PS_KERNELS_CUDA_SCAN_FFT_CUH
#define PS_KERNELS_CUDA_SCAN_FFT_CUH

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/dft.cuh"

enum { PS_FFT_PITCH = 256, PS_FFT_THREADS = 256 };

/* What a step can transform in registers. */
#define PS_FFT_RADICES(X) X(2) X(3) X(4) X(5) X(6) X(8) X(9) X(10) X(12) X(15) X(16) X(18) X(20) X(24) X(25) X(30) X(32)

__host__ __device__ constexpr int ps_fft_lanes(int second) {
    return second > 16 ? 8 : 16;
}

/* source.fill<R>(x): x[m] is value j + second * m of this thread's pixel. */
template <int R, typename Source>
__device__ inline void ps_fft_first(const ps_fft_plan &plan, int j, float2 *shared, const Source &source) {
    float2 x[R];
    float2 *even = shared + threadIdx.x, *odd = shared + (threadIdx.x ^ 8);
    const float2 *roots = plan.roots + j * R;
    source.template fill<R>(x);
    ps_dft<R>(x);
    if constexpr (R % 2 == 0) {
#pragma unroll
        for (int k = 0; k < R; k += 2) {
            float4 w = __ldg((const float4 *)(roots + k));
            even[k * PS_FFT_PITCH] = k == 0 ? x[0] : ps_times(x[k], make_float2(w.x, w.y));
            odd[(k + 1) * PS_FFT_PITCH] = ps_times(x[k + 1], make_float2(w.z, w.w));
        }
    } else {
#pragma unroll
        for (int k = 0; k < R; k++) (k % 2 ? odd : even)[k * PS_FFT_PITCH] = k == 0 ? x[0] : ps_times(x[k], __ldg(roots + k));
    }
}

/* sink.take<R>(k1, x): x[k2] is frequency k1 + first * k2 of this thread's pixel. */
template <int R, typename Sink> __device__ inline void ps_fft_second(const ps_fft_plan &plan, const float2 *shared, const Sink &sink) {
    constexpr int LANES = ps_fft_lanes(R);
    const int lane = (int)threadIdx.x % LANES;
#pragma unroll 1
    for (int k1 = (int)threadIdx.x / LANES; k1 < plan.first; k1 += (int)blockDim.x / LANES) {
        float2 x[R];
        int swap = k1 % 2 * 8;
        const float2 *even = shared + k1 * PS_FFT_PITCH + (LANES == 16 ? lane ^ swap : lane + swap);
        const float2 *odd = LANES == 16 ? even : even - 2 * swap;
#pragma unroll
        for (int j = 0; j < R; j++) x[j] = (j % 2 ? odd : even)[j * LANES];
        ps_dft<R>(x);
        sink.template take<R>(k1, x);
    }
}

/* The whole transform; every thread of the block calls it. */
template <typename Source, typename Sink>
__device__ inline void ps_fft_run(const ps_fft_plan &plan, int j, float2 *shared, const Source &source, const Sink &sink) {
    if (j < plan.second) switch (plan.first) {
#define X(R) \
    case R: ps_fft_first<R>(plan, j, shared, source); break;
            PS_FFT_RADICES(X)
#undef X
        }
    __syncthreads();
    switch (plan.second) {
#define X(R) \
    case R: ps_fft_second<R>(plan, shared, sink); break;
        PS_FFT_RADICES(X)
#undef X
    }
}

#endif
