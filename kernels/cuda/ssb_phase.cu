/* The SSB estimator `phase`, physics section 6: every pixel's own image, the mean of their phases, and the loss, the image mean of the
 * phases' variance over pixels.
 *
 * A batch of phase_batch pixels goes through: correct_kernel, the corrected half-plane of each on the fine grid; cuFFT, complex to real,
 * in place; phase_kernel, which adds phase and phase^2 to two images in double. The batch's planes stay in the level-2 cache.
 *
 * correct_kernel: a block takes 128 frequencies of a fine row and the batch, lanes over frequencies, pixel after pixel. In steps
 * of the fine grid kappa = k - sigma Q is an affine function of the column with the row fixed, so chi costs six fused steps here too
 * (ps_form_row_terms in a geometry whose unit steps are those of the fine grid). A pixel's corrected spectrum v is conjugate-odd, v(-Q)
 * = -conj(v(Q)), so its image is i times the real transform of -i v, plus the mean at zero frequency. Rows and columns of a fine Nyquist
 * frequency hold a conjugate-even part as well; its images are functions of one coordinate (times +-1 along the other), from short
 * transforms. Bytes: g once, 8 per fine half-plane cell written, transformed and read (mostly in cache). Bound by cuFFT and the cache. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/layout.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/sum.cuh"
#include "kernels/cuda/transfer.cuh"

enum { CORRECT_WARPS = 4, PHASE_THREADS = 256 };

typedef struct {
    int64_t rows, columns, scan_rows, scan_columns; /* fine grid, scan */
    const int32_t *slots;                           /* [n] of the batch's pixels */
    int64_t n, first_tile, n_spectrum;
    const float2 *spectra;         /* [tile, n_spectrum, 32] from first_tile on */
    const double *slot_u, *slot_v; /* [n_slots] k in fine steps */
    const ps_cuda_pixel *pixels;   /* [n_slots] */
    double tilt_u, tilt_v;
    float inverse_dose;
    float2 *planes;      /* [batch, rows, columns/2 + 1] */
    float2 *row_even;    /* [batch, columns/2 + 1] conjugate-even part of the Nyquist row */
    float2 *column_even; /* [batch, rows/2 + 1] of the Nyquist column */
} arguments;

/* A pixel of the batch, with its rows' terms for sigma = +1 and -1 at this fine row and at the opposite one. */
struct __align__(16) batch_pixel {
    ps_row_terms terms[2], opposite[2];
    double u, v, chi;
    int64_t place; /* of its spectrum's first value */
    float aperture;
};

/* A fine frequency and where the scan's spectrum holds it. */
struct fine_frequency {
    double row, column;
    int64_t place;
    float conjugate;
};

/* The fine frequency of an index; an even length's Nyquist index is the negative frequency. */
__device__ inline int64_t signed_index(int64_t index, int64_t n) {
    return index < (n + 1) / 2 ? index : index - n;
}

__device__ inline fine_frequency frequency_at(const arguments &args, int64_t row, int64_t column) {
    int64_t half = args.scan_columns / 2 + 1, r = row % args.scan_rows, c = column % args.scan_columns;
    r += r < 0 ? args.scan_rows : 0;
    c += c < 0 ? args.scan_columns : 0;
    bool conjugate = c >= half;
    if (conjugate) {
        r = r == 0 ? 0 : args.scan_rows - r;
        c = args.scan_columns - c;
    }
    fine_frequency f = {(double)row, (double)column, (r * half + c) * PS_CUDA_LANES, conjugate ? -1.0f : 1.0f};
    return f;
}

/* gamma = t1 - t2 of a pixel; terms: for sigma = +1 and -1 at the frequency's row. Returns the number of side bands that reach it. */
template <typename Real>
__device__ inline int gamma_at(const ps_cuda_geometry &g, const ps_row_terms *terms, const arguments &args, const batch_pixel &pixel,
                               const fine_frequency &f, Real *gamma_re, Real *gamma_im) {
    double along = 0.0, bend = 0.0;
    int n_sides = 0;
    *gamma_re = *gamma_im = (Real)0;
    if (g.is_thick) {
        along = fma(g.thick_u * f.row, pixel.u, g.thick_v * f.column * pixel.v) - fma(args.tilt_u, f.row, args.tilt_v * f.column);
        bend = 0.5 * fma(g.thick_u * f.row, f.row, g.thick_v * f.column * f.column);
    }
#pragma unroll
    for (int side = 0; side < 2; side++) {
        double sigma = side ? -1.0 : 1.0, s = pixel.v - sigma * f.column, p = terms[side].p;
        float rho2 = (float)fma(g.edge_u * p, p, g.edge_v * s * s);
        if (!(rho2 < g.reach2)) continue;
        Real re, im;
        ps_transfer(g, terms[side], s, along - sigma * bend, pixel.chi, (Real)pixel.aperture, rho2 > g.inner2, &re, &im);
        *gamma_re += side ? -re : re;
        *gamma_im += side ? -im : im;
        n_sides++;
    }
    return n_sides;
}

/* The corrected spectrum g conj(gamma)/|gamma|; 0 at the zero frequency. */
__device__ inline float2 corrected(const ps_cuda_geometry &g, const ps_row_terms *terms, const arguments &args, const batch_pixel &pixel,
                                   const fine_frequency &f) {
    float re, im;
    int n_sides = gamma_at(g, terms, args, pixel, f, &re, &im);
    if (n_sides == 0 || (f.row == 0.0 && f.column == 0.0)) return make_float2(0.0f, 0.0f);
    float2 unit = ps_unit_gamma(re, im);
    if (ps_gamma_is_small(re, im)) {
        double exact_re, exact_im;
        gamma_at(g, terms, args, pixel, f, &exact_re, &exact_im);
        unit = ps_unit_gamma(exact_re, exact_im);
    }
    float2 value = args.spectra[pixel.place + f.place];
    value.y *= f.conjugate;
    return make_float2(args.inverse_dose * fmaf(value.x, unit.x, value.y * unit.y),
                       args.inverse_dose * fmaf(value.y, unit.x, -value.x * unit.y));
}

/* The batch's pixels for one fine row and its opposite. */
__device__ inline void load_pixels(const ps_cuda_geometry &g, const arguments &args, double row, double opposite, batch_pixel *pixels) {
    for (int i = threadIdx.x; i < 4 * args.n; i += 32 * CORRECT_WARPS) {
        int64_t slot = args.slots[i / 4];
        batch_pixel *pixel = &pixels[i / 4];
        ps_row_terms *terms = i & 2 ? pixel->opposite : pixel->terms;
        ps_form_row_terms(g, args.slot_u[slot], i & 2 ? opposite : row, 0.0, i & 1 ? -1.0 : 1.0, &terms[i & 1]);
        if (i % 4 != 0) continue;
        pixel->u = args.slot_u[slot];
        pixel->v = args.slot_v[slot];
        pixel->chi = args.pixels[slot].chi;
        pixel->aperture = args.pixels[slot].aperture;
        pixel->place = (slot / PS_CUDA_LANES - args.first_tile) * args.n_spectrum * PS_CUDA_LANES + slot % PS_CUDA_LANES;
    }
    __syncthreads();
}

/* A cell on a line of a Nyquist frequency: its conjugate-odd part, the even one to its place. */
__device__ inline float2 split_even(const ps_cuda_geometry &g, const arguments &args, const batch_pixel &pixel,
                                    const fine_frequency &opposite, bool nyquist_row, float2 value, float2 *even) {
    float2 other = corrected(g, nyquist_row ? pixel.terms : pixel.opposite, args, pixel, opposite);
    *even = make_float2(0.5f * (value.x + other.x), 0.5f * (value.y - other.y));
    return make_float2(0.5f * (value.x - other.x), 0.5f * (value.y + other.y));
}

static __global__ void __launch_bounds__(32 * CORRECT_WARPS, 4)
    correct_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    batch_pixel *pixels = (batch_pixel *)ps_shared;
    int64_t half = args.columns / 2 + 1, index = blockIdx.x, row = signed_index(index, args.rows);
    int64_t column = (int64_t)blockIdx.y * 32 * CORRECT_WARPS + threadIdx.x;
    bool nyquist_row = 2 * index == args.rows, nyquist_column = 2 * column == args.columns;
    int64_t opposite_row = nyquist_row ? row : -row;
    load_pixels(g, args, (double)row, (double)opposite_row, pixels);
    if (column >= half) return;
    const fine_frequency here = frequency_at(args, row, nyquist_column ? -column : column);
    const fine_frequency opposite = frequency_at(args, opposite_row, -column);
#pragma unroll 1
    for (int i = 0; i < (int)args.n; i++) {
        float2 value = corrected(g, pixels[i].terms, args, pixels[i], here), even;
        if (nyquist_row || nyquist_column) {
            value = split_even(g, args, pixels[i], opposite, nyquist_row, value, &even);
            if (nyquist_row)
                args.row_even[i * half + column] = even;
            else if (2 * index <= args.rows)
                args.column_even[i * (args.rows / 2 + 1) + index] = even;
            if (nyquist_row && nyquist_column) args.column_even[i * (args.rows / 2 + 1) + index] = make_float2(0.0f, 0.0f);
        }
        args.planes[(i * args.rows + index) * half + column] = make_float2(value.y, -value.x);
    }
}

typedef struct {
    int64_t rows, columns, n;                       /* n: pixels of the batch */
    const float *planes, *along_row, *along_column; /* [batch, rows, padded], [batch, padded columns], [batch, padded rows] or NULL */
    float mean;
    double *sums, *squares; /* [rows, columns] */
} phase_arguments;

/* One image point a thread, pixel after pixel. */
static __global__ void __launch_bounds__(PHASE_THREADS) phase_kernel(const __grid_constant__ phase_arguments args) {
    int64_t column = (int64_t)blockIdx.x * PHASE_THREADS + threadIdx.x, row = blockIdx.y;
    if (column >= args.columns) return;
    int64_t padded = 2 * (args.columns / 2 + 1), padded_rows = 2 * (args.rows / 2 + 1), at = row * args.columns + column;
    double sum = args.sums[at], square = args.squares[at];
    for (int64_t i = 0; i < args.n; i++) {
        float real = args.mean;
        if (args.along_row) real += row % 2 ? -args.along_row[i * padded + column] : args.along_row[i * padded + column];
        if (args.along_column) real += column % 2 ? -args.along_column[i * padded_rows + row] : args.along_column[i * padded_rows + row];
        float phase = atan2f(args.planes[(i * args.rows + row) * padded + column], real);
        sum += (double)phase;
        square += (double)phase * (double)phase;
    }
    args.sums[at] = sum;
    args.squares[at] = square;
}

/* sums -> the mean, padded rows of floats. */
static __global__ void __launch_bounds__(PHASE_THREADS) mean_kernel(const double *sums, int64_t columns, double scale, float *image) {
    int64_t column = (int64_t)blockIdx.x * PHASE_THREADS + threadIdx.x, row = blockIdx.y;
    if (column < columns) image[row * 2 * (columns / 2 + 1) + column] = (float)(scale * sums[row * columns + column]);
}

struct variance_value {
    const double *sums, *squares;
    double scale;
    __device__ double operator()(int64_t i) const {
        double mean = scale * sums[i];
        return scale * squares[i] - mean * mean;
    }
};

/* --- the batches --- */

typedef struct {
    float2 *planes, *row_even, *column_even;
    double *sums, *squares, *slot_u, *slot_v;
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
    int64_t rows = ps_cuda_fine_rows(&system->desc), columns = ps_cuda_fine_columns(&system->desc), batch = system->phase_batch;
    buffers b;
    b.planes = ps_cuda_take<float2>(arena, batch * rows * (columns / 2 + 1));
    b.row_even = ps_cuda_take<float2>(arena, batch * (columns / 2 + 1));
    b.column_even = ps_cuda_take<float2>(arena, batch * (rows / 2 + 1));
    b.sums = ps_cuda_take<double>(arena, rows * columns);
    b.squares = ps_cuda_take<double>(arena, rows * columns);
    b.slot_u = ps_cuda_take<double>(arena, system->layout.n_slots);
    b.slot_v = ps_cuda_take<double>(arena, system->layout.n_slots);
    b.work = ps_cuda_take<unsigned char>(arena, work_bytes(system));
    return b;
}

size_t ps_cuda_ssb_phase_scratch(const ps_cuda_system *system) {
    ps_cuda_arena arena = {NULL, 0};
    take_buffers(system, &arena);
    return arena.used;
}

/* The geometry in steps of the fine grid's frequencies, and every slot's k in them. */
static ps_code fine_geometry(const ps_cuda_system *system, const buffers *b, ps_cuda_geometry *fine, ps_error *error) {
    const ps_system_desc *desc = &system->desc;
    const ps_cuda_geometry *g = &system->geometry;
    const double row_step[2] = {1.0 / ((double)desc->scan_rows * desc->scan_step_A[0]), 0.0};
    const double column_step[2] = {0.0, 1.0 / ((double)desc->scan_columns * desc->scan_step_A[1])};
    ps_cuda_geometry_build(&desc->probe, row_step, column_step, fine);
    int64_t n = system->layout.n_slots;
    ps_code code = PS_OK;
    double *u = (double *)calloc((size_t)n, sizeof *u), *v = (double *)calloc((size_t)n, sizeof *v);
    PS_GO_ALLOC(error, u && v);
    for (int64_t slot = 0; slot < n; slot++) {
        if (system->layout.slot_pixel[slot] < 0) continue;
        int64_t detector = system->layout.slot_detector[slot];
        double p = (double)(detector / desc->detector_columns) - system->layout.origin_u;
        double s = (double)(detector % desc->detector_columns) - system->layout.origin_v;
        u[slot] = (p * g->direction_u[0] + s * g->direction_v[0]) / row_step[0];
        v[slot] = (p * g->direction_u[1] + s * g->direction_v[1]) / column_step[1];
    }
    PS_GO(ps_cuda_send(b->slot_u, u, n, error));
    PS_GO(ps_cuda_send(b->slot_v, v, n, error));
done:
    free(u);
    free(v);
    return code;
}

static ps_code launch_correct(const ps_cuda_system *system, const ps_cuda_geometry *fine, const arguments *args, ps_error *error) {
    size_t bytes = (size_t)args->n * sizeof(batch_pixel);
    dim3 grid((unsigned)args->rows, (unsigned)ps_cuda_blocks(args->columns / 2 + 1, 32 * CORRECT_WARPS));
    PS_CUDA_LAUNCH(error, correct_kernel, grid, 32 * CORRECT_WARPS, bytes, system->backend->compute, *fine, *args);
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

static ps_code launch_phase(const ps_cuda_system *system, const buffers *b, int64_t n, double mean, ps_error *error) {
    int64_t rows = ps_cuda_fine_rows(&system->desc), columns = ps_cuda_fine_columns(&system->desc);
    phase_arguments args = {rows,
                            columns,
                            n,
                            (const float *)b->planes,
                            rows % 2 == 0 ? (const float *)b->row_even : NULL,
                            columns % 2 == 0 ? (const float *)b->column_even : NULL,
                            (float)mean,
                            b->sums,
                            b->squares};
    dim3 grid((unsigned)ps_cuda_blocks(columns, PHASE_THREADS), (unsigned)rows);
    PS_CUDA_LAUNCH(error, phase_kernel, grid, PHASE_THREADS, 0, system->backend->compute, args);
    return PS_OK;
}

static arguments fixed_arguments(const ps_cuda_frame *frame, const ps_cuda_geometry *fine, const buffers *b) {
    const ps_cuda_system *system = frame->system;
    arguments args = {};
    args.rows = ps_cuda_fine_rows(&system->desc);
    args.columns = ps_cuda_fine_columns(&system->desc);
    args.scan_rows = system->desc.scan_rows;
    args.scan_columns = system->desc.scan_columns;
    args.n_spectrum = system->n_spectrum;
    args.slot_u = b->slot_u;
    args.slot_v = b->slot_v;
    args.pixels = system->d_pixels;
    args.tilt_u = fine->tilt_u;
    args.tilt_v = fine->tilt_v;
    args.inverse_dose = (float)(1.0 / frame->dose);
    args.planes = b->planes;
    args.row_even = b->row_even;
    args.column_even = b->column_even;
    return args;
}

/* All batches of the tiles [first, first + n) whose spectra are at `spectra`. */
static ps_code add_tiles(ps_cuda_frame *frame, const ps_cuda_geometry *fine, const buffers *b, int64_t first_tile, int64_t n_tiles,
                         const float2 *spectra, double mean, ps_error *error) {
    ps_cuda_system *system = frame->system;
    arguments args = fixed_arguments(frame, fine, b);
    args.first_tile = first_tile;
    args.spectra = spectra;
    const int32_t *first_ordered = system->layout.first_ordered;
    int64_t end = first_ordered[first_tile + n_tiles];
    for (int64_t first = first_ordered[first_tile]; first < end; first += system->phase_batch) {
        args.slots = system->d_ordered_slot + first;
        args.n = end - first < system->phase_batch ? end - first : system->phase_batch;
        PS_TRY(launch_correct(system, fine, &args, error));
        PS_TRY(transform_batch(system, b, error));
        PS_TRY(launch_phase(system, b, args.n, mean, error));
    }
    return PS_OK;
}

static ps_code add_all(ps_cuda_frame *frame, const ps_cuda_geometry *fine, const buffers *b, double mean, int64_t tiles, ps_error *error) {
    ps_cuda_system *system = frame->system;
    ps_cuda_workspace *workspace = &system->workspace;
    int64_t all = system->layout.n_tiles, whole = all * system->n_spectrum * PS_CUDA_LANES;
    for (int64_t place = 0; place < workspace->n_owners; place++)
        if (workspace->owner[place] == frame->serial)
            return add_tiles(frame, fine, b, 0, all, workspace->spectra + place * whole, mean, error);
    for (int64_t place = 0; place < workspace->n_owners; place++) workspace->owner[place] = 0;
    for (int64_t first = 0; first < all; first += tiles) {
        int64_t n = all - first < tiles ? all - first : tiles;
        PS_TRY(ps_cuda_spectra(frame, first, n, workspace->spectra, error));
        PS_TRY(add_tiles(frame, fine, b, first, n, workspace->spectra, mean, error));
    }
    return PS_OK;
}

static ps_code finish(ps_cuda_system *system, const buffers *b, float *phase_f32, double *phase_f64, double *loss, ps_error *error) {
    int64_t rows = ps_cuda_fine_rows(&system->desc), columns = ps_cuda_fine_columns(&system->desc);
    double scale = 1.0 / (double)system->desc.n_active, sum = 0.0;
    variance_value value = {b->sums, b->squares, scale};
    if (loss) PS_TRY(ps_cuda_sum(system, value, rows * columns, &sum, error));
    if (loss) *loss = sum / (double)(rows * columns);
    dim3 grid((unsigned)ps_cuda_blocks(columns, PHASE_THREADS), (unsigned)rows);
    PS_CUDA_LAUNCH(error, mean_kernel, grid, PHASE_THREADS, 0, system->backend->compute, b->sums, columns, scale, (float *)b->planes);
    PS_TRY(ps_cuda_download_begin(system, (const float *)b->planes, 0, error));
    return ps_cuda_download_end(system, 0, phase_f32, phase_f64, error);
}

ps_code ps_cuda_ssb_phase(ps_cuda_frame *frame, float *phase_f32, double *phase_f64, double *loss, ps_error *error) {
    ps_cuda_system *system = frame->system;
    int64_t tiles, n = ps_cuda_fine_rows(&system->desc) * ps_cuda_fine_columns(&system->desc);
    ps_cuda_geometry fine;
    double mean = 0.0;
    PS_TRY(ps_cuda_workspace_ensure(system, 1, &tiles, error));
    ps_cuda_arena scratch = ps_cuda_scratch(system);
    buffers b = take_buffers(system, &scratch);
    PS_TRY(fine_geometry(system, &b, &fine, error));
    for (int64_t i = 0; i < system->desc.n_active; i++) mean += frame->mean[i] / frame->dose / (double)system->desc.n_active;
    PS_TRY(PS_CUDA(error, cudaMemsetAsync(b.sums, 0, (size_t)n * sizeof *b.sums, system->backend->compute)));
    size_t planes = (size_t)system->phase_batch * (size_t)ps_cuda_image_floats(system) * sizeof(float);
    PS_TRY(PS_CUDA(error, cudaMemsetAsync(b.planes, 0, planes, system->backend->compute))); /* a short last batch transforms old planes */
    PS_TRY(PS_CUDA(error, cudaMemsetAsync(b.squares, 0, (size_t)n * sizeof *b.squares, system->backend->compute)));
    PS_TRY(add_all(frame, &fine, &b, mean, tiles, error));
    return finish(system, &b, phase_f32, phase_f64, loss, error);
}
