/* The kernels of ssb_phase_sheets.cu: a sheet of 16 pixels, lanes over pixels from g to phases.
 *
 * column_kernel (a block: a fine column, 8 or 16 pixels) forms the corrected spectra in shared memory and transforms along the rows. It
 * leaves image rows a and b, `pair_step` apart, as one spectrum Z = X_a + i X_b of a complex row: Z(n) in row a for n <= columns/2, in row
 * b at columns - n for the others. image_kernel (a block: a pair of rows) transforms Z, whose real and imaginary parts are two rows of the
 * image, takes the angles, and adds them over the pixels to sums in double. line_kernel goes before, for the fine row of the Nyquist
 * frequency: its odd part goes into column_kernel, its even one to the image as a function of the column. Of the Nyquist column the
 * imaginary part after column_kernel is that of the even part.
 *
 * Fine columns that no side band reaches are neither formed nor read. What column_kernel writes image_kernel finds in the level-2 cache;
 * sheets go to two streams in turn, each with sums of its own, so that no sum's order depends on the chunks. Bytes, 512 x 512 positions, a
 * pixel: 1.05 MB of g; 1.05 MB written and read in the cache. Some 120 instructions a cell form the transfer and 50 transform it in
 * column_kernel, 50 a point in image_kernel, 22 of them the angle: by count half of the time measured. */
#ifndef PS_KERNELS_CUDA_SSB_SHEET_KERNELS_CUH
#define PS_KERNELS_CUDA_SSB_SHEET_KERNELS_CUH

#include "kernels/cuda/count_sheets.cuh"
#include "kernels/cuda/scan_fft.cuh"
#include "kernels/cuda/ssb_grid.cuh"

enum { BLOCKS = 2 /* resident on a multiprocessor */, LANES = PS_CUDA_SHEET };

typedef struct {
    ps_ssb_grid grid;
    ps_fft_plan plan;
    int half, reached;  /* columns/2 + 1; of them those that a side band reaches */
    int pair_step;      /* image rows of a pair are so far apart */
    int64_t first_slot; /* of the sheet */
    int first_lane;
    float2 *cells;      /* [rows, half, 16] */
    float *column_even; /* [rows, 16] image of the Nyquist column's even part; NULL: none */
    float2 *row_odd;    /* [half, 16] the Nyquist row's odd part, as column_kernel transforms it; NULL: none */
    float *row_even;    /* [columns, 16] image of its even part */
    float mean;
    ps_ssb_sum *sums; /* [rows, columns] */
} sheet_arguments;

/* This thread's pixel, and the values j + second * m of a line that it begins with. */
struct thread_place {
    int j, lane; /* of the sheet */
    unsigned active;
};

__device__ inline thread_place place_of(const sheet_arguments &args) {
    int shift = args.plan.lanes == 8 ? 3 : 4, j = (int)(threadIdx.x >> shift);
    thread_place place = {j, args.first_lane + ((int)threadIdx.x & (args.plan.lanes - 1)),
                          __ballot_sync(PS_FULL_WARP, j < args.plan.second)};
    return place;
}

/* Values that a thread has left in shared memory at its own place; odd ones of the transform go to a neighbour's. */
struct own_source {
    const float2 *first;
    unsigned active;
    template <int R> __device__ void fill(float2 (&x)[R]) const {
#pragma unroll
        for (int m = 0; m < R; m++) x[m] = first[m * PS_FFT_PITCH];
        __syncwarp(active);
    }
};

/* The block's pixels along a line; row: of the grid, else a column. */
__device__ inline const ps_gamma_line *form_lines(const ps_cuda_geometry &g, const sheet_arguments &args, bool row, int fixed,
                                                  ps_gamma_line *lines, int lane) {
    for (int i = (int)threadIdx.x; i < 2 * args.plan.lanes; i += (int)blockDim.x)
        ps_ssb_form_line(g, args.grid, args.first_slot + args.first_lane + i / 2, row, fixed, i % 2, &lines[i / 2]);
    __syncthreads();
    return &lines[lane - args.first_lane];
}

/* Where the scan's spectrum holds fine frequencies of one column. */
template <bool COMPACT> struct stored_column {
    const float2 *exact;
    const short2 *packed; /* either at the column's first row, and the pixel's scales */
    const float *scales;
    int column, scan_rows, step;
    bool conjugate;
    /* row: modulo scan_rows; the stored one */
    __device__ int stored_row(int row) const { return conjugate && row != 0 ? scan_rows - row : row; }
    /* of a stored row */
    __device__ const float2 *value_at(int row) const { return exact + (int64_t)row * step; }
    __device__ const short2 *packed_at(int row) const { return packed + (int64_t)row * step; }
    __device__ const float *scale_at(int row) const { return scales + (row == 0 && column == 0 ? scan_rows : row) * PS_CUDA_LANES; }
    __device__ float2 value(int row) const {
        row = stored_row(row);
        if constexpr (COMPACT)
            return ps_g_unpack2(*packed_at(row), *scale_at(row));
        else
            return *value_at(row);
    }
};

template <bool COMPACT> __device__ inline stored_column<COMPACT> stored_at(const ps_ssb_grid &grid, int64_t slot, int column) {
    int scan_columns = (int)grid.scan_columns, half = scan_columns / 2 + 1;
    column %= scan_columns;
    column += column < 0 ? scan_columns : 0;
    bool conjugate = column >= half;
    if (conjugate) column = scan_columns - column;
    const ps_g_pixel pixel = ps_ssb_spectrum(grid, slot);
    stored_column<COMPACT> stored = {COMPACT ? NULL : pixel.exact + column * PS_CUDA_LANES,
                                     COMPACT ? pixel.packed + column * PS_CUDA_LANES : NULL,
                                     pixel.scales,
                                     column,
                                     (int)grid.scan_rows,
                                     half * PS_CUDA_LANES,
                                     conjugate};
    return stored;
}

/* --- the fine columns --- */

/* A value of the compact form as it lies in its place in shared memory: packed, and behind it its scale. */
__device__ inline float2 unpacked(float2 raw) {
    short2 packed;
    memcpy(&packed, &raw.x, sizeof packed);
    return ps_g_unpack2(packed, raw.y);
}

/* g of this thread's rows, on its way to its places in shared memory. */
template <bool COMPACT>
__device__ inline void fetch_column(const sheet_arguments &args, const stored_column<COMPACT> &stored, int j, float2 *own) {
    int row = j % stored.scan_rows;
    [[maybe_unused]] uint64_t policy = ps_evict_first();
    for (int m = 0; m < args.plan.first; m++) {
        int from = stored.stored_row(row);
        float2 *to = own + m * PS_FFT_PITCH;
        if constexpr (COMPACT) {
            ps_copy_async4(&to->x, stored.packed_at(from));
            ps_copy_async4(&to->y, stored.scale_at(from));
        } else {
            ps_copy_async8(to, stored.value_at(from), policy);
        }
        row += args.plan.second;
        while (row >= stored.scan_rows) row -= stored.scan_rows;
    }
    ps_copy_commit();
    ps_copy_wait<0>();
}

/* -i times the corrected spectrum, real and imaginary part exchanged: what is transformed with exp(+...). */
template <bool COMPACT>
__device__ inline void correct_column(const ps_cuda_geometry &g, const sheet_arguments &args, const ps_gamma_line &line, float conjugate,
                                      const thread_place &place, float2 *own) {
    const ps_gamma_walk walk(line);
    const int step = args.plan.second;
    int row = place.j - (int)args.grid.rows; /* negative frequencies begin at -rows/2 */
    float x_f32 = (float)place.j;
    double x = (double)place.j;
#pragma unroll 1
    for (int m = 0; m < args.plan.first; m++, row += step, x += step, x_f32 += (float)step, own += PS_FFT_PITCH) {
        if (x_f32 > 0.0f && 2 * row >= -(int)args.grid.rows) {
            x = (double)row;
            x_f32 = (float)row;
        }
        float2 unit = ps_gamma_unit(g, walk, line, x, x_f32), value = COMPACT ? unpacked(*own) : *own;
        value.y *= conjugate;
        value = ps_ssb_corrected(value, unit);
        *own = make_float2(-value.x, value.y);
    }
}

/* The zero frequency holds nothing, the Nyquist row what line_kernel found. */
__device__ inline void replace_rows(const sheet_arguments &args, int index, const thread_place &place, float2 *own) {
    const int nyquist = (int)args.grid.rows / 2, second = args.plan.second;
    if (index == 0 && place.j == 0) *own = make_float2(0.0f, 0.0f);
    if (args.row_odd && place.j == nyquist % second) own[nyquist / second * PS_FFT_PITCH] = args.row_odd[index * LANES + place.lane];
}

struct pair_sink {
    float2 *first; /* row 0 of this column */
    int row, first_radix;
    bool is_real;       /* the column is its own partner */
    float *column_even; /* this pixel's */
    template <int R> __device__ void take(int k1, float2 (&x)[R]) const {
        if constexpr (R % 2 == 0) {
#pragma unroll
            for (int k2 = 0; k2 < R; k2 += 2) {
                int a = k1 + first_radix * k2, b = a + first_radix;
                float2 xa = x[k2], xb = x[k2 + 1]; /* imaginary, real */
                first[(int64_t)a * row] = is_real ? make_float2(xb.y, xa.y) : make_float2(xa.x + xb.y, xa.y - xb.x);
                if (!is_real) first[(int64_t)b * row] = make_float2(xb.y - xa.x, xa.y + xb.x);
                if (!column_even) continue;
                column_even[a * LANES] = -xa.x;
                column_even[b * LANES] = -xb.x;
            }
        }
    }
};

/* Resident on a multiprocessor, as many as registers allow without spills. */
constexpr int column_blocks() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
    return 1;
#else
    return BLOCKS;
#endif
}

template <bool COMPACT>
static __global__ void __launch_bounds__(PS_FFT_THREADS, (column_blocks()))
    column_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ sheet_arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    float2 *exchange = (float2 *)ps_shared, *own = exchange + threadIdx.x;
    const int index = (int)blockIdx.x;
    const bool is_nyquist = 2 * index == (int)args.grid.columns;
    const int column = is_nyquist ? -index : index;
    const thread_place place = place_of(args);
    const ps_gamma_line *line =
        form_lines(g, args, false, column, (ps_gamma_line *)(exchange + args.plan.first * PS_FFT_PITCH), place.lane);
    if (place.j < args.plan.second) {
        const stored_column<COMPACT> stored = stored_at<COMPACT>(args.grid, args.first_slot + place.lane, column);
        fetch_column(args, stored, place.j, own);
        correct_column<COMPACT>(g, args, *line, stored.conjugate ? -1.0f : 1.0f, place, own);
        replace_rows(args, index, place, own);
    }
    const own_source source = {own, place.active};
    const pair_sink sink = {args.cells + index * LANES + place.lane, args.half * LANES, args.plan.first, index == 0 || is_nyquist,
                            is_nyquist && args.column_even ? args.column_even + place.lane : NULL};
    ps_fft_run(args.plan, place.j, exchange, source, sink);
}

/* --- the fine row of the Nyquist frequency --- */

struct swapped_source {
    own_source own;
    template <int R> __device__ void fill(float2 (&x)[R]) const {
        own.fill(x);
#pragma unroll
        for (int m = 0; m < R; m++) x[m] = make_float2(x[m].y, x[m].x);
    }
};

struct even_sink {
    float *image;
    int first_radix;
    template <int R> __device__ void take(int k1, float2 (&x)[R]) const {
#pragma unroll
        for (int k2 = 0; k2 < R; k2++) image[(k1 + first_radix * k2) * LANES] = x[k2].y;
    }
};

/* Sheets blockIdx.x, every second of the tiles'. */
template <bool COMPACT>
static __global__ void __launch_bounds__(PS_FFT_THREADS, BLOCKS)
    line_kernel(const __grid_constant__ ps_cuda_geometry g, sheet_arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    float2 *exchange = (float2 *)ps_shared, *own = exchange + threadIdx.x;
    const int rows = (int)args.grid.rows, columns = (int)args.grid.columns, lanes = args.plan.lanes, second = args.plan.second;
    const thread_place place = place_of(args);
    args.first_slot += (int64_t)blockIdx.x * 2 * LANES;
    const ps_gamma_line *line =
        form_lines(g, args, true, -(rows / 2), (ps_gamma_line *)(exchange + args.plan.first * PS_FFT_PITCH), place.lane);
    if (place.j < second) {
        const ps_gamma_walk walk(*line);
        const int row = (int)args.grid.scan_rows - 1 - (rows / 2 - 1) % (int)args.grid.scan_rows; /* -rows/2 */
#pragma unroll 1
        for (int n = place.j, m = 0; m < args.plan.first; m++, n += second) {
            int x = ps_ssb_frequency(n, columns);
            const stored_column<COMPACT> stored = stored_at<COMPACT>(args.grid, args.first_slot + place.lane, x);
            float2 value = stored.value(row);
            value.y = stored.conjugate ? -value.y : value.y;
            own[m * PS_FFT_PITCH] = ps_ssb_corrected(value, ps_gamma_unit(g, walk, *line, (double)x, (float)x));
        }
    }
    __syncthreads();
    float2 *odd = args.row_odd + (int64_t)blockIdx.x * args.half * LANES + place.lane;
    for (int n = place.j; n < args.half; n += (int)blockDim.x / lanes) {
        int other = n == 0 ? 0 : columns - n, lane = (int)threadIdx.x % lanes;
        float2 here = exchange[n / second * PS_FFT_PITCH + n % second * lanes + lane];
        float2 there = exchange[other / second * PS_FFT_PITCH + other % second * lanes + lane];
        odd[n * LANES] = make_float2(-0.5f * (here.x - there.x), 0.5f * (here.y + there.y));
    }
    __syncthreads();
    const swapped_source source = {{own, place.active}};
    const even_sink sink = {args.row_even + (int64_t)blockIdx.x * columns * LANES + place.lane, args.plan.first};
    ps_fft_run(args.plan, place.j, exchange, source, sink);
}

/* --- the image --- */

struct image_source {
    const float2 *direct, *mirrored; /* first cells of rows a and b */
    int column, step, columns, reached;
    template <int R> __device__ void fill(float2 (&x)[R]) const {
#pragma unroll
        for (int m = 0; m < R; m++) {
            int n = column + m * step, other = columns - n;
            bool is_direct = n <= other;
            const float2 *at = is_direct ? direct + n * LANES : mirrored + other * LANES;
            x[m] = (is_direct ? n : other) < reached ? __ldcg(at) : make_float2(0.0f, 0.0f);
        }
    }
};

/* Angles of rows a and b, to shared memory in place of what they were transformed from: [k1][k2][lane]. */
struct angle_sink {
    float2 *exchange; /* of this lane */
    unsigned group;   /* the threads that share k1 */
    int first_radix;
    float real_a, real_b, along_a, along_b; /* the mean, and the column's even part in rows a and b */
    float sign_a, sign_b;                   /* of the row's even part */
    const float *row_even;
    template <int R> __device__ void take(int k1, float2 (&x)[R]) const {
        constexpr int N = ps_fft_lanes(R);
        float2 *to = exchange + k1 * PS_FFT_PITCH;
        __syncwarp(group);
#pragma unroll
        for (int k2 = 0; k2 < R; k2++) {
            int n = k1 + first_radix * k2;
            float a = n % 2 ? -along_a : along_a, b = n % 2 ? -along_b : along_b, even = row_even ? row_even[n * LANES] : 0.0f;
            to[k2 * N] =
                make_float2(ps_ssb_angle(x[k2].y, real_a + fmaf(sign_a, even, a)), ps_ssb_angle(x[k2].x, real_b + fmaf(sign_b, even, b)));
        }
    }
};

/* Adds the lanes' angles of both rows, and their squares, to the sums. Lanes of a column are taken two by two, from another one on in each
 * thread, so that threads meet different banks. */
__device__ inline void add_angles(const sheet_arguments &args, const float2 *exchange, int row_a, int row_b) {
    const int columns = (int)args.grid.columns, lanes = args.plan.lanes;
    for (int n = (int)threadIdx.x; n < columns; n += (int)blockDim.x) {
        const float4 *pairs = (const float4 *)(exchange + n % args.plan.first * PS_FFT_PITCH + n / args.plan.first * lanes);
        float a = 0.0f, b = 0.0f, aa = 0.0f, bb = 0.0f;
        for (int i = 0; i < lanes / 2; i++) {
            float4 angles = pairs[(i + (int)threadIdx.x) % (lanes / 2)];
            a += angles.x + angles.z;
            b += angles.y + angles.w;
            aa = fmaf(angles.x, angles.x, fmaf(angles.z, angles.z, aa));
            bb = fmaf(angles.y, angles.y, fmaf(angles.w, angles.w, bb));
        }
        ps_ssb_sum *of_a = args.sums + (int64_t)row_a * columns + n, *of_b = args.sums + (int64_t)row_b * columns + n;
        ps_ssb_sum sum_a = *of_a, sum_b = *of_b;
        *of_a = make_double2(sum_a.x + (double)a, sum_a.y + (double)aa);
        *of_b = make_double2(sum_b.x + (double)b, sum_b.y + (double)bb);
    }
}

static __global__ void __launch_bounds__(PS_FFT_THREADS, BLOCKS) image_kernel(const __grid_constant__ sheet_arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    float2 *exchange = (float2 *)ps_shared;
    const thread_place place = place_of(args);
    const int pair = (int)blockIdx.x, row_a = pair % args.pair_step + 2 * args.pair_step * (pair / args.pair_step);
    const int row_b = row_a + args.pair_step, row = args.half * LANES, lane = (int)threadIdx.x % args.plan.lanes;
    const float2 *cells = args.cells + place.lane;
    const image_source source = {
        cells + (int64_t)row_a * row, cells + (int64_t)row_b * row, place.j, args.plan.second, (int)args.grid.columns, args.reached};
    /* a slot without a pixel has the angle 0 */
    const float mean = args.grid.pixels[args.first_slot + place.lane].aperture > 0.0f ? args.mean : 1.0f;
    const unsigned group = args.plan.lanes == 8 ? 0xffu << (threadIdx.x & 24) : 0xffffu << (threadIdx.x & 16);
    const float *even = args.column_even ? args.column_even + place.lane : NULL;
    const angle_sink sink = {exchange + lane,
                             group,
                             args.plan.first,
                             mean,
                             mean,
                             even ? even[row_a * LANES] : 0.0f,
                             even ? even[row_b * LANES] : 0.0f,
                             row_a % 2 ? -1.0f : 1.0f,
                             row_b % 2 ? -1.0f : 1.0f,
                             args.row_even ? args.row_even + place.lane : NULL};
    ps_fft_run(args.plan, place.j, exchange, source, sink);
    __syncthreads();
    add_angles(args, exchange, row_a, row_b);
}

#endif
