/* g from counts, physics section 3: a pixel's scan to float, its transform, and the half-plane laid out by tiles.
 *
 * Batches of fft_batch pixels go through three kernels whose planes stay in the level-2 cache: scan_kernel (counts less the pixel's mean as
 * float: without the constant the float transform's rounding errors are those of the fluctuations), cuFFT in place, tile_kernel (turns
 * [slot, spectrum] to [tile, spectrum, 32] and puts the mean back as the zero frequency). What stands in the spectra is g * dose.
 * Bytes to and from memory: active counts once, 8 bytes a pixel and spectrum once. Bound by memory and cuFFT.
 *
 * scan_kernel: one scan row of one slot a block. tile_kernel: 32 spectrum values x up to 32 slots a block, turned in shared memory. */
#include "kernels/cuda/operations.h"

enum { SCAN_THREADS = 128, TURN = 32, TURN_ROWS = 8 };

/* counts: [n_slots, rows, columns]; planes: [batch, rows, padded]. Slots past the last give zeros. */
template <typename T>
static __global__ void __launch_bounds__(SCAN_THREADS)
    scan_kernel(const T *counts, const double *mean, int64_t first_slot, int64_t n_slots, int64_t rows, int64_t columns, T marker,
                bool has_marker, float *planes) {
    int64_t slot = first_slot + blockIdx.y, row = blockIdx.x, padded = 2 * (columns / 2 + 1);
    const T *from = counts + (slot * rows + row) * columns;
    float *to = planes + ((int64_t)blockIdx.y * rows + row) * padded;
    bool exists = slot < n_slots;
    float middle = exists ? (float)mean[slot] : 0.0f;
#pragma unroll 4
    for (int64_t column = threadIdx.x; column < columns; column += SCAN_THREADS) {
        float value = 0.0f;
        if (exists) {
            T count = from[column];
            value = (has_marker && count == marker ? 0.0f : (float)count) - middle;
        }
        to[column] = value;
    }
}

/* planes: [batch, n_spectrum]; spectra: [tile, n_spectrum, 32] of the tiles from first_tile on. */
static __global__ void __launch_bounds__(TURN *TURN_ROWS)
    tile_kernel(const float2 *planes, int64_t batch, int64_t first_slot, int64_t n_slots, int64_t first_tile, int64_t n_spectrum,
                float scale, const double *mean, float2 *spectra) {
    __shared__ float2 turned[TURN][TURN + 1];
    int64_t spectrum = (int64_t)blockIdx.x * TURN + threadIdx.x, first = (int64_t)blockIdx.y * TURN;
#pragma unroll
    for (int j = threadIdx.y; j < TURN; j += TURN_ROWS)
        if (first + j < batch && spectrum < n_spectrum) turned[j][threadIdx.x] = planes[(first + j) * n_spectrum + spectrum];
    __syncthreads();
    int64_t slot = first_slot + first + threadIdx.x;
    if (first + threadIdx.x >= batch || slot >= n_slots) return;
    float2 *to = spectra + (slot / PS_CUDA_LANES - first_tile) * n_spectrum * PS_CUDA_LANES + slot % PS_CUDA_LANES;
#pragma unroll
    for (int j = threadIdx.y; j < TURN; j += TURN_ROWS) {
        int64_t at = (int64_t)blockIdx.x * TURN + j;
        if (at >= n_spectrum) break;
        float2 value = turned[threadIdx.x][j];
        value.x *= scale;
        value.y *= scale;
        if (at == 0) value = make_float2((float)mean[slot], 0.0f);
        to[at * PS_CUDA_LANES] = value;
    }
}

static ps_code launch_scans(ps_cuda_frame *frame, int64_t first_slot, float *planes, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    dim3 grid((unsigned)system->desc.scan_rows, (unsigned)system->fft_batch);
    uint32_t marker = ps_dtype_marker(frame->dtype);
    switch (frame->dtype) {
#define X(dtype, type, name)                                                                                                               \
    case dtype:                                                                                                                            \
        PS_CUDA_LAUNCH(error, scan_kernel<type>, grid, SCAN_THREADS, 0, system->backend->compute, (const type *)frame->d_counts,           \
                       frame->d_mean, first_slot, system->layout.n_slots, system->desc.scan_rows, system->desc.scan_columns, (type)marker, \
                       marker != 0, planes);                                                                                               \
        return PS_OK;
        PS_DTYPES(X)
#undef X
    default: return PS_FAIL(error, PS_E_INTERNAL, "unknown element type %d", (int)frame->dtype);
    }
}

/* fft_batch slots from first_slot on; spectra begins with first_tile and ends with end_slot. */
static ps_code transform_batch(ps_cuda_frame *frame, int64_t first_slot, int64_t end_slot, int64_t first_tile, float2 *spectra,
                               ps_error *error) {
    ps_cuda_system *system = frame->system;
    ps_cuda_transform transform = ps_cuda_forward_transform(system);
    ps_cuda_arena arena = {system->workspace.scratch, 0};
    unsigned char *planes = ps_cuda_take<unsigned char>(&arena, (int64_t)ps_cuda_transform_bytes(&transform));
    unsigned char *work = ps_cuda_take<unsigned char>(&arena, (int64_t)ps_cuda_transform_work(&transform));
    PS_TRY(launch_scans(frame, first_slot, (float *)planes, error));
    PS_TRY(ps_cuda_transform_run(system, &transform, &system->forward, planes, work, error));
    dim3 grid((unsigned)ps_cuda_blocks(system->n_spectrum, TURN), (unsigned)ps_cuda_blocks(transform.batch, TURN)), block(TURN, TURN_ROWS);
    PS_CUDA_LAUNCH(error, tile_kernel, grid, block, 0, system->backend->compute, (const float2 *)planes, transform.batch, first_slot,
                   end_slot, first_tile, system->n_spectrum, (float)(1.0 / (double)system->n_positions), frame->d_mean, spectra);
    return PS_OK;
}

ps_code ps_cuda_spectra(ps_cuda_frame *frame, int64_t first_tile, int64_t n_tiles, float2 *spectra, ps_error *error) {
    int64_t end_slot = (first_tile + n_tiles) * PS_CUDA_LANES;
    for (int64_t slot = first_tile * PS_CUDA_LANES; slot < end_slot; slot += frame->system->fft_batch)
        PS_TRY(transform_batch(frame, slot, end_slot, first_tile, spectra, error));
    return PS_OK;
}
