/* The store of g in its two forms (docs/physics.md section 8): its bytes, and packing.
 *
 * pack_kernel: a block takes one spectrum row of a sheet of 16 pixels, lanes over pixels; the largest parts, then the row once more, out of
 * the caches. Bytes: 8 per value read, 4 written; what scan_fft.cu has just written is read from the level-2 cache.
 * scale_kernel: a warp takes one row of one pixel, lanes over columns; 8 bytes per value, from the cache where cuFFT left them. */
#include "kernels/cuda/count_sheets.cuh"
#include "kernels/cuda/g_store.cuh"

enum { THREADS = 256, PARTS = THREADS / PS_CUDA_SHEET, SCALE_WARPS = 8 };

/* --- its bytes --- */

static size_t packed_bytes(const ps_cuda_system *system) {
    return (size_t)system->n_spectrum * PS_CUDA_LANES * sizeof(short2);
}

static size_t scale_bytes(const ps_cuda_system *system) {
    return (size_t)(system->desc.scan_rows + 1) * PS_CUDA_LANES * sizeof(float);
}

size_t ps_cuda_tile_bytes(const ps_cuda_system *system) {
    bool compact = system->desc.g_storage == PS_G_COMPACT;
    return compact ? packed_bytes(system) + scale_bytes(system) : (size_t)system->n_spectrum * PS_CUDA_LANES * sizeof(float2);
}

ps_cuda_g ps_cuda_g_in(const ps_cuda_system *system, void *memory, int64_t tiles) {
    ps_cuda_g g = {};
    if (system->desc.g_storage == PS_G_COMPACT) {
        g.packed = (short2 *)memory;
        g.scales = (float *)((unsigned char *)memory + (size_t)tiles * packed_bytes(system));
    } else {
        g.exact = (float2 *)memory;
    }
    return g;
}

ps_cuda_g ps_cuda_g_from(const ps_cuda_system *system, ps_cuda_g g, int64_t tile) {
    if (g.exact) g.exact += tile * system->n_spectrum * PS_CUDA_LANES;
    if (g.packed) g.packed += tile * system->n_spectrum * PS_CUDA_LANES;
    if (g.scales) g.scales += tile * (system->desc.scan_rows + 1) * PS_CUDA_LANES;
    return g;
}

/* --- packing --- */

typedef struct {
    const float2 *values;    /* pack: exact g of the tiles from own_tile on; scales: planes [n, n_spectrum] */
    const int32_t *slots;    /* scales: [n] */
    int64_t first, own_tile; /* pack: first slot */
    int64_t n_spectrum, first_tile, n;
    int rows, half;
    float factor;
    const double *mean; /* [n_slots] */
    ps_cuda_g g;
} pack_arguments;

__device__ inline int64_t slot_values(const pack_arguments &args, int64_t slot, int64_t first_tile) {
    return (slot / PS_CUDA_LANES - first_tile) * args.n_spectrum * PS_CUDA_LANES + slot % PS_CUDA_LANES;
}

__device__ inline float *slot_scales(const pack_arguments &args, int64_t slot) {
    return args.g.scales + (slot / PS_CUDA_LANES - args.first_tile) * (args.rows + 1) * PS_CUDA_LANES + slot % PS_CUDA_LANES;
}

__device__ inline uint32_t larger_size(uint32_t largest, float2 value) {
    return max(largest, max(ps_g_size_bits(value.x), ps_g_size_bits(value.y)));
}

static __global__ void __launch_bounds__(THREADS) pack_kernel(const __grid_constant__ pack_arguments args) {
    __shared__ uint32_t largest[PS_CUDA_SHEET];
    const int lane = (int)threadIdx.x % PS_CUDA_SHEET, part = (int)threadIdx.x / PS_CUDA_SHEET, row = (int)blockIdx.x;
    const int64_t slot = args.first + (int64_t)blockIdx.y * PS_CUDA_SHEET + lane, at = (int64_t)row * args.half * PS_CUDA_LANES;
    const float2 *from = args.values + slot_values(args, slot, args.own_tile) + at;
    short2 *to = args.g.packed + slot_values(args, slot, args.first_tile) + at;
    float *scales = slot_scales(args, slot);
    uint32_t mine = 0;
    if (part == 0) largest[lane] = 0;
    __syncthreads();
    for (int column = part; column < args.half; column += PARTS)
        if (row > 0 || column > 0) mine = larger_size(mine, from[column * PS_CUDA_LANES]);
    mine = max(mine, __shfl_xor_sync(PS_FULL_WARP, mine, PS_CUDA_SHEET));
    if (threadIdx.x % 32 < PS_CUDA_SHEET) atomicMax(&largest[lane], mine);
    __syncthreads();
    const float scale = ps_g_scale(largest[lane], 1.0f), inverse = ps_g_inverse(scale);
    for (int column = part; column < args.half; column += PARTS)
        to[column * PS_CUDA_LANES] = row > 0 || column > 0 ? ps_g_pack2(from[column * PS_CUDA_LANES], inverse) : make_short2(PS_G_MOST, 0);
    if (part > 0) return;
    scales[row * PS_CUDA_LANES] = scale;
    if (row == 0) scales[args.rows * PS_CUDA_LANES] = ps_g_zero_scale((float)args.mean[slot]);
}

static __global__ void __launch_bounds__(32 * SCALE_WARPS) scale_kernel(const __grid_constant__ pack_arguments args) {
    const int row = (int)(blockIdx.x * SCALE_WARPS + threadIdx.x / 32), lane = (int)threadIdx.x % 32;
    if (row >= args.rows) return; /* whole warps only */
    const float2 *from = args.values + (int64_t)blockIdx.y * args.n_spectrum + (int64_t)row * args.half;
    uint32_t largest = 0;
    for (int column = lane; column < args.half; column += 32)
        if (row > 0 || column > 0) largest = larger_size(largest, from[column]);
    largest = __reduce_max_sync(PS_FULL_WARP, largest);
    if (lane > 0) return;
    const int64_t slot = args.slots[blockIdx.y];
    float *scales = slot_scales(args, slot);
    scales[row * PS_CUDA_LANES] = ps_g_scale(largest, args.factor);
    if (row == 0) scales[args.rows * PS_CUDA_LANES] = ps_g_zero_scale((float)args.mean[slot]);
}

static pack_arguments arguments_of(const ps_cuda_frame *frame, const float2 *values, const ps_cuda_g *g, int64_t first_tile) {
    const ps_cuda_system *system = frame->system;
    pack_arguments args = {};
    args.values = values;
    args.n_spectrum = system->n_spectrum;
    args.first_tile = first_tile;
    args.rows = (int)system->desc.scan_rows;
    args.half = (int)(system->desc.scan_columns / 2 + 1);
    args.mean = frame->d_mean;
    args.g = *g;
    return args;
}

ps_code ps_cuda_pack_slots(const ps_cuda_frame *frame, int64_t first, int64_t n, const float2 *exact, const ps_cuda_g *g,
                           int64_t first_tile, cudaStream_t stream, ps_error *error) {
    pack_arguments args = arguments_of(frame, exact, g, first_tile);
    args.first = first;
    args.own_tile = first / PS_CUDA_LANES;
    dim3 grid((unsigned)args.rows, (unsigned)(n / PS_CUDA_SHEET));
    PS_CUDA_LAUNCH(error, pack_kernel, grid, THREADS, 0, stream, args);
    return PS_OK;
}

ps_code ps_cuda_find_scales(const ps_cuda_frame *frame, const int32_t *slots, int64_t n, const float2 *planes, float factor,
                            const ps_cuda_g *g, int64_t first_tile, cudaStream_t stream, ps_error *error) {
    pack_arguments args = arguments_of(frame, planes, g, first_tile);
    args.slots = slots;
    args.factor = factor;
    dim3 grid((unsigned)ps_cuda_blocks(args.rows, SCALE_WARPS), (unsigned)n);
    PS_CUDA_LAUNCH(error, scale_kernel, grid, 32 * SCALE_WARPS, 0, stream, args);
    return PS_OK;
}
