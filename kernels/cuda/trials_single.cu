/* Explained power of trial optics where every frequency of the band has one alias: |b|^2 / (N + D).
 *
 * sum_kernel: a block takes one trial, 8 frequencies (one to a warp) and up to 2048 pixels. Its threads place 256 pixels at a time (x, y,
 * chi(k), A(k)) in shared memory, which the warps then share; lanes are pixels. Reads 8 bytes of g for each pixel, frequency and trial,
 * which stay in the level-2 cache; bound by the transfer's arithmetic, about 60 float and 10 + 2 chi's degree squared double operations.
 * explain_kernel: a block takes one trial; threads are frequencies. Sums over pixels and frequencies always go in the same order. */
#include "kernels/cuda/operations.h"
#include "kernels/cuda/trial_transfer.cuh"

enum { THREADS = 32 * PS_TRIAL_SHARE, EXPLAIN_THREADS = 128 };

static __device__ inline double warp_sum(double value) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(PS_FULL_WARP, value, step);
    return value;
}

/* The places of the pixels [first, end) in shared memory; those beyond the end are dark. */
template <int DEGREE>
static __device__ inline void place_tile(const ps_cuda_trial &t, const int2 *pixels, int64_t first, int64_t end,
                                         ps_trial_places<PS_TRIAL_TILE> *places) {
    int64_t at = first + threadIdx.x;
    ps_trial_place place = {0.0, 0.0, 0.0, 0.0f};
    if (at < end) place = ps_trial_place_of<DEGREE>(t, pixels[at]);
    places->put(threadIdx.x, place);
}

template <int DEGREE>
static __global__ void __launch_bounds__(THREADS, 2)
    sum_kernel(const __grid_constant__ ps_cuda_band_arrays band, const ps_cuda_trial *trials, int64_t n_frequencies, double3 *sums) {
    __shared__ ps_cuda_trial t;
    __shared__ ps_trial_places<PS_TRIAL_TILE> places;
    int lane = threadIdx.x % 32;
    int64_t frequency = (int64_t)blockIdx.x * PS_TRIAL_SHARE + threadIdx.x / 32, trial = blockIdx.z;
    int64_t first = (int64_t)blockIdx.y * PS_TRIAL_CHUNK, end = min(first + (int64_t)PS_TRIAL_CHUNK, band.n_pixels);
    bool exists = frequency < n_frequencies;
    for (unsigned i = threadIdx.x; i < sizeof t / sizeof(double); i += THREADS) ((double *)&t)[i] = ((const double *)&trials[trial])[i];
    __syncthreads();
    const ps_trial_alias q = exists ? ps_trial_alias_of(t, band.q_row[frequency], band.q_column[frequency]) : ps_trial_alias{};
    const float2 *spectrum = band.spectra + frequency * band.n_pixels;
    double normal = 0.0, re = 0.0, im = 0.0;
    for (int64_t tile = first; tile < end; tile += PS_TRIAL_TILE) {
        place_tile<DEGREE>(t, band.pixels, tile, end, &places);
        __syncthreads();
        for (int i = lane; exists && i < PS_TRIAL_TILE && tile + i < end; i += 32) {
            float2 g = spectrum[tile + i], p = ps_trial_transfer<DEGREE>(t, places.get(i), q);
            normal += (double)fmaf(p.x, p.x, p.y * p.y);
            re += (double)fmaf(p.x, g.x, p.y * g.y);
            im += (double)fmaf(p.x, g.y, -p.y * g.x);
        }
        __syncthreads();
    }
    normal = warp_sum(normal);
    re = warp_sum(re);
    im = warp_sum(im);
    if (exists && lane == 0) sums[(trial * n_frequencies + frequency) * band.n_chunks + blockIdx.y] = make_double3(normal, re, im);
}

static __device__ inline double3 add_chunks(const double3 *sums, int64_t n_chunks) {
    double3 total = make_double3(0.0, 0.0, 0.0);
    for (int64_t chunk = 0; chunk < n_chunks; chunk++) {
        total.x += sums[chunk].x;
        total.y += sums[chunk].y;
        total.z += sums[chunk].z;
    }
    return total;
}

static __global__ void __launch_bounds__(EXPLAIN_THREADS)
    explain_kernel(const double3 *sums, int64_t n_frequencies, int64_t n_chunks, double strength, double *explained) {
    __shared__ double room[EXPLAIN_THREADS];
    const double3 *own = sums + (int64_t)blockIdx.x * n_frequencies * n_chunks;
    double diagonal = 0.0, sum = 0.0;
    for (int64_t f = threadIdx.x; f < n_frequencies; f += EXPLAIN_THREADS) diagonal += add_chunks(own + f * n_chunks, n_chunks).x;
    double ridge = strength * ps_trial_block_sum<EXPLAIN_THREADS>(diagonal, room) / (double)n_frequencies;
    for (int64_t f = threadIdx.x; f < n_frequencies && ridge > 0.0; f += EXPLAIN_THREADS) {
        double3 s = add_chunks(own + f * n_chunks, n_chunks);
        sum += fma(s.y, s.y, s.z * s.z) / (s.x + ridge);
    }
    sum = ps_trial_block_sum<EXPLAIN_THREADS>(sum, room);
    if (threadIdx.x == 0) explained[blockIdx.x] = sum;
}

ps_code ps_cuda_trials_single(cudaStream_t stream, const ps_cuda_band_arrays *band, const ps_cuda_trial_sums *sums, int64_t n_frequencies,
                              int64_t n_trials, int degree, const ps_cuda_trial *trials, double *explained, ps_error *error) {
    dim3 grid((unsigned)ps_cuda_blocks(n_frequencies, PS_TRIAL_SHARE), (unsigned)band->n_chunks, (unsigned)n_trials);
    if (degree <= 2)
        PS_CUDA_LAUNCH(error, sum_kernel<2>, grid, THREADS, 0, stream, *band, trials, n_frequencies, sums->sums);
    else if (degree <= 4)
        PS_CUDA_LAUNCH(error, sum_kernel<4>, grid, THREADS, 0, stream, *band, trials, n_frequencies, sums->sums);
    else
        PS_CUDA_LAUNCH(error, sum_kernel<6>, grid, THREADS, 0, stream, *band, trials, n_frequencies, sums->sums);
    PS_CUDA_LAUNCH(error, explain_kernel, (unsigned)n_trials, EXPLAIN_THREADS, 0, stream, sums->sums, n_frequencies, band->n_chunks,
                   band->strength, explained);
    return PS_OK;
}
