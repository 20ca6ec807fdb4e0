/* Counts on the device: taking the active pixels out of patterns, and their means over the scan.
 *
 * An upload copies raw patterns through pinned buffers to the device, where gather_kernel keeps the active pixels only, as
 * count_sheets.cuh lays them out. The element type stays what the detector wrote.
 *
 * gather_kernel: a warp takes a tile and 64 positions, a lane a pixel, eight positions' loads under way at a time; what it writes of two
 * positions next to each other is one piece. The tiles of a block share the sectors of their detector rows. Bytes: the sectors under the
 * active pixels once, the active counts once. Bound by memory. means_kernel: a block takes 16 pixels and a part of the scan, 16 bytes a
 * thread and step; means_finish_kernel adds the parts, a thread a slot. Sums of integers are exact below 2^53, and every sum has one order.
 * Bytes: the active counts once. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/count_sheets.cuh"
#include "kernels/cuda/intrinsics.cuh"
#include "kernels/cuda/operations.h"

enum { GATHER_WARPS = 8, GATHER_POSITIONS = 64, GATHER_AHEAD = 8, MEANS_THREADS = 256 };

/* counts: [n_positions, n_pixels]; slots: as count_sheets.cuh says, from first_position on. */
template <typename Word>
static __global__ void __launch_bounds__(32 * GATHER_WARPS)
    gather_kernel(const Word *counts, int64_t n_positions, int64_t n_pixels, const int32_t *slot_detector, int64_t n_slots, Word *slots,
                  int64_t first_position, int64_t n_all_positions) {
    int64_t slot = (int64_t)blockIdx.y * 32 * GATHER_WARPS + threadIdx.x, first = (int64_t)blockIdx.x * GATHER_POSITIONS;
    if (slot >= n_slots) return;
    const Word *from = counts + first * n_pixels + slot_detector[slot];
    Word *to = slots + ps_cuda_scan_start(slot, n_all_positions) + (first_position + first) * PS_CUDA_SHEET;
    int n = n_positions - first < GATHER_POSITIONS ? (int)(n_positions - first) : GATHER_POSITIONS, p = 0;
    for (; p + GATHER_AHEAD <= n; p += GATHER_AHEAD) {
        Word values[GATHER_AHEAD];
#pragma unroll
        for (int i = 0; i < GATHER_AHEAD; i++) values[i] = from[(p + i) * n_pixels];
#pragma unroll
        for (int i = 0; i < GATHER_AHEAD; i++) to[(p + i) * PS_CUDA_SHEET] = values[i];
    }
    for (; p < n; p++) to[p * PS_CUDA_SHEET] = from[p * n_pixels];
}

template <typename Word>
static ps_code gather(ps_cuda_frame *frame, int64_t first, int64_t n, const void *d_counts, cudaStream_t stream, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    dim3 grid((unsigned)ps_cuda_blocks(n, GATHER_POSITIONS), (unsigned)ps_cuda_blocks(system->layout.n_slots, 32 * GATHER_WARPS));
    PS_CUDA_LAUNCH(error, gather_kernel<Word>, grid, 32 * GATHER_WARPS, 0, stream, (const Word *)d_counts, n,
                   system->desc.detector_rows * system->desc.detector_columns, system->d_slot_detector, system->layout.n_slots,
                   (Word *)frame->d_counts, first, system->n_positions);
    return PS_OK;
}

ps_code ps_cuda_frame_gather(ps_cuda_frame *frame, int64_t first, int64_t n, const void *d_counts, cudaStream_t stream, ps_error *error) {
    switch (ps_dtype_bytes(frame->dtype)) {
    case 1: return gather<uint8_t>(frame, first, n, d_counts, stream, error);
    case 2: return gather<uint16_t>(frame, first, n, d_counts, stream, error);
    case 4: return gather<uint32_t>(frame, first, n, d_counts, stream, error);
    case 8: return gather<uint64_t>(frame, first, n, d_counts, stream, error);
    default: return PS_FAIL(error, PS_E_INTERNAL, "unknown element type %d", (int)frame->dtype);
    }
}

/* --- frames --- */

size_t ps_cuda_upload_bytes(const ps_system_desc *desc, ps_dtype dtype) {
    size_t wanted = (size_t)16 << 20, position = (size_t)(desc->detector_rows * desc->detector_columns) * ps_dtype_bytes(dtype);
    size_t all = position * (size_t)ps_cuda_positions(desc), whole = wanted / position * position;
    return all < wanted ? all : whole > 0 ? whole : position;
}

void ps_cuda_frame_carve(ps_cuda_frame *frame, ps_cuda_arena *arena) {
    const ps_cuda_system *system = frame->system;
    int64_t n_slots = system->layout.n_slots, n_aliases = system->desc.n_aliases;
    bool has_right = system->methods & PS_METHODS_RIGHT_SIDE, has_phase = system->methods & PS_METHOD_PHASE,
         has_complex = system->methods & PS_METHOD_COMPLEX, has_ssb = system->methods & PS_METHOD_SSB;
    frame->d_counts = ps_cuda_take<unsigned char>(arena, n_slots * system->n_positions * (int64_t)ps_dtype_bytes(frame->dtype));
    frame->d_mean = ps_cuda_take<double>(arena, n_slots);
    frame->d_marked = ps_cuda_take<unsigned long long>(arena, n_slots);
    frame->d_mean_parts = ps_cuda_take<double>(arena, PS_CUDA_MEAN_PARTS * n_slots);
    frame->d_marked_parts = ps_cuda_take<uint32_t>(arena, PS_CUDA_MEAN_PARTS * n_slots);
    frame->d_right_phase = ps_cuda_take<double2>(arena, has_right ? n_aliases : 0);
    frame->d_right_amplitude = ps_cuda_take<double2>(arena, has_complex ? n_aliases : 0);
    frame->d_projection = ps_cuda_take<double2>(arena, has_phase ? n_aliases : 0);
    frame->d_ssb = ps_cuda_take<double2>(arena, has_ssb ? n_aliases : 0);
    frame->d_data_norm = ps_cuda_take<double>(arena, system->desc.n_frequencies);
    ps_cuda_unpack_carve_frame(frame, arena);
}

static uint64_t next_serial(void) {
    static uint64_t serial = 0;
    return __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
}

/* A frame may take the memory that an earlier batch's spectra hold. */
static ps_code allocate_frame(ps_cuda_frame *frame, ps_error *error) {
    ps_cuda_system *system = frame->system;
    if (ps_cuda_available(system->backend) < frame->memory_bytes) {
        pthread_mutex_lock(&system->backend->compute_lock);
        ps_cuda_workspace_release(system);
        pthread_mutex_unlock(&system->backend->compute_lock);
    }
    return ps_cuda_allocate(system->backend, frame->memory_bytes, "a frame", &frame->memory, error);
}

static ps_code build_frame(ps_cuda_frame *frame, ps_error *error) {
    ps_cuda_system *system = frame->system;
    PS_TRY(ps_cuda_enter(system->backend, error));
    frame->serial = next_serial();
    frame->mean = (double *)malloc((size_t)system->desc.n_active * sizeof *frame->mean);
    frame->n_marked = (int64_t *)malloc((size_t)system->desc.n_active * sizeof *frame->n_marked);
    if (!frame->mean || !frame->n_marked)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the means of %lld active pixels", (long long)system->desc.n_active);
    ps_cuda_arena arena = {NULL, 0};
    ps_cuda_frame_carve(frame, &arena);
    frame->memory_bytes = arena.used;
    PS_TRY(allocate_frame(frame, error));
    arena.base = (unsigned char *)frame->memory;
    arena.used = 0;
    ps_cuda_frame_carve(frame, &arena);
    return PS_OK;
}

ps_code ps_cuda_frame_create(ps_system *system, ps_dtype dtype, ps_frame **handle, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)calloc(1, sizeof *frame);
    if (!frame) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a frame");
    frame->system = (ps_cuda_system *)system;
    frame->dtype = dtype;
    ps_code code = build_frame(frame, error);
    if (code != PS_OK) {
        ps_cuda_frame_destroy(&frame->base);
        return code;
    }
    *handle = &frame->base;
    return PS_OK;
}

void ps_cuda_frame_destroy(ps_frame *handle) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    if (!frame) return;
    ps_cuda_backend *backend = frame->system->backend;
    cudaSetDevice(backend->device);
    if (frame->memory) cudaStreamSynchronize(backend->upload);
    ps_cuda_free(backend, frame->memory, frame->memory_bytes);
    free(frame->mean);
    free(frame->n_marked);
    free(frame);
}

/* --- uploading counts --- */

void ps_cuda_frame_renew(ps_cuda_frame *frame) {
    frame->has_means = false;
    frame->serial = next_serial();
}

static void release_upload(ps_cuda_backend *backend) {
    for (int i = 0; i < PS_CUDA_UPLOAD_BUFFERS; i++) {
        ps_cuda_free(backend, backend->d_upload[i], backend->upload_bytes);
        if (backend->h_upload[i]) cudaFreeHost(backend->h_upload[i]);
        backend->d_upload[i] = backend->h_upload[i] = NULL;
    }
    backend->upload_bytes = 0;
}

ps_code ps_cuda_upload_ensure(ps_cuda_backend *backend, size_t bytes, ps_error *error) {
    if (backend->upload_bytes >= bytes) return PS_OK;
    PS_TRY(PS_CUDA(error, cudaStreamSynchronize(backend->upload)));
    release_upload(backend);
    backend->upload_bytes = bytes;
    for (int i = 0; i < PS_CUDA_UPLOAD_BUFFERS; i++) {
        ps_code code = ps_cuda_allocate(backend, bytes, "an upload buffer", (void **)&backend->d_upload[i], error);
        if (code == PS_OK) code = PS_CUDA(error, cudaMallocHost((void **)&backend->h_upload[i], bytes));
        if (code != PS_OK) {
            release_upload(backend);
            return code;
        }
    }
    return PS_OK;
}

static bool is_pinned(const void *pointer) {
    cudaPointerAttributes attributes;
    bool pinned = cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess && attributes.type == cudaMemoryTypeHost;
    cudaGetLastError();
    return pinned;
}

/* One buffer's worth of positions: to the device and into the frame, without waiting for either. */
static ps_code upload(ps_cuda_frame *frame, int buffer, int64_t first, int64_t n, const unsigned char *counts, size_t bytes, bool pinned,
                      ps_error *error) {
    ps_cuda_backend *backend = frame->system->backend;
    PS_TRY(PS_CUDA(error, cudaEventSynchronize(backend->upload_free[buffer])));
    if (!pinned) ps_cuda_copy_host(backend->h_upload[buffer], counts, bytes, backend->n_threads);
    PS_TRY(PS_CUDA(error, cudaMemcpyAsync(backend->d_upload[buffer], pinned ? counts : backend->h_upload[buffer], bytes,
                                          cudaMemcpyHostToDevice, backend->upload)));
    PS_TRY(ps_cuda_frame_gather(frame, first, n, backend->d_upload[buffer], backend->upload, error));
    return PS_CUDA(error, cudaEventRecord(backend->upload_free[buffer], backend->upload));
}

static ps_code put(ps_cuda_frame *frame, int64_t first, int64_t n, const void *counts, ps_error *error) {
    ps_cuda_system *system = frame->system;
    ps_cuda_backend *backend = system->backend;
    size_t position = (size_t)(system->desc.detector_rows * system->desc.detector_columns) * ps_dtype_bytes(frame->dtype);
    bool pinned = is_pinned(counts);
    PS_TRY(ps_cuda_enter(backend, error));
    PS_TRY(ps_cuda_upload_ensure(backend, ps_cuda_upload_bytes(&system->desc, frame->dtype), error));
    int64_t step = (int64_t)(backend->upload_bytes / position);
    for (int64_t done = 0, turn = 0; done < n; done += step, turn++) {
        int64_t some = n - done < step ? n - done : step;
        PS_TRY(upload(frame, (int)(turn % PS_CUDA_UPLOAD_BUFFERS), first + done, some,
                      (const unsigned char *)counts + (size_t)done * position, (size_t)some * position, pinned, error));
    }
    return pinned ? PS_CUDA(error, cudaStreamSynchronize(backend->upload)) : PS_OK;
}

ps_code ps_cuda_frame_upload(ps_frame *handle, int64_t first, int64_t n, const void *counts, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_frame_renew(frame);
    pthread_mutex_lock(&frame->system->backend->upload_lock);
    ps_code code = put(frame, first, n, counts, error);
    pthread_mutex_unlock(&frame->system->backend->upload_lock);
    return code;
}

/* --- means --- */

__device__ inline bool is_finite(float value) {
    return isfinite(value);
}
__device__ inline bool is_finite(double value) {
    return isfinite(value);
}
template <typename T> __device__ inline bool is_finite(T) {
    return true;
}

/* Sums of a few counts: integers stay integers. */
template <typename T> struct mean_sum_of { typedef long long type; };
template <> struct mean_sum_of<float> { typedef double type; };
template <> struct mean_sum_of<double> { typedef double type; };
template <typename T> using mean_sum = typename mean_sum_of<T>::type;

/* A block's sums of 16 pixels over one part of the scan -> mean_parts, marked_parts: [PS_CUDA_MEAN_PARTS, n_slots]. */
template <typename T>
static __global__ void __launch_bounds__(MEANS_THREADS) means_kernel(const T *counts, int64_t n_positions, int64_t n_slots, T invalid_value,
                                                                     bool has_invalid_value, double *mean_parts, uint32_t *marked_parts) {
    constexpr int N = 16 / (int)sizeof(T), TEAM = PS_CUDA_SHEET / N; /* pixels of a thread; threads of a position */
    struct __align__(16) vector {
        T value[N];
    };
    __shared__ double sums[MEANS_THREADS / 32][PS_CUDA_SHEET];
    __shared__ uint32_t marks[MEANS_THREADS / 32][PS_CUDA_SHEET];
    const vector *sheet = (const vector *)(counts + (int64_t)blockIdx.x * n_positions * PS_CUDA_SHEET);
    int64_t step = (n_positions + PS_CUDA_MEAN_PARTS - 1) / PS_CUDA_MEAN_PARTS, begin = blockIdx.y * step;
    int64_t end = begin + step < n_positions ? begin + step : n_positions;
    mean_sum<T> sum[N] = {};
    uint32_t marked[N] = {};
#pragma unroll 4
    for (int64_t i = begin * TEAM + threadIdx.x; i < end * TEAM; i += MEANS_THREADS) {
        vector loaded = sheet[i];
#pragma unroll
        for (int j = 0; j < N; j++) {
            T value = loaded.value[j];
            bool is_marked = (has_invalid_value && value == invalid_value) || !is_finite(value);
            marked[j] += is_marked;
            sum[j] += is_marked ? (mean_sum<T>)0 : (mean_sum<T>)value;
        }
    }
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int j = 0; j < N; j++) {
        for (int other = 16; other >= TEAM; other /= 2) {
            sum[j] += __shfl_xor_sync(PS_FULL_WARP, sum[j], other);
            marked[j] += __shfl_xor_sync(PS_FULL_WARP, marked[j], other);
        }
        if (lane >= TEAM) continue;
        sums[warp][lane * N + j] = (double)sum[j];
        marks[warp][lane * N + j] = marked[j];
    }
    __syncthreads();
    if (threadIdx.x >= PS_CUDA_SHEET) return;
    double all = 0.0;
    uint32_t all_marked = 0;
    for (int w = 0; w < MEANS_THREADS / 32; w++) {
        all += sums[w][threadIdx.x];
        all_marked += marks[w][threadIdx.x];
    }
    int64_t at = blockIdx.y * n_slots + (int64_t)blockIdx.x * PS_CUDA_SHEET + threadIdx.x;
    mean_parts[at] = all;
    marked_parts[at] = all_marked;
}

static __global__ void __launch_bounds__(MEANS_THREADS)
    means_finish_kernel(const double *mean_parts, const uint32_t *marked_parts, const int32_t *slot_pixel, int64_t n_slots,
                        int64_t n_positions, double *mean, unsigned long long *n_marked) {
    int64_t slot = (int64_t)blockIdx.x * MEANS_THREADS + threadIdx.x;
    if (slot >= n_slots) return;
    double sum = 0.0;
    unsigned long long marked = 0;
#pragma unroll 4
    for (int part = 0; part < PS_CUDA_MEAN_PARTS; part++) {
        sum += mean_parts[part * n_slots + slot];
        marked += marked_parts[part * n_slots + slot];
    }
    mean[slot] = slot_pixel[slot] < 0 ? 0.0 : sum / (double)n_positions;
    n_marked[slot] = marked;
}

template <typename T> static ps_code launch_means(ps_cuda_frame *frame, const T *counts, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    int64_t n_slots = system->layout.n_slots;
    uint32_t invalid_value = ps_dtype_invalid_value(frame->dtype);
    cudaStream_t stream = system->backend->compute;
    dim3 grid((unsigned)(n_slots / PS_CUDA_SHEET), PS_CUDA_MEAN_PARTS);
    PS_CUDA_LAUNCH(error, means_kernel<T>, grid, MEANS_THREADS, 0, stream, counts, system->n_positions, n_slots, (T)invalid_value,
                   invalid_value != 0, frame->d_mean_parts, frame->d_marked_parts);
    PS_CUDA_LAUNCH(error, means_finish_kernel, (unsigned)ps_cuda_blocks(n_slots, MEANS_THREADS), MEANS_THREADS, 0, stream,
                   frame->d_mean_parts, frame->d_marked_parts, system->d_slot_pixel, n_slots, system->n_positions, frame->d_mean,
                   frame->d_marked);
    return PS_OK;
}

static ps_code form_means(ps_cuda_frame *frame, ps_error *error) {
    switch (frame->dtype) {
#define X(dtype, type, name) \
    case dtype: return launch_means(frame, (const type *)frame->d_counts, error);
        PS_DTYPES(X)
#undef X
    default: return PS_FAIL(error, PS_E_INTERNAL, "unknown element type %d", (int)frame->dtype);
    }
}

static ps_code take_means(ps_cuda_frame *frame, const double *mean, const unsigned long long *marked, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    for (int64_t slot = 0; slot < system->layout.n_slots; slot++) {
        int32_t pixel = system->layout.slot_pixel[slot];
        if (pixel < 0) continue;
        if (!isfinite(mean[slot])) return PS_FAIL(error, PS_E_INPUT, "active pixel %d holds counts that are not finite", pixel);
        frame->mean[pixel] = mean[slot];
        frame->n_marked[pixel] = (int64_t)marked[slot];
    }
    frame->has_means = true;
    return PS_OK;
}

ps_code ps_cuda_frame_ensure_means(ps_cuda_frame *frame, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    int64_t n = system->layout.n_slots;
    if (frame->has_means) return PS_OK;
    assert(frame->base.n_put == system->n_positions);
    ps_code code = PS_OK;
    double *mean = (double *)malloc((size_t)n * sizeof *mean);
    unsigned long long *marked = (unsigned long long *)malloc((size_t)n * sizeof *marked);
    PS_GO_ALLOC(error, mean && marked);
    PS_GO(PS_CUDA(error, cudaStreamSynchronize(system->backend->upload)));
    PS_GO(form_means(frame, error));
    PS_GO(PS_CUDA(error, cudaStreamSynchronize(system->backend->compute)));
    PS_GO(ps_cuda_fetch(mean, frame->d_mean, n, error));
    PS_GO(ps_cuda_fetch(marked, frame->d_marked, n, error));
    PS_GO(take_means(frame, mean, marked, error));
done:
    free(mean);
    free(marked);
    return code;
}

ps_code ps_cuda_frame_mean_counts(ps_frame *handle, double *mean, int64_t *n_marked, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    size_t n = (size_t)frame->system->desc.n_active;
    PS_TRY(ps_cuda_enter(frame->system->backend, error));
    pthread_mutex_lock(&frame->system->backend->compute_lock);
    ps_code code = ps_cuda_frame_ensure_means(frame, error);
    pthread_mutex_unlock(&frame->system->backend->compute_lock);
    if (code != PS_OK) return code;
    if (mean) memcpy(mean, frame->mean, n * sizeof *mean);
    if (n_marked) memcpy(n_marked, frame->n_marked, n * sizeof *n_marked);
    return PS_OK;
}
