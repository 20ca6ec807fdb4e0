/* N = M^H W M of every frequency, physics section 5, for both methods from one evaluation of the transfer.
 *
 * A column is one alias and one side band: t1 or t2 of transfer.cuh, 2 n_aliases of them. Each is zero outside the overlap of two
 * apertures, a quarter of the disc on average, so a tile of 32 pixels meets 2 to 3 of 8 columns. A team (one warp up to 8
 * aliases, 8 warps beyond) takes a frequency and walks the tiles: which columns meet the tile, by arithmetic on its outline; evaluate
 * those, lanes over pixels; stage them in shared memory, packed; multiply groups of four packed columns (8 reals) with the tensor cores
 * over the 32 pixels; add the 4 x 4 complex result to the Gram of all columns in shared memory, in double. At the end
 * N follows from the Gram by T_amplitude = t1 + t2, T_phase = i (t1 - t2).
 *
 * Real = double: transfer, products and sums in double (mma.m8n8k4, twice the plain rate). Real = float: transfer in float; each product
 * split into tf32 parts, high times high, high times low, low times high (mma.m16n8k8), summed over one tile in float and then
 * in double. No sum's order depends on the launch: results are the same bit for bit.
 *
 * Bytes: about 30 per slot and frequency from the caches; N once. Bound by double arithmetic: some 45 operations a pixel and column.
 * Measured alternatives are in docs/performance.md. */
#include "kernels/cuda/operations.h"
#include "kernels/cuda/transfer.cuh"

enum { GROUP = 4, STAGE_ROW = 36, TEAM_LARGE = 8, WARPS_SMALL = 4 };

typedef struct {
    ps_cuda_pixels pixels;
    ps_cuda_aliases aliases;
    const int32_t *list; /* [n] frequencies */
    int64_t n;
    int n_columns;                /* of the largest frequency in the list */
    int first_column, end_column; /* rows of the Gram that this pass forms */
    bool has_amplitude;
    double2 *normal;
} arguments;

/* Shared memory of one team. */
typedef struct {
    size_t terms, stage, gram, places, slots, bytes;
} sections;

/* Elements of the Gram's upper triangle in rows [first, end) of n columns. */
__host__ __device__ static inline int gram_elements(int n, int first, int end) {
    return (end * n - end * (end - 1) / 2) - (first * n - first * (first - 1) / 2);
}

__host__ __device__ static inline sections lay_out(int n_columns, int first, int end, size_t real_bytes) {
    sections s;
    s.terms = 0;
    s.stage = s.terms + (size_t)n_columns * PS_CUDA_BAND_ROWS * sizeof(ps_row_terms<double>);
    s.gram = s.stage + (size_t)((n_columns + GROUP - 1) / GROUP) * GROUP * 2 * STAGE_ROW * real_bytes;
    s.places = s.gram + (size_t)gram_elements(n_columns, first, end) * sizeof(double2);
    s.slots = s.places + (size_t)n_columns * sizeof(float2);
    s.bytes = (s.slots + (size_t)n_columns + 15) / 16 * 16;
    return s;
}

template <int TEAM> __device__ inline void team_sync() {
    if (TEAM == 1)
        __syncwarp();
    else
        __syncthreads();
}

/* The product of two groups of staged columns over a tile, summed over its pixels: in even rows of the fragment (lane/4 even) entry
 * (lane/8, lane%4) of the 4 x 4 complex block. */
__device__ inline void multiply_groups(const double *stage, int group_a, int group_b, int n_reals, int lane, double *re, double *im) {
    int row_a = group_a * 8 + lane / 4, row_b = group_b * 8 + lane / 4;
    const double *a = stage + row_a * STAGE_ROW + lane % 4, *b = stage + row_b * STAGE_ROW + lane % 4;
    double even[2] = {0.0, 0.0}, odd[2] = {0.0, 0.0};
#pragma unroll
    for (int step = 0; step < 32; step += 4) {
        double x = row_a < n_reals ? a[step] : 0.0, y = row_b < n_reals ? b[step] : 0.0;
        ps_mma_f64(step & 4 ? odd : even, x, y);
    }
    even[0] += odd[0];
    even[1] += odd[1];
    *re = even[0] + __shfl_xor_sync(PS_FULL_WARP, even[1], 4);
    *im = even[1] - __shfl_xor_sync(PS_FULL_WARP, even[0], 4);
}

__device__ inline void multiply_groups(const float *stage, int group_a, int group_b, int n_reals, int lane, double *re, double *im) {
    int row_a = group_a * 8 + lane / 4, row_b = group_b * 8 + lane / 4;
    const float *a = stage + row_a * STAGE_ROW + lane % 4, *b = stage + row_b * STAGE_ROW + lane % 4;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int step = 0; step < 32; step += 8) {
        float x0 = row_a < n_reals ? a[step] : 0.0f, x1 = row_a < n_reals ? a[step + 4] : 0.0f;
        float y0 = row_b < n_reals ? b[step] : 0.0f, y1 = row_b < n_reals ? b[step + 4] : 0.0f;
        unsigned high_x0 = ps_tf32(x0), high_x1 = ps_tf32(x1), high_y0 = ps_tf32(y0), high_y1 = ps_tf32(y1);
        unsigned low_x0 = ps_tf32(x0 - __uint_as_float(high_x0)), low_x1 = ps_tf32(x1 - __uint_as_float(high_x1));
        unsigned low_y0 = ps_tf32(y0 - __uint_as_float(high_y0)), low_y1 = ps_tf32(y1 - __uint_as_float(high_y1));
        const unsigned both[4] = {high_x0, low_x0, high_x1, low_x1}, high[4] = {high_x0, 0u, high_x1, 0u};
        const unsigned high_y[2] = {high_y0, high_y1}, low_y[2] = {low_y0, low_y1};
        ps_mma_tf32(sum, both, high_y);
        ps_mma_tf32(sum, high, low_y);
    }
    double first = (double)sum[0] + (double)sum[2], second = (double)sum[1] + (double)sum[3];
    *re = first + __shfl_xor_sync(PS_FULL_WARP, second, 4);
    *im = second - __shfl_xor_sync(PS_FULL_WARP, first, 4);
}

/* Up to 128 columns as bits. */
typedef struct {
    unsigned touched[4], edge[4];
} column_sets;

__device__ inline column_sets meet_columns(const ps_cuda_geometry &g, const ps_cuda_tile &tile, const float2 *places, int n_columns,
                                           int lane) {
    column_sets sets;
#pragma unroll
    for (int word = 0; word < 4; word++) {
        sets.touched[word] = sets.edge[word] = 0u;
        if (word * 32 >= n_columns) continue;
        int column = word * 32 + lane;
        bool touches = false, on_edge = false;
        if (column < n_columns) ps_overlap(g, tile, places[column].x, places[column].y, &touches, &on_edge);
        sets.touched[word] = __ballot_sync(PS_FULL_WARP, touches);
        sets.edge[word] = __ballot_sync(PS_FULL_WARP, touches && on_edge);
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

/* N's entries of one pair of aliases a <= b, to packed lower triangles: element (i, j), i >= j, at i (i+1)/2 + j. */
__device__ inline void store_pair(double2 *normal, int n, bool is_complex, int a, int b, double2 g00, double2 g01, double2 g10,
                                  double2 g11) {
    double2 pp = make_double2(g00.x - g01.x - g10.x + g11.x, g00.y - g01.y - g10.y + g11.y);
    if (!is_complex) {
        normal[b * (b + 1) / 2 + a] = make_double2(pp.x, -pp.y);
        return;
    }
    double2 aa = make_double2(g00.x + g01.x + g10.x + g11.x, g00.y + g01.y + g10.y + g11.y);
    double2 ap = make_double2(-(g00.y - g01.y + g10.y - g11.y), g00.x - g01.x + g10.x - g11.x); /* i (...) */
    double2 pa = make_double2(g00.y + g01.y - g10.y - g11.y, -(g00.x + g01.x - g10.x - g11.x)); /* -i (...) */
    normal[b * (b + 1) / 2 + a] = make_double2(aa.x, -aa.y);
    int phase_a = n + a, phase_b = n + b;
    normal[phase_b * (phase_b + 1) / 2 + phase_a] = make_double2(pp.x, -pp.y);
    normal[phase_a * (phase_a + 1) / 2 + b] = pa;
    normal[phase_b * (phase_b + 1) / 2 + a] = make_double2(ap.x, -ap.y);
}

template <typename Real, int TEAM>
static __global__ void __launch_bounds__(TEAM == 1 ? 32 * WARPS_SMALL : 32 * TEAM, TEAM == 1 ? 5 : 2)
    normal_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    constexpr int THREADS = 32 * TEAM;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, me = TEAM == 1 ? lane : (int)threadIdx.x, my_warp = TEAM == 1 ? 0 : warp;
    int64_t index = TEAM == 1 ? (int64_t)blockIdx.x * WARPS_SMALL + warp : (int64_t)blockIdx.x;
    if (index >= args.n) return; /* whole teams only */
    const ps_cuda_frequency f = args.aliases.frequencies[args.list[index]];
    int n_columns = 2 * f.n_aliases, first = args.first_column < n_columns ? args.first_column : n_columns;
    int end = args.end_column < n_columns ? args.end_column : n_columns;
    sections at = lay_out(args.n_columns, args.first_column, args.end_column, sizeof(Real));
    unsigned char *shared = ps_shared + (TEAM == 1 ? warp * at.bytes : 0);
    ps_row_terms<Real> *terms = (ps_row_terms<Real> *)(shared + at.terms);
    Real *stage = (Real *)(shared + at.stage);
    double2 *gram = (double2 *)(shared + at.gram);
    float2 *places = (float2 *)(shared + at.places);
    uint8_t *slots = shared + at.slots;

    for (int i = me; i < gram_elements(n_columns, first, end); i += THREADS) gram[i] = make_double2(0.0, 0.0);
    for (int i = me; i < n_columns; i += THREADS) {
        double sigma = i & 1 ? -1.0 : 1.0;
        places[i] =
            make_float2((float)(sigma * args.aliases.u[f.first_alias + i / 2]), (float)(sigma * args.aliases.v[f.first_alias + i / 2]));
    }
    team_sync<TEAM>();
    for (int band = 0; band < args.pixels.n_bands; band++) {
        ps_cuda_band rows = args.pixels.bands[band];
        for (int i = me; i < n_columns * PS_CUDA_BAND_ROWS; i += THREADS) {
            int64_t alias = f.first_alias + i / (2 * PS_CUDA_BAND_ROWS);
            ps_form_row_terms(g, rows.u + i % PS_CUDA_BAND_ROWS, args.aliases.u[alias], args.aliases.v[alias],
                              i / PS_CUDA_BAND_ROWS & 1 ? -1.0 : 1.0, &terms[i]);
        }
        team_sync<TEAM>();
        for (int tile = rows.first_tile; tile < rows.first_tile + rows.n_tiles; tile++) {
            column_sets sets = meet_columns(g, args.pixels.tiles[tile], places, n_columns, lane);
            if ((sets.touched[0] | sets.touched[1] | sets.touched[2] | sets.touched[3]) == 0u) continue;
            int64_t slot = (int64_t)tile * PS_CUDA_LANES + lane;
            double chi = args.pixels.chi[slot], v = args.pixels.v[slot];
            Real root = (Real)args.pixels.root[slot];
            int row = args.pixels.row[slot], n_staged = 0;
#pragma unroll
            for (int word = 0; word < 4; word++) {
                for (unsigned left = sets.touched[word]; left; left &= left - 1, n_staged++) {
                    int bit = __ffs((int)left) - 1, column = word * 32 + bit;
                    if (TEAM > 1 && n_staged % TEAM != my_warp) continue;
                    const ps_row_terms<Real> &t = terms[column * PS_CUDA_BAND_ROWS + row];
                    Real re, im, y = fma(t.y1, (Real)v, t.y0);
                    ps_transfer(g, t, v - t.s0, y, chi, root, (sets.edge[word] >> bit & 1u) != 0u, &re, &im);
                    stage[(2 * n_staged) * STAGE_ROW + lane] = re;
                    stage[(2 * n_staged + 1) * STAGE_ROW + lane] = im;
                    if (lane == 0) slots[n_staged] = (uint8_t)column;
                }
            }
            team_sync<TEAM>();
            int n_groups = (n_staged + GROUP - 1) / GROUP, pair = 0;
            for (int a = 0; a < n_groups; a++) {
                for (int b = a; b < n_groups; b++, pair++) {
                    if (TEAM > 1 && pair % TEAM != my_warp) continue;
                    if (TEAM > 1 && (slots[a * GROUP] >= end || slots[min(a * GROUP + GROUP, n_staged) - 1] < first)) continue;
                    double re, im;
                    multiply_groups(stage, a, b, 2 * n_staged, lane, &re, &im);
                    int i = a * GROUP + lane / 8, j = b * GROUP + lane % 4;
                    if ((lane & 4) || i > j || j >= n_staged) continue;
                    int column_a = slots[i], column_b = slots[j];
                    if (TEAM > 1 && (column_a < first || column_a >= end)) continue;
                    double2 *entry = &gram[gram_elements(n_columns, first, column_a) + column_b - column_a];
                    *entry = make_double2(entry->x + re, entry->y + im);
                }
            }
            team_sync<TEAM>();
        }
        team_sync<TEAM>();
    }
    for (int i = me; i < f.n_aliases * f.n_aliases; i += THREADS) {
        int a = i / f.n_aliases, b = i % f.n_aliases;
        if (a > b || 2 * a < first || 2 * a >= end) continue;
        store_pair(args.normal + f.normal, f.n_aliases, args.has_amplitude, a, b, gram_entry(gram, n_columns, first, 2 * a, 2 * b),
                   gram_entry(gram, n_columns, first, 2 * a, 2 * b + 1), gram_entry(gram, n_columns, first, 2 * a + 1, 2 * b),
                   gram_entry(gram, n_columns, first, 2 * a + 1, 2 * b + 1));
    }
}

template <typename Real, int TEAM> static ps_code launch(const ps_cuda_system *system, const arguments *args, ps_error *error) {
    int teams = TEAM == 1 ? WARPS_SMALL : 1;
    size_t bytes = lay_out(args->n_columns, args->first_column, args->end_column, sizeof(Real)).bytes * (size_t)teams;
    auto kernel = normal_kernel<Real, TEAM>;
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)));
    PS_CUDA_LAUNCH(error, kernel, (unsigned)ps_cuda_blocks(args->n, teams), 32 * (TEAM == 1 ? WARPS_SMALL : TEAM), bytes,
                   system->backend->compute, system->geometry, *args);
    return PS_OK;
}

template <typename Real> static ps_code launch_passes(const ps_cuda_system *system, arguments *args, ps_error *error) {
    if (args->n_columns <= 2 * PS_CUDA_SMALL) {
        args->first_column = 0;
        args->end_column = args->n_columns;
        return launch<Real, 1>(system, args, error);
    }
    int begin = 0, all = args->n_columns;
    while (begin < all) {
        int end = all;
        while (end > begin + 2 && lay_out(all, begin, end, sizeof(Real)).bytes > system->backend->shared_bytes_max) end -= 2;
        args->first_column = begin;
        args->end_column = end;
        PS_TRY((launch<Real, TEAM_LARGE>(system, args, error)));
        begin = end;
    }
    return PS_OK;
}

ps_code ps_cuda_normal(ps_cuda_system *system, ps_error *error) {
    for (int i = PS_CUDA_CLASSES - 1; i >= 0; i--) {
        const ps_cuda_class *c = &system->classes[i];
        if (c->n == 0) continue;
        arguments args = {};
        args.pixels = ps_cuda_system_pixels(system);
        args.aliases = ps_cuda_system_aliases(system);
        args.list = system->d_by_count + c->first;
        args.n = c->n;
        args.n_columns = 2 * c->n_aliases;
        args.has_amplitude = system->methods & PS_METHOD_COMPLEX;
        args.normal = system->d_normal;
        PS_TRY(system->backend->fast_double ? launch_passes<double>(system, &args, error) : launch_passes<float>(system, &args, error));
    }
    return PS_OK;
}
