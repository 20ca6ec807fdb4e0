/* What `ptyseries bench` measures of the device beyond the operations. */
#include "kernels/cuda/operations.h"
#include "kernels/cuda/transfer.cuh"

enum { THREADS = 256, CHAINS = 8, STEPS = 4096 };

/* --- ceilings --- */

/* Keeps the compiler from moving a clock reading across the arithmetic. */
__device__ inline void settle(float x) {
    asm volatile("" ::"f"(x) : "memory");
}
__device__ inline void settle(double x) {
    asm volatile("" ::"d"(x) : "memory");
}

__device__ inline unsigned multiprocessor(void) {
    unsigned id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

/* Independent chains of fused multiply-adds; every thread runs CHAINS * STEPS. cycles: first beginning and last end on multiprocessor 0,
 * whose blocks take turns. */
template <typename Real> static __global__ void __launch_bounds__(THREADS) fma_kernel(Real a, Real b, Real *out, long long *cycles) {
    Real x[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; i++) settle(x[i] = (Real)(threadIdx.x + i));
    long long begin = clock64();
#pragma unroll 1
    for (int step = 0; step < STEPS / 16; step++)
#pragma unroll
        for (int j = 0; j < 16; j++)
#pragma unroll
            for (int i = 0; i < CHAINS; i++) x[i] = fma(x[i], a, b);
    Real sum = (Real)0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) sum += x[i];
    settle(sum);
    long long end = clock64();
    if (multiprocessor() == 0 && threadIdx.x == 0) {
        atomicMin(&cycles[0], begin);
        atomicMax(&cycles[1], end);
    }
    if (sum == (Real)-1) out[threadIdx.x] = sum;
}

static __global__ void __launch_bounds__(THREADS) mma_kernel(double a, double b, double *out) {
    double x[CHAINS][2] = {};
#pragma unroll 1
    for (int step = 0; step < STEPS / 16; step++)
#pragma unroll
        for (int i = 0; i < CHAINS; i++) ps_mma_f64(x[i], a, b);
    double sum = 0.0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) sum += x[i][0] + x[i][1];
    if (sum == -1.0) out[threadIdx.x] = sum;
}

/* Seconds of the fastest of five calls of launch(error). */
template <typename Launch> static ps_code fastest(ps_cuda_backend *backend, Launch launch, double *seconds, ps_error *error) {
    cudaEvent_t begin = NULL, end = NULL;
    ps_code code = PS_OK;
    *seconds = 1e30;
    PS_GO(PS_CUDA(error, cudaEventCreate(&begin)));
    PS_GO(PS_CUDA(error, cudaEventCreate(&end)));
    for (int i = 0; i < 6; i++) {
        float ms = 0.0f;
        PS_GO(PS_CUDA(error, cudaEventRecord(begin, backend->compute)));
        PS_GO(launch(error));
        PS_GO(PS_CUDA(error, cudaEventRecord(end, backend->compute)));
        PS_GO(PS_CUDA(error, cudaEventSynchronize(end)));
        PS_GO(PS_CUDA(error, cudaEventElapsedTime(&ms, begin, end)));
        if (i > 0 && ms * 1e-3 < *seconds) *seconds = ms * 1e-3; /* the first one loads the kernel */
    }
done:
    if (begin) cudaEventDestroy(begin);
    if (end) cudaEventDestroy(end);
    return code;
}

static ps_code measure_arithmetic(ps_cuda_backend *backend, double *scratch, ps_bench_ceilings *c, ps_error *error) {
    int blocks = c->n_multiprocessors * 8;
    double per_launch = (double)blocks * THREADS * CHAINS * STEPS, seconds = 0.0;
    const long long none[2] = {INT64_MAX, 0};
    long long *d_cycles = (long long *)scratch, cycles[2];
    auto in_float = [=](ps_error *e) {
        PS_CUDA_LAUNCH(e, fma_kernel<float>, blocks, THREADS, 0, backend->compute, 0.5f, 0.25f, (float *)(scratch + 2), d_cycles);
        return PS_OK;
    };
    auto in_double = [=](ps_error *e) {
        PS_CUDA_LAUNCH(e, fma_kernel<double>, blocks, THREADS, 0, backend->compute, 0.5, 0.25, scratch + 2, d_cycles);
        return PS_OK;
    };
    auto by_tensor = [=](ps_error *e) {
        PS_CUDA_LAUNCH(e, mma_kernel, blocks, THREADS, 0, backend->compute, 0.5, 0.25, scratch + 2);
        return PS_OK;
    };
    PS_TRY(fastest(backend, in_float, &seconds, error));
    c->float_fma_per_s = per_launch / seconds;
    PS_TRY(fastest(backend, in_double, &seconds, error));
    c->double_fma_per_s = per_launch / seconds;
    PS_TRY(ps_cuda_send(d_cycles, none, 2, error));
    PS_TRY(in_double(error));
    PS_TRY(PS_CUDA(error, cudaStreamSynchronize(backend->compute)));
    PS_TRY(ps_cuda_fetch(cycles, (const long long *)d_cycles, 2, error));
    c->clock_hz = (double)(cycles[1] - cycles[0]) / seconds;
    PS_TRY(fastest(backend, by_tensor, &seconds, error));
    c->double_mma_fma_per_s = (double)blocks * (THREADS / 32) * CHAINS * (STEPS / 16) * 256.0 / seconds;
    return PS_OK;
}

static ps_code measure_copies(ps_cuda_backend *backend, unsigned char *memory, size_t bytes, ps_bench_ceilings *c, ps_error *error) {
    void *pinned = NULL;
    size_t part = bytes / 8;
    double seconds = 0.0;
    ps_code code = PS_OK;
    auto copy = [=](ps_error *e) {
        return PS_CUDA(e, cudaMemcpyAsync(memory, memory + bytes / 2, bytes / 2, cudaMemcpyDeviceToDevice, backend->compute));
    };
    auto upload = [&](ps_error *e) { return PS_CUDA(e, cudaMemcpyAsync(memory, pinned, part, cudaMemcpyHostToDevice, backend->compute)); };
    PS_GO(PS_CUDA(error, cudaMallocHost(&pinned, part)));
    PS_GO(fastest(backend, copy, &seconds, error));
    c->copy_bytes_per_s = (double)bytes / seconds;
    PS_GO(fastest(backend, upload, &seconds, error));
    c->upload_bytes_per_s = (double)part / seconds;
done:
    if (pinned) cudaFreeHost(pinned);
    return code;
}

static ps_code bench_ceilings(ps_backend *handle, ps_bench_ceilings *ceilings, ps_error *error) {
    ps_cuda_backend *backend = (ps_cuda_backend *)handle;
    size_t available = ps_cuda_available(backend), wanted = (size_t)4 << 30,
           bytes = (available / 2 < wanted ? available / 2 : wanted) / 4096 * 4096;
    void *memory = NULL;
    ps_code code = PS_OK;
    *ceilings = ps_bench_ceilings();
    PS_TRY(ps_cuda_enter(backend, error));
    PS_TRY(PS_CUDA(error, cudaDeviceGetAttribute(&ceilings->n_multiprocessors, cudaDevAttrMultiProcessorCount, backend->device)));
    cudaDeviceGetAttribute(&ceilings->max_clock_khz, cudaDevAttrClockRate, backend->device);
    cudaDeviceGetAttribute(&ceilings->memory_clock_khz, cudaDevAttrMemoryClockRate, backend->device);
    PS_TRY(ps_cuda_allocate(backend, bytes, "the measurement of ceilings", &memory, error));
    PS_GO(measure_copies(backend, (unsigned char *)memory, bytes, ceilings, error));
    PS_GO(measure_arithmetic(backend, (double *)memory, ceilings, error));
done:
    ps_cuda_free(backend, memory, bytes);
    return code;
}

/* --- counts made on the device --- */

__host__ __device__ static inline uint16_t count_of(uint64_t seed, uint64_t index) {
    uint64_t x = seed + (index + 1) * 0x9e3779b97f4a7c15ull; /* splitmix64 */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    uint32_t coins = (uint32_t)x & 0xfffffu;
#ifdef __CUDA_ARCH__
    return (uint16_t)__popc(coins);
#else
    return (uint16_t)__builtin_popcount(coins);
#endif
}

static uint16_t bench_count(uint64_t seed, int64_t position, int64_t n_pixels, int64_t pixel) {
    return count_of(seed, (uint64_t)(position * n_pixels + pixel));
}

static __global__ void __launch_bounds__(THREADS) fill_kernel(uint16_t *counts, int64_t n, uint64_t seed, int64_t first) {
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS)
        counts[i] = count_of(seed, (uint64_t)(first + i));
}

/* Fills `n` positions and adds the gather's time. */
static ps_code fill_some(ps_cuda_frame *frame, uint64_t seed, int64_t first, int64_t n, uint16_t *raw, cudaEvent_t begin, cudaEvent_t end,
                         double *gather_s, ps_error *error) {
    cudaStream_t stream = frame->system->backend->upload;
    int64_t n_pixels = frame->system->desc.detector_rows * frame->system->desc.detector_columns;
    float ms = 0.0f;
    PS_CUDA_LAUNCH(error, fill_kernel, 4096, THREADS, 0, stream, raw, n * n_pixels, seed, first * n_pixels);
    PS_TRY(PS_CUDA(error, cudaEventRecord(begin, stream)));
    PS_TRY(ps_cuda_frame_gather(frame, first, n, raw, stream, error));
    PS_TRY(PS_CUDA(error, cudaEventRecord(end, stream)));
    PS_TRY(PS_CUDA(error, cudaEventSynchronize(end)));
    PS_TRY(PS_CUDA(error, cudaEventElapsedTime(&ms, begin, end)));
    *gather_s += ms * 1e-3;
    return PS_OK;
}

static ps_code bench_fill(ps_frame *handle, uint64_t seed, double *gather_s, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_backend *backend = frame->system->backend;
    int64_t positions = frame->system->n_positions, n_pixels = frame->system->desc.detector_rows * frame->system->desc.detector_columns;
    int64_t step = positions < 32768 ? positions : 32768;
    size_t bytes = (size_t)(step * n_pixels) * sizeof(uint16_t);
    void *raw = NULL;
    cudaEvent_t begin = NULL, end = NULL;
    double seconds = 0.0;
    ps_code code = PS_OK;
    ps_cuda_frame_renew(frame);
    PS_TRY(ps_cuda_enter(backend, error));
    PS_TRY(ps_cuda_allocate(backend, bytes, "counts made for measuring", &raw, error));
    PS_GO(PS_CUDA(error, cudaEventCreate(&begin)));
    PS_GO(PS_CUDA(error, cudaEventCreate(&end)));
    for (int64_t first = 0; first < positions; first += step)
        PS_GO(fill_some(frame, seed, first, positions - first < step ? positions - first : step, (uint16_t *)raw, begin, end, &seconds,
                        error));
    if (gather_s) *gather_s = seconds;
done:
    if (begin) cudaEventDestroy(begin);
    if (end) cudaEventDestroy(end);
    ps_cuda_free(backend, raw, bytes);
    return code;
}

/* --- stages --- */

static ps_code time_spectra(ps_cuda_frame *frame, cudaEvent_t begin, cudaEvent_t end, double *spectra_s, ps_error *error) {
    ps_cuda_system *system = frame->system;
    int64_t tiles, all = system->layout.n_tiles;
    float ms = 0.0f;
    PS_TRY(ps_cuda_workspace_ensure(system, 1, &tiles, error));
    for (int64_t i = 0; i < system->workspace.n_owners; i++) system->workspace.owner[i] = 0;
    PS_TRY(PS_CUDA(error, cudaEventRecord(begin, system->backend->compute)));
    for (int64_t first = 0; first < all; first += tiles)
        PS_TRY(ps_cuda_spectra(frame, first, all - first < tiles ? all - first : tiles, system->workspace.g, error));
    PS_TRY(PS_CUDA(error, cudaEventRecord(end, system->backend->compute)));
    PS_TRY(PS_CUDA(error, cudaEventSynchronize(end)));
    PS_TRY(PS_CUDA(error, cudaEventElapsedTime(&ms, begin, end)));
    if (tiles >= all) system->workspace.owner[0] = frame->serial;
    *spectra_s = ms * 1e-3;
    return PS_OK;
}

static ps_code bench_spectra(ps_frame *handle, double *means_s, double *spectra_s, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_backend *backend = frame->system->backend;
    cudaEvent_t begin = NULL, end = NULL;
    float ms = 0.0f;
    ps_code code = PS_OK;
    PS_TRY(ps_cuda_enter(backend, error));
    pthread_mutex_lock(&backend->compute_lock);
    frame->has_means = false;
    PS_GO(PS_CUDA(error, cudaEventCreate(&begin)));
    PS_GO(PS_CUDA(error, cudaEventCreate(&end)));
    PS_GO(PS_CUDA(error, cudaEventRecord(begin, backend->compute)));
    PS_GO(ps_cuda_frame_ensure_means(frame, error));
    PS_GO(PS_CUDA(error, cudaEventRecord(end, backend->compute)));
    PS_GO(PS_CUDA(error, cudaEventSynchronize(end)));
    PS_GO(PS_CUDA(error, cudaEventElapsedTime(&ms, begin, end)));
    *means_s = ms * 1e-3;
    PS_GO(time_spectra(frame, begin, end, spectra_s, error));
done:
    pthread_mutex_unlock(&backend->compute_lock);
    if (begin) cudaEventDestroy(begin);
    if (end) cudaEventDestroy(end);
    return code;
}

static void keep_images(ps_backend *backend, bool keep) {
    ((ps_cuda_backend *)backend)->keeps_images = keep;
}

static void bench_memory(ps_backend *handle, size_t *in_use, size_t *peak, size_t *budget) {
    ps_cuda_backend *backend = (ps_cuda_backend *)handle;
    pthread_mutex_lock(&backend->memory_lock);
    *in_use = backend->in_use_bytes;
    *peak = backend->peak_bytes;
    *budget = backend->budget_bytes;
    pthread_mutex_unlock(&backend->memory_lock);
}

const ps_backend_bench_ops ps_cuda_bench = {bench_ceilings, bench_count,           bench_fill,   bench_spectra,
                                            keep_images,    ps_cuda_set_precision, bench_memory, ps_cuda_bench_unpack};
