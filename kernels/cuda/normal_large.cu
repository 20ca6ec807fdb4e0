/* N of frequencies with more than 8 aliases: normal.cu's walk by a block of 8 warps. Columns that meet a tile are spread over the warps,
 * then pairs of groups of four; the complex Gram's upper triangle lies in shared memory, and where that is too small its rows are formed in
 * several passes over the pixels. */
#include "kernels/cuda/normal_kernels.cuh"

enum { WARPS = 8, THREADS = 32 * WARPS, WORDS = 2 * PS_MAX_ALIASES / 32 };

/* Shared memory of the block, bytes from its start. */
typedef struct {
    size_t terms, stage, gram, reaches, slots, bytes;
} sections;

/* Elements of the Gram's upper triangle in rows [first, end) of n columns. */
__host__ __device__ static inline int gram_elements(int n, int first, int end) {
    return (end * n - end * (end - 1) / 2) - (first * n - first * (first - 1) / 2);
}

template <typename Real> __host__ __device__ static inline sections lay_out(int n_columns, int first, int end) {
    sections s;
    s.terms = 0;
    s.gram = s.terms + (size_t)n_columns * PS_CUDA_BAND_ROWS * sizeof(ps_row_terms);
    s.reaches = s.gram + (size_t)gram_elements(n_columns, first, end) * sizeof(double2);
    s.stage = s.reaches + (size_t)n_columns * sizeof(ps_reach);
    s.slots = s.stage + (size_t)ps_normal_stage<Real>(n_columns) * sizeof(Real);
    s.bytes = (s.slots + (size_t)n_columns + 15) / 16 * 16;
    return s;
}

/* Up to 128 columns as bits. */
typedef struct {
    unsigned touched[WORDS], inside[WORDS];
} column_sets;

__device__ inline column_sets meet_columns(const ps_reach *reaches, int n_columns, int tile, int lane) {
    column_sets sets;
#pragma unroll
    for (int word = 0; word < WORDS; word++) {
        sets.touched[word] = sets.inside[word] = 0u;
        if (word * 32 >= n_columns) continue;
        int column = word * 32 + lane;
        ps_reach reach = {1, 0, 1, 0};
        if (column < n_columns) reach = reaches[column];
        sets.touched[word] = __ballot_sync(PS_FULL_WARP, tile >= reach.first && tile <= reach.last);
        sets.inside[word] = __ballot_sync(PS_FULL_WARP, tile >= reach.inner_first && tile <= reach.inner_last);
    }
    return sets;
}

/* The Gram of two columns, whichever way round it is stored. */
__device__ inline double2 gram_entry(const double2 *gram, int n_columns, int first, int a, int b) {
    int row = a < b ? a : b, column = a < b ? b : a;
    double2 entry = gram[gram_elements(n_columns, first, row) + column - row];
    if (a > b) entry.y = -entry.y;
    return entry;
}

/* Evaluates this warp's share of the columns that meet a tile; the number of all. */
template <typename Real>
__device__ inline int stage_columns(const ps_cuda_geometry &g, const column_sets &sets, const ps_row_terms *my_terms, double v, double chi,
                                    Real root, Real *stage, uint8_t *slots, int lane, int warp) {
    int n_staged = 0;
#pragma unroll
    for (int word = 0; word < WORDS; word++)
        for (unsigned left = sets.touched[word]; left; left &= left - 1, n_staged++) {
            if (n_staged % WARPS != warp) continue;
            int bit = __ffs((int)left) - 1;
            const ps_row_terms &t = my_terms[(word * 32 + bit) * PS_CUDA_BAND_ROWS];
            Real re, im;
            ps_transfer(g, t, v - t.place, fma(t.y1, v, t.y0), chi, root, (sets.inside[word] >> bit & 1u) == 0u, &re, &im);
            ps_normal_put(stage, 2 * n_staged, lane, re);
            ps_normal_put(stage, 2 * n_staged + 1, lane, im);
            slots[n_staged] = (uint8_t)(word * 32 + bit);
        }
    return n_staged;
}

/* Adds this warp's share of the products of groups to the rows [first, end) of the Gram. */
template <typename Real>
__device__ inline void add_products(const Real *stage, const uint8_t *slots, int n_staged, int n_columns, int first, int end, double2 *gram,
                                    int lane, int warp) {
    int n_groups = (n_staged + PS_NORMAL_GROUP - 1) / PS_NORMAL_GROUP, pair = 0;
    for (int a = 0; a < n_groups; a++) {
        bool wanted = slots[a * PS_NORMAL_GROUP] < end && slots[min((a + 1) * PS_NORMAL_GROUP, n_staged) - 1] >= first;
        for (int b = a; b < n_groups; b++, pair++) {
            if (pair % WARPS != warp || !wanted) continue;
            double2 products = ps_normal_multiply(stage, a, b, 2 * n_staged, lane);
            double other_x = __shfl_xor_sync(PS_FULL_WARP, products.x, 4), other_y = __shfl_xor_sync(PS_FULL_WARP, products.y, 4);
            int i = a * PS_NORMAL_GROUP + lane / 8, j = b * PS_NORMAL_GROUP + lane % 4;
            if ((lane & 4) || i > j || j >= n_staged) continue;
            int column_a = slots[i], column_b = slots[j];
            if (column_a < first || column_a >= end) continue;
            double2 *entry = &gram[gram_elements(n_columns, first, column_a) + column_b - column_a];
            *entry = make_double2(entry->x + (products.x + other_y), entry->y + (products.y - other_x));
        }
    }
}

template <typename Real>
static __global__ void __launch_bounds__(THREADS, 2)
    normal_large_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ ps_normal_arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, me = threadIdx.x;
    const ps_cuda_frequency f = args.aliases.frequencies[args.list[blockIdx.x]];
    int n_columns = 2 * f.n_aliases, first = min(args.first_column, n_columns), end = min(args.end_column, n_columns);
    const sections at = lay_out<Real>(args.n_columns, args.first_column, args.end_column);
    ps_row_terms *terms = (ps_row_terms *)(ps_shared + at.terms);
    Real *stage = (Real *)(ps_shared + at.stage);
    double2 *gram = (double2 *)(ps_shared + at.gram);
    ps_reach *reaches = (ps_reach *)(ps_shared + at.reaches);
    uint8_t *slots = ps_shared + at.slots;

    for (int i = me; i < gram_elements(n_columns, first, end); i += THREADS) gram[i] = make_double2(0.0, 0.0);
    for (int b = 0; b < args.pixels.n_bands; b++) {
        const ps_cuda_band band = args.pixels.bands[b];
        for (int i = me; i < n_columns * PS_CUDA_BAND_ROWS; i += THREADS) {
            int column = i / PS_CUDA_BAND_ROWS;
            double u = args.aliases.u[f.first_alias + column / 2], w = args.aliases.v[f.first_alias + column / 2],
                   sigma = column & 1 ? -1.0 : 1.0;
            ps_form_row_terms(g, band.u + i % PS_CUDA_BAND_ROWS, u, w, sigma, &terms[i]);
            if (i % PS_CUDA_BAND_ROWS == 0) reaches[column] = ps_reach_of(g, band, (float)(sigma * u), (float)(sigma * w));
        }
        __syncthreads();
        double v = band.v + lane / PS_CUDA_BAND_ROWS;
        int64_t slot = (int64_t)band.first_tile * PS_CUDA_LANES + lane;
        for (int tile = 0; tile < band.n_tiles; tile++, slot += PS_CUDA_LANES, v += PS_CUDA_TILE_COLUMNS) {
            column_sets sets = meet_columns(reaches, n_columns, tile, lane);
            int n_staged = stage_columns(g, sets, terms + lane % PS_CUDA_BAND_ROWS, v, args.pixels.pixels[slot].chi,
                                         (Real)args.pixels.root[slot], stage, slots, lane, warp);
            __syncthreads();
            add_products(stage, slots, n_staged, n_columns, first, end, gram, lane, warp);
            __syncthreads();
        }
    }
    __syncthreads();
    for (int i = me; i < f.n_aliases * f.n_aliases; i += THREADS) {
        int a = i / f.n_aliases, b = i % f.n_aliases;
        if (a > b || 2 * a < first || 2 * a >= end) continue;
        ps_normal_store(args.normal + f.normal, f.n_aliases, args.has_amplitude, a, b, gram_entry(gram, n_columns, first, 2 * a, 2 * b),
                        gram_entry(gram, n_columns, first, 2 * a, 2 * b + 1), gram_entry(gram, n_columns, first, 2 * a + 1, 2 * b),
                        gram_entry(gram, n_columns, first, 2 * a + 1, 2 * b + 1));
    }
}

template <typename Real> static ps_code launch(const ps_cuda_system *system, const ps_normal_arguments *args, ps_error *error) {
    size_t bytes = lay_out<Real>(args->n_columns, args->first_column, args->end_column).bytes;
    auto kernel = normal_large_kernel<Real>;
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)));
    PS_CUDA_LAUNCH(error, kernel, (unsigned)args->n, THREADS, bytes, system->backend->compute, system->geometry, *args);
    return PS_OK;
}

template <typename Real> static ps_code launch_passes(const ps_cuda_system *system, ps_normal_arguments *args, ps_error *error) {
    int all = args->n_columns;
    for (int begin = 0, end; begin < all; begin = end) {
        end = all;
        while (end > begin + 2 && lay_out<Real>(all, begin, end).bytes > system->backend->shared_bytes_max) end -= 2;
        args->first_column = begin;
        args->end_column = end;
        PS_TRY(launch<Real>(system, args, error));
    }
    return PS_OK;
}

ps_code ps_normal_launch_large(const ps_cuda_system *system, ps_normal_arguments *args, ps_error *error) {
    return system->backend->fast_double ? launch_passes<double>(system, args, error) : launch_passes<float>(system, args, error);
}
