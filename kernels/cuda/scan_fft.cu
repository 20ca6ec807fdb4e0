/* g from counts, physics section 3, for scans whose sides are products of two numbers that fit into registers (scan_fft.cuh): two passes,
 * in place in the store of g, whose lanes are pixels from beginning to end.
 *
 * Two scan rows a and b are transformed as one complex row z = x_a + i x_b. row_kernel (a block: a pair of rows, 8 or 16 pixels): counts
 * less the mean, scaled, to Z(n). Z(n) is in row a for n <= columns/2, and in row b at columns - n for the others; so column c holds
 * Z(c) and Z(-c) of every pair, and nothing else. column_kernel (a block: a column, 8 or 16 pixels) parts them, X_a + i X_b = Z(c),
 * conj(X_a) + i conj(X_b) = Z(-c), and transforms along the rows; factors of 1/2 are in the scale. Rows that a thread of column_kernel
 * takes one after the other, `second` apart, are paired, so that it parts them in registers. The mean takes its place at the zero
 * frequency.
 *
 * Counts of other types than uint8 and uint16 are first written as Z's input into Z's places by cell_kernel.
 *
 * Bytes, 512 x 512 positions of uint16, a pixel: 0.52 MB of counts read; 1.05 MB written, read and written again. The two passes of a few
 * pixels follow each other closely, so that what one writes the other can find in the level-2 cache; two such groups are under way at a
 * time, each on its stream. About 52 instructions a value in row_kernel, 40 in column_kernel: bound by memory, with instructions close
 * behind. */
#include <math.h>
#include <stdlib.h>

#include "kernels/cuda/count_sheets.cuh"
#include "kernels/cuda/g_store.cuh"
#include "kernels/cuda/scan_fft.cuh"

enum { CELL_POSITIONS = 16, FFT_BLOCKS = 2 /* resident on a multiprocessor */ };

/* g of the pixels that go through both passes together. */
static const int64_t bytes_together = (int64_t)17 << 20;

typedef struct {
    ps_fft_plan plan;
    unsigned columns, half; /* half: stored columns, columns/2 + 1 */
    unsigned pair_step;     /* rows of a pair are so far apart */
    int64_t n_spectrum, n_positions, first_slot, first_tile;
    const double *mean; /* [n_slots] */
    double scale;
    float2 *spectra; /* [tile, n_spectrum, 32] from first_tile on */
} scan_arguments;

/* First row of a pair. */
__device__ inline unsigned pair_row(unsigned pair, unsigned step) {
    return pair % step + 2 * step * (pair / step);
}

/* A slot's first spectrum value. */
__device__ inline float2 *slot_spectra(const scan_arguments &args, int64_t slot) {
    return args.spectra + (slot / PS_CUDA_LANES - args.first_tile) * args.n_spectrum * PS_CUDA_LANES + slot % PS_CUDA_LANES;
}

/* Where Z of a pair of rows is. */
struct cell_row {
    float2 *direct, *mirrored; /* a's and b's first cell */
    unsigned n;
    __device__ float2 *at(unsigned k) const { return 2 * k <= n ? direct + k * PS_CUDA_LANES : mirrored + (n - k) * PS_CUDA_LANES; }
};

__device__ inline cell_row cells_of(const scan_arguments &args, float2 *spectra, unsigned row) {
    float2 *direct = spectra + row * args.half * PS_CUDA_LANES;
    cell_row cells = {direct, direct + args.pair_step * args.half * PS_CUDA_LANES, args.columns};
    return cells;
}

/* --- row pass --- */

template <typename T> struct count_source {
    const T *first, *second; /* counts of the pair's rows from this thread's first column on */
    unsigned step;
    ps_cuda_invalid_value<T> invalid_value;
    float scale, offset;
    template <int R> __device__ void fill(float2 (&x)[R]) const {
        T a[R], b[R];
#pragma unroll
        for (int m = 0; m < R; m++) {
            a[m] = __ldcs(first + m * step);
            b[m] = __ldcs(second + m * step);
        }
#pragma unroll
        for (int m = 0; m < R; m++)
            x[m] = make_float2(fmaf(invalid_value.clean(a[m]), scale, offset), fmaf(invalid_value.clean(b[m]), scale, offset));
    }
};

struct cell_source {
    cell_row cells;
    unsigned column, step;
    template <int R> __device__ void fill(float2 (&x)[R]) const {
#pragma unroll
        for (int m = 0; m < R; m++) x[m] = *cells.at(column + m * step);
    }
};

/* Frequencies k1 + first * k2: those of small k2 are on the direct side, those of large k2 on the mirrored one. */
struct cell_sink {
    cell_row cells;
    unsigned first;
    template <int R> __device__ void take(int k1, float2 (&x)[R]) const {
        const unsigned step = first * PS_CUDA_LANES;
        float2 *direct = cells.direct + k1 * PS_CUDA_LANES, *mirrored = cells.mirrored + (cells.n - k1) * PS_CUDA_LANES;
#pragma unroll
        for (int k2 = 0; k2 < R; k2++) {
            bool is_direct = 2 * k2 + 2 <= R || (2 * k2 <= R && 2 * (k1 + first * k2) <= cells.n);
            *(is_direct ? direct + k2 * step : mirrored - k2 * step) = x[k2];
        }
    }
};

/* The block's pixels, and this thread's place. */
struct thread_place {
    int j;
    int64_t slot;
};

__device__ inline thread_place place_of(const scan_arguments &args) {
    unsigned shift = args.plan.lanes == 8 ? 3 : 4, lane = threadIdx.x & (args.plan.lanes - 1);
    thread_place place = {(int)(threadIdx.x >> shift), args.first_slot + ((int64_t)blockIdx.y << shift) + lane};
    return place;
}

/* counts: [n_slots / 16, rows, columns, 16]. */
template <typename T>
static __global__ void __launch_bounds__(PS_FFT_THREADS, FFT_BLOCKS)
    row_kernel(const T *counts, ps_cuda_invalid_value<T> invalid_value, const __grid_constant__ scan_arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    thread_place place = place_of(args);
    unsigned row = pair_row(blockIdx.x, args.pair_step);
    const T *first = counts + ps_cuda_scan_start(place.slot, args.n_positions) + (row * args.columns + place.j) * PS_CUDA_SHEET;
    count_source<T> source = {first,
                              first + args.pair_step * args.columns * PS_CUDA_SHEET,
                              (unsigned)args.plan.second * PS_CUDA_SHEET,
                              invalid_value,
                              (float)args.scale,
                              (float)(-args.scale * args.mean[place.slot])};
    cell_sink sink = {cells_of(args, slot_spectra(args, place.slot), row), (unsigned)args.plan.first};
    ps_fft_run(args.plan, place.j, (float2 *)ps_shared, source, sink);
}

static __global__ void __launch_bounds__(PS_FFT_THREADS, FFT_BLOCKS) row_cell_kernel(const __grid_constant__ scan_arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    thread_place place = place_of(args);
    cell_row cells = cells_of(args, slot_spectra(args, place.slot), pair_row(blockIdx.x, args.pair_step));
    cell_source source = {cells, (unsigned)place.j, (unsigned)args.plan.second};
    cell_sink sink = {cells, (unsigned)args.plan.first};
    ps_fft_run(args.plan, place.j, (float2 *)ps_shared, source, sink);
}

/* A block: 16 positions of a pair of rows, 16 pixels. */
template <typename T>
static __global__ void __launch_bounds__(CELL_POSITIONS *PS_CUDA_SHEET)
    cell_kernel(const T *counts, ps_cuda_invalid_value<T> invalid_value, const __grid_constant__ scan_arguments args) {
    unsigned column = blockIdx.x * CELL_POSITIONS + threadIdx.x / PS_CUDA_SHEET, row = pair_row(blockIdx.y, args.pair_step);
    int64_t slot = args.first_slot + blockIdx.z * PS_CUDA_SHEET + threadIdx.x % PS_CUDA_SHEET;
    if (column >= args.columns) return;
    const T *first = counts + ps_cuda_scan_start(slot, args.n_positions) + (row * args.columns + column) * PS_CUDA_SHEET;
    T a = first[0], b = first[args.pair_step * args.columns * PS_CUDA_SHEET];
    float scale = (float)args.scale, offset = (float)(-args.scale * args.mean[slot]);
    *cells_of(args, slot_spectra(args, slot), row).at(column) =
        make_float2(fmaf(invalid_value.clean(a), scale, offset), fmaf(invalid_value.clean(b), scale, offset));
}

/* --- column pass --- */

/* Pairs of rows, parted. */
struct pair_source {
    const float2 *first; /* Z(c) of this thread's first pair */
    unsigned step;       /* to its next pair */
    unsigned partner;    /* from Z(c) to Z(-c); 0 where they are the same */
    template <int R> __device__ void fill(float2 (&x)[R]) const {
        if constexpr (R % 2 == 0) {
#pragma unroll
            for (int m = 0; m < R; m += 2) {
                const float2 *at = first + m / 2 * step;
                x[m] = __ldcg(at);
                x[m + 1] = __ldcg(at + partner);
            }
#pragma unroll
            for (int m = 0; m < R; m += 2) {
                float2 z = x[m], w = x[m + 1];
                x[m] = make_float2(z.x + w.x, z.y - w.y);
                x[m + 1] = make_float2(z.y + w.y, w.x - z.x);
            }
        }
    }
};

struct column_sink {
    float2 *first; /* row 0 of this column */
    unsigned row;  /* from a row to the next */
    unsigned first_radix;
    bool has_zero;
    float zero;
    template <int R> __device__ void take(int k1, float2 (&x)[R]) const {
        float2 *to = first + k1 * row;
        if (has_zero && k1 == 0) x[0] = make_float2(zero, 0.0f);
#pragma unroll
        for (int k2 = 0; k2 < R; k2++) __stcs(to + k2 * (first_radix * row), x[k2]);
    }
};

static __global__ void __launch_bounds__(PS_FFT_THREADS, FFT_BLOCKS) column_kernel(const __grid_constant__ scan_arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    thread_place place = place_of(args);
    const unsigned column = blockIdx.x, row = args.half * PS_CUDA_LANES;
    float2 *spectra = slot_spectra(args, place.slot) + column * PS_CUDA_LANES;
    bool is_own_partner = column == 0 || 2 * column == args.columns;
    pair_source source = {spectra + place.j * row, 2 * args.pair_step * row, is_own_partner ? 0 : args.pair_step * row};
    column_sink sink = {spectra, row, (unsigned)args.plan.first, column == 0, column == 0 ? (float)args.mean[place.slot] : 0.0f};
    ps_fft_run(args.plan, place.j, (float2 *)ps_shared, source, sink);
}

/* --- plans --- */

static bool is_radix(int64_t n) {
    switch (n) {
#define X(R) case R:
        PS_FFT_RADICES(X)
#undef X
        return true;
    default: return false;
    }
}

/* The most even split of n whose second factor leaves 16 lanes, else any. */
bool ps_cuda_fft_plan(int64_t n, ps_fft_parity parity, ps_fft_plan *plan) {
    int64_t best = 0;
    for (int64_t second = 2; second <= 32; second++) {
        if (n % second != 0 || !is_radix(second) || !is_radix(n / second)) continue;
        int64_t first = n / second;
        if ((parity == PS_FFT_FIRST_EVEN && first % 2 != 0) || (parity == PS_FFT_SECOND_EVEN && second % 2 != 0)) continue;
        int64_t uneven = (first > second ? first - second : second - first) + (second > 16 ? 100 : 0);
        if (best != 0 && uneven >= best) continue;
        int64_t lanes = ps_fft_lanes((int)second), threads = (first > second ? first : second) * lanes;
        best = uneven + 1;
        plan->first = (int32_t)first;
        plan->second = (int32_t)second;
        plan->lanes = (int32_t)lanes;
        plan->threads = (int32_t)(threads < PS_FFT_THREADS ? (threads + 31) / 32 * 32 : (int64_t)PS_FFT_THREADS);
    }
    return best != 0;
}

bool ps_cuda_scan_fft_plan(ps_cuda_system *system) {
    return ps_cuda_fft_plan(system->desc.scan_rows, PS_FFT_FIRST_EVEN, &system->fft_rows) &&
           ps_cuda_fft_plan(system->desc.scan_columns, PS_FFT_ANY, &system->fft_columns);
}

ps_code ps_cuda_fft_send_roots(const ps_fft_plan *plan, float2 *d_roots, ps_error *error) {
    int64_t n = (int64_t)plan->first * plan->second;
    float2 *roots = (float2 *)malloc((size_t)n * sizeof *roots);
    if (!roots) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a transform of %lld values", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        double angle = -2.0 * M_PI * (double)(i / plan->first * (i % plan->first) % n) / (double)n;
        roots[i] = make_float2((float)cos(angle), (float)sin(angle));
    }
    ps_code code = ps_cuda_send(d_roots, roots, n, error);
    free(roots);
    return code;
}

void ps_cuda_scan_fft_carve(ps_cuda_system *system, ps_cuda_arena *arena) {
    system->fft_rows.roots = system->d_roots_rows = ps_cuda_take<float2>(arena, system->own_fft ? system->desc.scan_rows : 0);
    system->fft_columns.roots = system->d_roots_columns = ps_cuda_take<float2>(arena, system->own_fft ? system->desc.scan_columns : 0);
}

ps_code ps_cuda_scan_fft_fill(ps_cuda_system *system, ps_error *error) {
    if (!system->own_fft) return PS_OK;
    PS_TRY(ps_cuda_fft_send_roots(&system->fft_rows, system->d_roots_rows, error));
    return ps_cuda_fft_send_roots(&system->fft_columns, system->d_roots_columns, error);
}

/* --- launches --- */

static int shared_bytes(const ps_fft_plan *plan) {
    return plan->first * PS_FFT_PITCH * (int)sizeof(float2);
}

template <typename T>
static ps_code launch_rows(const T *counts, uint32_t invalid_value, const scan_arguments *args, dim3 grid, cudaStream_t stream,
                           ps_error *error) {
    int bytes = shared_bytes(&args->plan);
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)row_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)));
    PS_CUDA_LAUNCH(error, row_kernel<T>, grid, (unsigned)args->plan.threads, (size_t)bytes, stream, counts,
                   ps_cuda_invalid_value_of<T>(invalid_value), *args);
    return PS_OK;
}

template <typename T>
static ps_code launch_cells(const T *counts, uint32_t invalid_value, const scan_arguments *args, dim3 grid, cudaStream_t stream,
                            ps_error *error) {
    int bytes = shared_bytes(&args->plan);
    dim3 cells((unsigned)ps_cuda_blocks(args->columns, CELL_POSITIONS), grid.x,
               (unsigned)((int64_t)grid.y * args->plan.lanes / PS_CUDA_SHEET));
    PS_CUDA_LAUNCH(error, cell_kernel<T>, cells, CELL_POSITIONS * PS_CUDA_SHEET, 0, stream, counts,
                   ps_cuda_invalid_value_of<T>(invalid_value), *args);
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)row_cell_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)));
    PS_CUDA_LAUNCH(error, row_cell_kernel, grid, (unsigned)args->plan.threads, (size_t)bytes, stream, *args);
    return PS_OK;
}

static ps_code row_pass(const ps_cuda_frame *frame, const scan_arguments *args, dim3 grid, cudaStream_t stream, ps_error *error) {
    uint32_t invalid_value = ps_dtype_invalid_value(frame->dtype);
    switch (frame->dtype) {
    case PS_U8: return launch_rows((const uint8_t *)frame->d_counts, invalid_value, args, grid, stream, error);
    case PS_U16: return launch_rows((const uint16_t *)frame->d_counts, invalid_value, args, grid, stream, error);
    case PS_U32: return launch_cells((const uint32_t *)frame->d_counts, invalid_value, args, grid, stream, error);
    case PS_I8: return launch_cells((const int8_t *)frame->d_counts, invalid_value, args, grid, stream, error);
    case PS_I16: return launch_cells((const int16_t *)frame->d_counts, invalid_value, args, grid, stream, error);
    case PS_I32: return launch_cells((const int32_t *)frame->d_counts, invalid_value, args, grid, stream, error);
    case PS_F32: return launch_cells((const float *)frame->d_counts, invalid_value, args, grid, stream, error);
    case PS_F64: return launch_cells((const double *)frame->d_counts, invalid_value, args, grid, stream, error);
    default: return PS_FAIL(error, PS_E_INTERNAL, "unknown element type %d", (int)frame->dtype);
    }
}

/* Both passes of the slots [first, first + n); spectra begins with first_tile. */
static ps_code transform_slots(const ps_cuda_frame *frame, int64_t first, int64_t n, int64_t first_tile, float2 *spectra,
                               cudaStream_t stream, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    scan_arguments args = {system->fft_columns,
                           (unsigned)system->desc.scan_columns,
                           (unsigned)(system->desc.scan_columns / 2 + 1),
                           (unsigned)system->fft_rows.second,
                           system->n_spectrum,
                           system->n_positions,
                           first,
                           first_tile,
                           frame->d_mean,
                           0.5 / (double)system->n_positions,
                           spectra};
    dim3 pairs((unsigned)(system->desc.scan_rows / 2), (unsigned)(n / args.plan.lanes));
    PS_TRY(row_pass(frame, &args, pairs, stream, error));
    args.plan = system->fft_rows;
    int bytes = shared_bytes(&args.plan);
    dim3 columns(args.half, (unsigned)(n / args.plan.lanes));
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)column_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)));
    PS_CUDA_LAUNCH(error, column_kernel, columns, (unsigned)args.plan.threads, (size_t)bytes, stream, args);
    return PS_OK;
}

bool ps_cuda_sheet_is_empty(const ps_cuda_layout *layout, int64_t slot) {
    for (int64_t i = slot; i < slot + PS_CUDA_SHEET; i++)
        if (layout->slot_pixel[i] >= 0) return false;
    return true;
}

/* Slots that go through both passes together: whole sheets. */
static int64_t slots_together(const ps_cuda_system *system) {
    int64_t sheet = system->n_spectrum * PS_CUDA_SHEET * (int64_t)sizeof(float2);
    return (sheet < bytes_together ? bytes_together / sheet : 1) * PS_CUDA_SHEET;
}

size_t ps_cuda_scan_fft_scratch(const ps_cuda_system *system) {
    int64_t most = slots_together(system), tiles = most > PS_CUDA_SHEET ? most / PS_CUDA_LANES + 1 : 1;
    if (tiles > system->layout.n_tiles) tiles = system->layout.n_tiles;
    return (size_t)(tiles * system->n_spectrum * PS_CUDA_LANES) * sizeof(float2);
}

/* The slots [first, first + n), on one of the two lanes of work. In the compact form they are transformed in scratch and then packed. */
static ps_code put_slots(const ps_cuda_frame *frame, int lane, int64_t first, int64_t n, int64_t first_tile, const ps_cuda_g *g,
                         ps_error *error) {
    const ps_cuda_system *system = frame->system;
    cudaStream_t stream = lane ? system->backend->side : system->backend->compute;
    if (g->exact) return transform_slots(frame, first, n, first_tile, g->exact, stream, error);
    ps_cuda_arena arena = {system->workspace.scratch, 0};
    float2 *exact = NULL;
    for (int i = 0; i <= lane; i++) exact = (float2 *)ps_cuda_take<unsigned char>(&arena, (int64_t)ps_cuda_scan_fft_scratch(system));
    PS_TRY(transform_slots(frame, first, n, first / PS_CUDA_LANES, exact, stream, error));
    return ps_cuda_pack_slots(frame, first, n, exact, g, first_tile, stream, error);
}

ps_code ps_cuda_scan_fft(const ps_cuda_frame *frame, int64_t first_tile, int64_t n_tiles, const ps_cuda_g *g, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    const ps_cuda_layout *layout = &system->layout;
    int64_t end = (first_tile + n_tiles) * PS_CUDA_LANES, most = slots_together(system);
    int lane = 0;
    for (int64_t first = first_tile * PS_CUDA_LANES, next; first < end; first = next) {
        for (next = first; next < end && next < first + most && !ps_cuda_sheet_is_empty(layout, next);) next += PS_CUDA_SHEET;
        if (next > first) PS_TRY(put_slots(frame, lane, first, next - first, first_tile, g, error));
        lane ^= next > first;
        if (next == first) next += PS_CUDA_SHEET;
    }
    return PS_OK;
}
