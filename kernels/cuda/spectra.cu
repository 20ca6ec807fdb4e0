/* g from counts, physics section 3: a pixel's scan to float, its transform, and the half-plane laid out by tiles. Scans whose sides suit
 * are transformed by scan_fft.cu; the others here, by cuFFT.
 *
 * Batches of fft_batch pixels go through three kernels whose planes stay in the level-2 cache: scan_kernel (counts less the pixel's mean as
 * float: without the constant the float transform's rounding errors are those of the fluctuations), cuFFT in place, tile_kernel (turns
 * [pixel, spectrum] to [tile, spectrum, 32] and puts the mean back as the zero frequency). Two batches are under way at a time, each on
 * its own stream, so that one fills the card while the other's kernels start and end. What is in the spectra is g * dose; slots that
 * hold no pixel are left as they are. Bytes to and from memory: active counts once, 8 bytes a pixel and spectrum once. Bound by cuFFT (1.5
 * us a plane of 512 x 512).
 *
 * scan_kernel: 128 positions of 16 pixels a block, turned in shared memory; lanes are pixels on the way in, positions on the way out.
 * tile_kernel: 32 spectrum values x up to 32 pixels a block, turned likewise. */
#include "kernels/cuda/count_sheets.cuh"
#include "kernels/cuda/g_store.cuh"

enum { SCAN_THREADS = 256, SCAN_PIXELS = 16, SCAN_POSITIONS = 128, TURN = 32, TURN_ROWS = 8 };

typedef struct {
    const int32_t *slots; /* [n] of the batch's pixels */
    int64_t n, batch, rows, columns;
    const double *mean; /* [n_slots] */
    float *planes;      /* [batch, rows, 2 (columns/2 + 1)] */
} scan_arguments;

/* counts: [n_slots / 16, rows * columns, 16]. Planes past the last pixel become 0, as does what pads a row. */
template <typename T>
static __global__ void __launch_bounds__(SCAN_THREADS)
    scan_kernel(const T *counts, ps_cuda_invalid_value<T> invalid_value, const __grid_constant__ scan_arguments args) {
    __shared__ float turned[SCAN_PIXELS][SCAN_POSITIONS + 1];
    unsigned first = blockIdx.x * SCAN_POSITIONS, n = (unsigned)(args.rows * args.columns), columns = (unsigned)args.columns;
    unsigned pixel = blockIdx.y * SCAN_PIXELS + threadIdx.x % SCAN_PIXELS, padded = 2 * (columns / 2 + 1);
    bool exists = pixel < args.n;
    int64_t slot = exists ? args.slots[pixel] : 0;
    const T *from = counts + ps_cuda_scan_start(slot, args.rows * args.columns);
    float middle = exists ? (float)args.mean[slot] : 0.0f;
#pragma unroll
    for (unsigned p = threadIdx.x / SCAN_PIXELS; p < SCAN_POSITIONS; p += SCAN_THREADS / SCAN_PIXELS)
        turned[threadIdx.x % SCAN_PIXELS][p] =
            exists && first + p < n ? invalid_value.clean(from[(int64_t)(first + p) * PS_CUDA_SHEET]) - middle : 0.0f;
    __syncthreads();
    unsigned position = first + threadIdx.x % SCAN_POSITIONS, row = position / columns, column = position % columns;
    for (unsigned i = threadIdx.x / SCAN_POSITIONS; i < SCAN_PIXELS; i += SCAN_THREADS / SCAN_POSITIONS) {
        if (position >= n || blockIdx.y * SCAN_PIXELS + i >= args.batch) break;
        float *to = args.planes + ((int64_t)(blockIdx.y * SCAN_PIXELS + i) * args.rows + row) * padded + column;
        to[0] = turned[i][threadIdx.x % SCAN_POSITIONS];
        for (unsigned pad = 1; column + 1 == columns && column + pad < padded; pad++) to[pad] = 0.0f;
    }
}

typedef struct {
    const float2 *planes; /* [batch, n_spectrum] */
    const int32_t *slots; /* [n] of the batch's pixels */
    int64_t n, first_tile, n_spectrum;
    float scale;
    const double *mean; /* [n_slots] */
    ps_cuda_g g;        /* of the tiles from first_tile on */
    int scan_rows, half;
} tile_arguments;

/* Whose scale is there already: scale_kernel of g_store.cu. */
__device__ inline void put_packed(const tile_arguments &args, int64_t tile, int lane, int64_t spectrum, float2 value) {
    int64_t row = ps_g_scale_row(spectrum, args.half, args.scan_rows);
    float scale = args.g.scales[(tile * (args.scan_rows + 1) + row) * PS_CUDA_LANES + lane];
    args.g.packed[(tile * args.n_spectrum + spectrum) * PS_CUDA_LANES + lane] =
        spectrum == 0 ? make_short2(PS_G_MOST, 0) : ps_g_pack2(value, ps_g_inverse(scale));
}

static __global__ void __launch_bounds__(TURN *TURN_ROWS) tile_kernel(const __grid_constant__ tile_arguments args) {
    __shared__ float2 turned[TURN][TURN + 1];
    int64_t spectrum = (int64_t)blockIdx.x * TURN + threadIdx.x, first = (int64_t)blockIdx.y * TURN;
#pragma unroll
    for (int j = threadIdx.y; j < TURN; j += TURN_ROWS)
        if (first + j < args.n && spectrum < args.n_spectrum)
            turned[j][threadIdx.x] = args.planes[(first + j) * args.n_spectrum + spectrum];
    __syncthreads();
    if (first + threadIdx.x >= args.n) return;
    int64_t slot = args.slots[first + threadIdx.x];
    const int64_t tile = slot / PS_CUDA_LANES - args.first_tile;
    const int lane = (int)(slot % PS_CUDA_LANES);
#pragma unroll
    for (int j = threadIdx.y; j < TURN; j += TURN_ROWS) {
        int64_t at = (int64_t)blockIdx.x * TURN + j;
        if (at >= args.n_spectrum) break;
        float2 value = turned[threadIdx.x][j];
        value.x *= args.scale;
        value.y *= args.scale;
        if (at == 0) value = make_float2((float)args.mean[slot], 0.0f);
        if (args.g.exact)
            args.g.exact[(tile * args.n_spectrum + at) * PS_CUDA_LANES + lane] = value;
        else
            put_packed(args, tile, lane, at, value);
    }
}

template <typename T>
static ps_code launch_scans(const T *counts, uint32_t invalid_value, const scan_arguments *args, cudaStream_t stream, ps_error *error) {
    dim3 grid((unsigned)ps_cuda_blocks(args->rows * args->columns, SCAN_POSITIONS), (unsigned)ps_cuda_blocks(args->batch, SCAN_PIXELS));
    PS_CUDA_LAUNCH(error, scan_kernel<T>, grid, SCAN_THREADS, 0, stream, counts, ps_cuda_invalid_value_of<T>(invalid_value), *args);
    return PS_OK;
}

static ps_code fill_planes(ps_cuda_frame *frame, const scan_arguments *args, cudaStream_t stream, ps_error *error) {
    switch (frame->dtype) {
#define X(dtype, type, name) \
    case dtype: return launch_scans((const type *)frame->d_counts, ps_dtype_invalid_value(dtype), args, stream, error);
        PS_DTYPES(X)
#undef X
    default: return PS_FAIL(error, PS_E_INTERNAL, "unknown element type %d", (int)frame->dtype);
    }
}

/* The pixels [first, first + n) in slot order, on one of the two lanes of work; g begins with first_tile. */
static ps_code transform_batch(ps_cuda_frame *frame, int lane, int64_t first, int64_t n, int64_t first_tile, const ps_cuda_g *g,
                               ps_error *error) {
    ps_cuda_system *system = frame->system;
    ps_cuda_transform transform = ps_cuda_forward_transform(system);
    ps_cuda_arena arena = {system->workspace.scratch, 0};
    unsigned char *planes = NULL, *work = NULL;
    for (int i = 0; i <= lane; i++) {
        planes = ps_cuda_take<unsigned char>(&arena, (int64_t)ps_cuda_transform_bytes(&transform));
        work = ps_cuda_take<unsigned char>(&arena, (int64_t)ps_cuda_transform_work(&transform));
    }
    cudaStream_t stream = lane ? system->backend->side : system->backend->compute;
    const int32_t *slots = system->d_ordered_slot + first;
    scan_arguments scans = {slots, n, system->fft_batch, system->desc.scan_rows, system->desc.scan_columns, frame->d_mean, (float *)planes};
    PS_TRY(fill_planes(frame, &scans, stream, error));
    PS_TRY(ps_cuda_transform_run(&transform, &system->forward[lane], planes, work, stream, error));
    const float factor = (float)(1.0 / (double)system->n_positions);
    if (g->packed) PS_TRY(ps_cuda_find_scales(frame, slots, n, (const float2 *)planes, factor, g, first_tile, stream, error));
    tile_arguments tiles = {(const float2 *)planes,
                            slots,
                            n,
                            first_tile,
                            system->n_spectrum,
                            factor,
                            frame->d_mean,
                            *g,
                            (int)system->desc.scan_rows,
                            (int)(system->desc.scan_columns / 2 + 1)};
    dim3 grid((unsigned)ps_cuda_blocks(system->n_spectrum, TURN), (unsigned)ps_cuda_blocks(n, TURN)), block(TURN, TURN_ROWS);
    PS_CUDA_LAUNCH(error, tile_kernel, grid, block, 0, stream, tiles);
    return PS_OK;
}

ps_code ps_cuda_spectra(ps_cuda_frame *frame, int64_t first_tile, int64_t n_tiles, ps_cuda_g g, ps_error *error) {
    ps_cuda_system *system = frame->system;
    const ps_cuda_backend *backend = system->backend;
    const int32_t *first_ordered = system->layout.first_ordered;
    int64_t end = first_ordered[first_tile + n_tiles];
    int lane = 0;
    PS_TRY(ps_cuda_stream_join(backend->side, backend->compute, backend->compute_done, error));
    if (system->own_fft) PS_TRY(ps_cuda_scan_fft(frame, first_tile, n_tiles, &g, error));
    for (int64_t first = first_ordered[first_tile]; !system->own_fft && first < end; first += system->fft_batch, lane ^= 1) {
        int64_t n = end - first < system->fft_batch ? end - first : system->fft_batch;
        PS_TRY(transform_batch(frame, lane, first, n, first_tile, &g, error));
    }
    return ps_cuda_stream_join(backend->compute, backend->side, backend->side_done, error);
}
