/* The SSB estimator `phase` by cuFFT, for fine grids that ssb_phase_sheets.cu does not take.
 *
 * A batch of phase_batch pixels goes through: correct_kernel, the corrected half-plane of each on the fine grid; cuFFT, complex to real,
 * in place; phase_kernel, which adds phase and phase^2 to an image in double. The batch's planes stay in the level-2 cache.
 *
 * correct_kernel: a block takes 128 frequencies of a fine row and the batch, lanes over frequencies, pixel after pixel. Bytes: g once, 8
 * per fine half-plane cell written, transformed and read (mostly in cache). Bound by cuFFT and the cache. */
#include "kernels/cuda/ssb_grid.cuh"

enum { CORRECT_WARPS = 4, PHASE_THREADS = 256 };

typedef struct {
    ps_ssb_grid grid;
    const int32_t *slots; /* [n] of the batch's pixels */
    int64_t n;
    float2 *planes;      /* [batch, rows, columns/2 + 1] */
    float2 *row_even;    /* [batch, columns/2 + 1] conjugate-even part of the Nyquist row */
    float2 *column_even; /* [batch, rows/2 + 1] of the Nyquist column */
} arguments;

/* A pixel of the batch along this fine row and along the opposite one. */
struct batch_pixel {
    ps_gamma_line here, opposite;
    int64_t slot;
};

/* A fine frequency and where the scan's spectrum holds it. */
struct fine_frequency {
    int row, column, scale_row;
    int64_t place;
    float conjugate;
};

__device__ inline fine_frequency frequency_at(const ps_ssb_grid &grid, int row, int column) {
    int scan_rows = (int)grid.scan_rows, scan_columns = (int)grid.scan_columns, half = scan_columns / 2 + 1;
    int r = row % scan_rows, c = column % scan_columns;
    r += r < 0 ? scan_rows : 0;
    c += c < 0 ? scan_columns : 0;
    bool conjugate = c >= half;
    if (conjugate) {
        r = r == 0 ? 0 : scan_rows - r;
        c = scan_columns - c;
    }
    fine_frequency f = {row, column, r == 0 && c == 0 ? scan_rows : r, ((int64_t)r * half + c) * PS_CUDA_LANES, conjugate ? -1.0f : 1.0f};
    return f;
}

/* The corrected spectrum; 0 at the zero frequency. */
__device__ inline float2 corrected(const ps_cuda_geometry &g, const ps_ssb_grid &grid, const ps_gamma_line &line, int64_t slot,
                                   const fine_frequency &f) {
    if (f.row == 0 && f.column == 0) return make_float2(0.0f, 0.0f);
    const ps_gamma_walk walk(line);
    float2 unit = ps_gamma_unit(g, walk, line, (double)f.column, (float)f.column),
           value = ps_ssb_spectrum(grid, slot).value(f.place, f.scale_row);
    value.y *= f.conjugate;
    return ps_ssb_corrected(value, unit);
}

/* The batch's pixels for one fine row and its opposite. */
__device__ inline void load_pixels(const ps_cuda_geometry &g, const arguments &args, int row, int opposite, batch_pixel *pixels) {
    for (int i = (int)threadIdx.x; i < 4 * (int)args.n; i += 32 * CORRECT_WARPS) {
        batch_pixel *pixel = &pixels[i / 4];
        pixel->slot = args.slots[i / 4];
        ps_ssb_form_line(g, args.grid, pixel->slot, true, i & 2 ? opposite : row, i & 1, i & 2 ? &pixel->opposite : &pixel->here);
    }
    __syncthreads();
}

/* A cell on a line of a Nyquist frequency: its conjugate-odd part, the even one to its place. */
__device__ inline float2 split_even(const ps_cuda_geometry &g, const arguments &args, const batch_pixel &pixel,
                                    const fine_frequency &opposite, bool nyquist_row, float2 value, float2 *even) {
    float2 other = corrected(g, args.grid, nyquist_row ? pixel.here : pixel.opposite, pixel.slot, opposite);
    *even = make_float2(0.5f * (value.x + other.x), 0.5f * (value.y - other.y));
    return make_float2(0.5f * (value.x - other.x), 0.5f * (value.y + other.y));
}

static __global__ void __launch_bounds__(32 * CORRECT_WARPS, 4)
    correct_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    batch_pixel *pixels = (batch_pixel *)ps_shared;
    const int rows = (int)args.grid.rows, columns = (int)args.grid.columns, half = columns / 2 + 1;
    const int index = (int)blockIdx.x, row = ps_ssb_frequency(index, rows);
    const int column = (int)(blockIdx.y * 32 * CORRECT_WARPS + threadIdx.x);
    bool nyquist_row = 2 * index == rows, nyquist_column = 2 * column == columns;
    int opposite_row = nyquist_row ? row : -row;
    load_pixels(g, args, row, opposite_row, pixels);
    if (column >= half) return;
    const fine_frequency here = frequency_at(args.grid, row, nyquist_column ? -column : column);
    const fine_frequency opposite = frequency_at(args.grid, opposite_row, -column);
#pragma unroll 1
    for (int i = 0; i < (int)args.n; i++) {
        float2 value = corrected(g, args.grid, pixels[i].here, pixels[i].slot, here), even;
        if (nyquist_row || nyquist_column) {
            value = split_even(g, args, pixels[i], opposite, nyquist_row, value, &even);
            if (nyquist_row)
                args.row_even[(int64_t)i * half + column] = even;
            else if (2 * index <= rows)
                args.column_even[(int64_t)i * (rows / 2 + 1) + index] = even;
            if (nyquist_row && nyquist_column) args.column_even[(int64_t)i * (rows / 2 + 1) + index] = make_float2(0.0f, 0.0f);
        }
        args.planes[((int64_t)i * rows + index) * half + column] = make_float2(value.y, -value.x);
    }
}

typedef struct {
    int64_t rows, columns, n;                       /* n: pixels of the batch */
    const float *planes, *along_row, *along_column; /* [batch, rows, padded], [batch, padded columns], [batch, padded rows] or NULL */
    float mean;
    ps_ssb_sum *sums; /* [rows, columns] */
} phase_arguments;

/* One image point a thread, pixel after pixel. */
static __global__ void __launch_bounds__(PHASE_THREADS) phase_kernel(const __grid_constant__ phase_arguments args) {
    int64_t column = (int64_t)blockIdx.x * PHASE_THREADS + threadIdx.x, row = blockIdx.y;
    if (column >= args.columns) return;
    int64_t padded = 2 * (args.columns / 2 + 1), padded_rows = 2 * (args.rows / 2 + 1), at = row * args.columns + column;
    ps_ssb_sum sum = args.sums[at];
    for (int64_t i = 0; i < args.n; i++) {
        float real = args.mean;
        if (args.along_row) real += row % 2 ? -args.along_row[i * padded + column] : args.along_row[i * padded + column];
        if (args.along_column) real += column % 2 ? -args.along_column[i * padded_rows + row] : args.along_column[i * padded_rows + row];
        double phase = (double)ps_ssb_angle(args.planes[(i * args.rows + row) * padded + column], real);
        sum.x += phase;
        sum.y = fma(phase, phase, sum.y);
    }
    args.sums[at] = sum;
}

/* --- the batches --- */

typedef struct {
    float2 *planes, *row_even, *column_even;
    unsigned char *work;
} buffers;

static ps_cuda_transform line_transform(int64_t length, int64_t batch) {
    ps_cuda_transform transform = {1, length, batch, true};
    return transform;
}

static int64_t work_bytes(const ps_cuda_system *system) {
    ps_cuda_transform plane = ps_cuda_image_transform(system, system->phase_batch);
    ps_cuda_transform row = line_transform(plane.columns, plane.batch), column = line_transform(plane.rows, plane.batch);
    size_t bytes = ps_cuda_transform_work(&plane), a = ps_cuda_transform_work(&row), b = ps_cuda_transform_work(&column);
    bytes = bytes > a ? bytes : a;
    return (int64_t)(bytes > b ? bytes : b);
}

static buffers take_buffers(const ps_cuda_system *system, ps_cuda_arena *arena) {
    int64_t rows = ps_cuda_fine_rows(&system->desc), half = ps_cuda_fine_half(&system->desc), batch = system->phase_batch;
    buffers b;
    b.planes = ps_cuda_take<float2>(arena, batch * rows * half);
    b.row_even = ps_cuda_take<float2>(arena, batch * half);
    b.column_even = ps_cuda_take<float2>(arena, batch * (rows / 2 + 1));
    b.work = ps_cuda_take<unsigned char>(arena, work_bytes(system));
    return b;
}

int64_t ps_ssb_phase_batches_scratch(const ps_cuda_system *system) {
    ps_cuda_arena arena = {NULL, 0};
    take_buffers(system, &arena);
    return (int64_t)arena.used;
}

static ps_code launch_correct(const ps_ssb_phase *phase, const arguments *args, ps_error *error) {
    size_t bytes = (size_t)args->n * sizeof(batch_pixel);
    dim3 grid((unsigned)args->grid.rows, (unsigned)ps_cuda_blocks(args->grid.columns / 2 + 1, 32 * CORRECT_WARPS));
    PS_CUDA_LAUNCH(error, correct_kernel, grid, 32 * CORRECT_WARPS, bytes, phase->frame->system->backend->compute, phase->along_row, *args);
    return PS_OK;
}

static ps_code transform_batch(ps_cuda_system *system, const buffers *b, ps_error *error) {
    ps_cuda_transform plane = ps_cuda_image_transform(system, system->phase_batch);
    ps_cuda_transform row = line_transform(plane.columns, plane.batch), column = line_transform(plane.rows, plane.batch);
    PS_TRY(ps_cuda_transform_run(&plane, &system->inverse_phase, b->planes, b->work, system->backend->compute, error));
    if (plane.rows % 2 == 0)
        PS_TRY(ps_cuda_transform_run(&row, &system->inverse_row, b->row_even, b->work, system->backend->compute, error));
    if (plane.columns % 2 == 0)
        PS_TRY(ps_cuda_transform_run(&column, &system->inverse_column, b->column_even, b->work, system->backend->compute, error));
    return PS_OK;
}

static ps_code launch_phase(const ps_ssb_phase *phase, const buffers *b, int64_t n, ps_error *error) {
    const ps_cuda_system *system = phase->frame->system;
    int64_t rows = ps_cuda_fine_rows(&system->desc), columns = ps_cuda_fine_columns(&system->desc);
    phase_arguments args = {rows,
                            columns,
                            n,
                            (const float *)b->planes,
                            rows % 2 == 0 ? (const float *)b->row_even : NULL,
                            columns % 2 == 0 ? (const float *)b->column_even : NULL,
                            (float)phase->mean,
                            phase->sums};
    dim3 grid((unsigned)ps_cuda_blocks(columns, PHASE_THREADS), (unsigned)rows);
    PS_CUDA_LAUNCH(error, phase_kernel, grid, PHASE_THREADS, 0, system->backend->compute, args);
    return PS_OK;
}

ps_code ps_ssb_phase_add_batches(const ps_ssb_phase *phase, int64_t first_tile, int64_t n_tiles, const ps_cuda_g *g, ps_error *error) {
    ps_cuda_system *system = phase->frame->system;
    const int32_t *first_ordered = system->layout.first_ordered;
    int64_t end = first_ordered[first_tile + n_tiles];
    ps_cuda_arena arena = {phase->transform, 0};
    buffers b = take_buffers(system, &arena);
    arguments args = {};
    args.grid = ps_ssb_phase_grid(phase, first_tile, g);
    args.planes = b.planes;
    args.row_even = b.row_even;
    args.column_even = b.column_even;
    /* a short last batch transforms old planes, which must be numbers */
    PS_TRY(PS_CUDA(error,
                   cudaMemsetAsync(b.planes, 0, (size_t)((unsigned char *)b.work - (unsigned char *)b.planes), system->backend->compute)));
    for (int64_t first = first_ordered[first_tile]; first < end; first += system->phase_batch) {
        args.slots = system->d_ordered_slot + first;
        args.n = end - first < system->phase_batch ? end - first : system->phase_batch;
        PS_TRY(launch_correct(phase, &args, error));
        PS_TRY(transform_batch(system, &b, error));
        PS_TRY(launch_phase(phase, &b, args.n, error));
    }
    return PS_OK;
}
