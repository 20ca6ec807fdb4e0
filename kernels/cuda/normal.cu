/* N = M^H W M of every frequency, physics section 5, for both methods from one evaluation of the transfer.
 *
 * A column is one alias and one side band: t1 or t2 of transfer.cuh, 2 n_aliases of them. Each is zero outside the overlap of two
 * apertures, so a tile of 32 pixels meets 2 or 3 of up to 16 columns. A warp (up to 8 aliases; 8 warps beyond, normal_large.cu) takes a
 * frequency, lanes over a tile's pixels, and walks the bands in runs: neighbouring tiles that the same columns meet. conj(t_i) t_j does
 * not change when all columns of a pixel are turned by one phase. So the first column of a run counts as real, of the others only the
 * phase relative to it is evaluated, and |t_i|^2 needs no phase: n columns cost n-1 polynomials, cosines and sines. Products stay in
 * registers over a run of up to four columns; then they are added over the lanes and go to the Gram of all columns in shared memory.
 * More than four columns are walked by all pairs of twos: that takes an alias lattice closer than 1.4 disc radii, where most frequencies
 * have more than 8 aliases. At the end N follows by T_amplitude = t1 + t2, T_phase = i (t1 - t2).
 *
 * Real = double: everything in double. Real = float: transfer and a run's products in float, sums over lanes and runs in double. No sum's
 * order depends on the launch: results are the same bit for bit.
 *
 * Bytes: 8 per slot and frequency from the caches; N once. Bound by instruction issue, then by double arithmetic: a tile of two
 * columns takes some 90 instructions, 58 of them double, and a run some 150 more. Measured alternatives are in docs/performance.md. */
#include <limits.h>

#include "kernels/cuda/normal_kernels.cuh"
#include "kernels/cuda/normal_terms.cuh"

enum { WARPS = 4, MOST = 4 }; /* MOST: columns whose products fit into registers */

/* Bytes of shared memory: the block's directions, then for each warp the terms, the phases of a run and the Gram. */
typedef struct {
    size_t phases, gram, bytes;
} sections;

template <typename Real> __host__ __device__ static inline size_t table_bytes() {
    return sizeof(Real) == sizeof(double) ? PS_NORMAL_DIRECTIONS * sizeof(double2) : 0;
}
__host__ __device__ static inline sections lay_out(int n_columns) {
    sections s;
    s.phases = (size_t)n_columns * PS_CUDA_BAND_ROWS * sizeof(ps_normal_terms);
    s.gram = s.phases + (size_t)(MOST - 1) * PS_CUDA_BAND_ROWS * PS_NORMAL_POWERS * sizeof(double);
    s.bytes = s.gram + (size_t)n_columns * (n_columns + 1) / 2 * sizeof(double2);
    return s;
}

/* Where a lane is: its rows in shared memory, its reach as column number `lane`, and what tile 0 of the band would give it. */
typedef struct {
    const double2 *table;
    const ps_normal_terms *terms; /* [column][PS_CUDA_BAND_ROWS] */
    double *phases;               /* [MOST - 1][PS_CUDA_BAND_ROWS][PS_NORMAL_POWERS] */
    double2 *gram;                /* packed upper triangle: a <= b at b (b+1)/2 + a */
    int lane;
    ps_reach reach;
    const double *root;
    double v;
} lane_place;

/* Tiles [first, end) of a band and the columns that meet all of them, ascending. known: bit 0 (1): products of the first (last) two
 * columns among themselves are formed by another pass. */
template <int N> struct column_run {
    int first, end, column[N];
    unsigned known;
};

template <int N> __device__ inline int run_column(const column_run<N> &run, int i) {
    int column = run.column[0];
#pragma unroll
    for (int k = 1; k < N; k++) column = i == k ? run.column[k] : column;
    return column;
}

/* Phases of columns 1 to N-1 relative to column 0. */
template <int N> __device__ inline void form_phases(const lane_place &at, const column_run<N> &run) {
    constexpr int row = PS_CUDA_BAND_ROWS * PS_NORMAL_POWERS;
    if (N > 1 && at.lane < row) {
        const double *source = at.terms[at.lane / PS_NORMAL_POWERS].c + at.lane % PS_NORMAL_POWERS;
        constexpr int stride = PS_CUDA_BAND_ROWS * sizeof(ps_normal_terms) / sizeof(double);
        double reference = source[run.column[0] * stride];
#pragma unroll
        for (int i = 1; i < N; i++) at.phases[(i - 1) * row + at.lane] = source[run.column[i] * stride] - reference;
    }
    __syncwarp();
}

/* |t| of the columns at this lane's pixel. rim: columns whose aperture may be less than 1. */
template <typename Real, int N, bool THICK>
__device__ inline void form_sizes(const ps_cuda_geometry &g, const lane_place &at, const column_run<N> &run, double v, Real root,
                                  unsigned rim, Real (&size)[N]) {
    const ps_normal_terms *terms = at.terms + at.lane % PS_CUDA_BAND_ROWS;
#pragma unroll
    for (int i = 0; i < N; i++) {
        size[i] = root;
        if (THICK) size[i] *= ps_normal_thickness(terms[run.column[i] * PS_CUDA_BAND_ROWS], v, (Real)0);
    }
    if (rim == 0u) return;
#pragma unroll
    for (int i = 0; i < N; i++)
        if (rim >> run.column[i] & 1u) size[i] *= ps_normal_aperture(g, terms[run.column[i] * PS_CUDA_BAND_ROWS], v, (Real)0);
}

/* A run's sums: sum[j j] gathers |t_j|^2, sum[j j + 2 i + 1] and the next conj(t_i) t_j, i < j. */
template <typename Real, int N>
__device__ inline void add_products(const lane_place &at, double v, const Real (&size)[N], Real (&sum)[N * N]) {
    Real re[N], im[N];
    sum[0] = fma(size[0], size[0], sum[0]);
#pragma unroll
    for (int j = 1; j < N; j++) {
        const double *row = at.phases + ((j - 1) * PS_CUDA_BAND_ROWS + at.lane % PS_CUDA_BAND_ROWS) * PS_NORMAL_POWERS;
        Real cosine, sine;
        ps_normal_turn(at.table, ps_normal_phase((const double2 *)row, v), &cosine, &sine);
        re[j] = size[j] * cosine;
        im[j] = size[j] * sine;
        Real *of_j = sum + j * j;
        of_j[0] = fma(size[j], size[j], of_j[0]);
        of_j[1] = fma(size[0], re[j], of_j[1]);
        of_j[2] = fma(size[0], im[j], of_j[2]);
#pragma unroll
        for (int i = 1; i < j; i++) {
            of_j[2 * i + 1] = fma(re[i], re[j], fma(im[i], im[j], of_j[2 * i + 1]));
            of_j[2 * i + 2] = fma(re[i], im[j], fma(-im[i], re[j], of_j[2 * i + 2]));
        }
    }
}

/* Sums COUNT values, a power of two, over the lanes of a warp: lane l gets value l / (32 / COUNT). */
template <int COUNT> __device__ inline double sum_over_lanes(double (&value)[COUNT], int lane) {
    int step = PS_CUDA_LANES / 2;
#pragma unroll
    for (int half = COUNT / 2; half >= 1; half /= 2, step /= 2) {
        bool upper = lane & step;
#pragma unroll
        for (int i = 0; i < half; i++) {
            double keep = upper ? value[i + half] : value[i], give = upper ? value[i] : value[i + half];
            value[i] = keep + __shfl_xor_sync(PS_FULL_WARP, give, step);
        }
    }
#pragma unroll
    for (; step >= 1; step /= 2) value[0] += __shfl_xor_sync(PS_FULL_WARP, value[0], step);
    return value[0];
}

/* Adds COUNT of a run's sums, from number `from` on, to the Gram. */
template <typename Real, int N, int COUNT>
__device__ inline void add_sums(const lane_place &at, const column_run<N> &run, const Real (&sum)[N * N], int from) {
    double value[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) value[i] = (double)sum[from + i];
    double total = sum_over_lanes<COUNT>(value, at.lane);
    int number = from + at.lane / (PS_CUDA_LANES / COUNT);
    int j = (number >= 1) + (number >= 4) + (number >= 9), inner = number - j * j;
    int i = inner ? (inner - 1) / 2 : j, part = inner ? (inner - 1) % 2 : 0;
    if (at.lane % (PS_CUDA_LANES / COUNT) || (i / 2 == j / 2 && (run.known >> j / 2 & 1u))) return;
    int a = run_column(run, i), b = run_column(run, j);
    double *place = (double *)&at.gram[b * (b + 1) / 2 + a] + part;
    *place += total;
}

template <typename Real, int N, bool THICK>
__device__ inline void add_run(const ps_cuda_geometry &g, const lane_place &at, int first, int end, unsigned set, unsigned known) {
    column_run<N> run = {first, end, {}, known};
#pragma unroll
    for (int i = 0; i < N; i++, set &= set - 1) run.column[i] = __ffs((int)set) - 1;
    Real sum[N * N] = {}, size[N];
    const double *root = at.root + run.first * PS_CUDA_LANES;
    double next = *root, v = at.v + run.first * PS_CUDA_TILE_COLUMNS;
    form_phases<N>(at, run);
#pragma unroll 1
    for (int tile = run.first; tile < run.end; tile++, v += PS_CUDA_TILE_COLUMNS) {
        unsigned rim = __ballot_sync(PS_FULL_WARP, tile < at.reach.inner_first || tile > at.reach.inner_last);
        Real value = (Real)next;
        root += PS_CUDA_LANES;
        if (tile + 1 < run.end) next = *root;
        form_sizes<Real, N, THICK>(g, at, run, v, value, rim, size);
        add_products<Real, N>(at, v, size, sum);
    }
    constexpr int most = N == 1 ? 1 : N == 2 ? 4 : 8, rest = N == 4 ? 8 : 1;
    add_sums<Real, N, most>(at, run, sum, 0);
    if (most < N * N) add_sums<Real, N, rest>(at, run, sum, N * N - rest);
    __syncwarp();
}

template <typename Real, bool THICK>
__device__ inline void add_columns(const ps_cuda_geometry &g, const lane_place &at, int first, int end, unsigned set, unsigned known) {
    switch (__popc(set)) {
    case 1: add_run<Real, 1, THICK>(g, at, first, end, set, known); break;
    case 2: add_run<Real, 2, THICK>(g, at, first, end, set, known); break;
    case 3: add_run<Real, 3, THICK>(g, at, first, end, set, known); break;
    default: add_run<Real, 4, THICK>(g, at, first, end, set, known);
    }
}

/* Any number of columns: up to four together, more by all pairs of twos. */
__device__ inline unsigned lowest_two(unsigned set) {
    unsigned rest = set & (set - 1);
    return set & ~(rest & (rest - 1));
}
template <typename Real, bool THICK>
__device__ inline void add_set(const ps_cuda_geometry &g, const lane_place &at, int first, int end, unsigned set) {
    unsigned a = __popc(set) > MOST ? lowest_two(set) : set, after = set & ~a, left = after;
    do {
        unsigned b = lowest_two(left), known = (left == after ? 0u : 1u) | (b == after ? 0u : 2u);
        add_columns<Real, THICK>(g, at, first, end, a | b, known);
        left &= ~b;
        if (left == 0u) {
            a = lowest_two(after);
            after &= ~a;
            left = after;
        }
    } while (left);
}

/* Terms of the columns that reach a band. */
__device__ inline void form_band(const ps_cuda_geometry &g, const ps_cuda_band &band, const ps_cuda_aliases &aliases, int64_t first_alias,
                                 unsigned reached, ps_normal_terms *terms, int lane) {
    int row = lane % PS_CUDA_BAND_ROWS, n = __popc(reached);
    for (int i = lane / PS_CUDA_BAND_ROWS; i < n; i += PS_CUDA_LANES / PS_CUDA_BAND_ROWS) {
        unsigned left = reached;
        for (int skip = i; skip > 0; skip--) left &= left - 1;
        int column = __ffs((int)left) - 1;
        int64_t alias = first_alias + column / 2;
        ps_normal_form_terms(g, band.u + row, aliases.u[alias], aliases.v[alias], column & 1 ? -1.0 : 1.0,
                             &terms[column * PS_CUDA_BAND_ROWS + row]);
    }
    __syncwarp();
}

/* The first tile after `tile` that other columns meet, at most `end`. */
__device__ inline int run_end(const ps_reach &reach, int tile, int end) {
    int next = tile < reach.first ? reach.first : tile <= reach.last ? reach.last + 1 : end;
    return __reduce_min_sync(PS_FULL_WARP, reach.first <= reach.last ? min(next, end) : end);
}

template <typename Real, bool THICK>
__device__ inline void add_band(const ps_cuda_geometry &g, const ps_normal_arguments &args, const ps_cuda_band &band, int64_t first_alias,
                                float2 place, lane_place *at) {
    ps_reach reach = {1, 0, 1, 0};
    if (at->lane < args.n_columns) reach = ps_reach_of(g, band, place.x, place.y);
    bool reaches = reach.first <= reach.last;
    unsigned reached = __ballot_sync(PS_FULL_WARP, reaches);
    if (reached == 0u) return;
    int tile = __reduce_min_sync(PS_FULL_WARP, reaches ? reach.first : INT_MAX);
    int end = __reduce_max_sync(PS_FULL_WARP, reaches ? reach.last + 1 : 0);
    form_band(g, band, args.aliases, first_alias, reached, (ps_normal_terms *)at->terms, at->lane);
    at->reach = reach;
    at->root = args.pixels.root + (int64_t)band.first_tile * PS_CUDA_LANES + at->lane;
    at->v = band.v + at->lane / PS_CUDA_BAND_ROWS;
#pragma unroll 1
    for (int next; tile < end; tile = next) {
        unsigned set = __ballot_sync(PS_FULL_WARP, tile >= reach.first && tile <= reach.last);
        next = run_end(reach, tile, end);
        if (set) add_set<Real, THICK>(g, *at, tile, next, set);
    }
    __syncwarp();
}

__device__ inline double2 gram_entry(const double2 *gram, int a, int b) {
    double2 entry = a < b ? gram[b * (b + 1) / 2 + a] : gram[a * (a + 1) / 2 + b];
    if (a > b) entry.y = -entry.y;
    return entry;
}

__device__ inline void store_normal(const ps_normal_arguments &args, const ps_cuda_frequency &f, const double2 *gram, int lane) {
    for (int i = lane; i < f.n_aliases * f.n_aliases; i += PS_CUDA_LANES) {
        int a = i / f.n_aliases, b = i % f.n_aliases;
        if (a <= b)
            ps_normal_store(args.normal + f.normal, f.n_aliases, args.has_amplitude, a, b, gram_entry(gram, 2 * a, 2 * b),
                            gram_entry(gram, 2 * a, 2 * b + 1), gram_entry(gram, 2 * a + 1, 2 * b), gram_entry(gram, 2 * a + 1, 2 * b + 1));
    }
}

template <typename Real, bool THICK>
static __global__ void __launch_bounds__(PS_CUDA_LANES *WARPS, 4)
    normal_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ ps_normal_arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    if (sizeof(Real) == sizeof(double)) ps_normal_fill_directions((double2 *)ps_shared);
    int warp = threadIdx.x / PS_CUDA_LANES;
    int64_t index = (int64_t)blockIdx.x * WARPS + warp;
    if (index >= args.n) return; /* whole warps only */
    const ps_cuda_frequency f = args.aliases.frequencies[args.list[index]];
    const sections sizes = lay_out(args.n_columns);
    unsigned char *shared = ps_shared + table_bytes<Real>() + warp * sizes.bytes;
    lane_place at;
    at.lane = threadIdx.x % PS_CUDA_LANES;
    at.table = (const double2 *)ps_shared;
    at.terms = (const ps_normal_terms *)shared;
    at.phases = (double *)(shared + sizes.phases);
    at.gram = (double2 *)(shared + sizes.gram);

    for (int i = at.lane; i < args.n_columns * (args.n_columns + 1) / 2; i += PS_CUDA_LANES) at.gram[i] = make_double2(0.0, 0.0);
    float2 place = make_float2(0.0f, 0.0f);
    if (at.lane < args.n_columns) {
        double sigma = at.lane & 1 ? -1.0 : 1.0;
        place.x = (float)(sigma * args.aliases.u[f.first_alias + at.lane / 2]);
        place.y = (float)(sigma * args.aliases.v[f.first_alias + at.lane / 2]);
    }
    for (int b = 0; b < args.pixels.n_bands; b++) add_band<Real, THICK>(g, args, args.pixels.bands[b], f.first_alias, place, &at);
    __syncwarp();
    store_normal(args, f, at.gram, at.lane);
}

template <typename Real>
static ps_code launch(const ps_cuda_system *system, const ps_normal_arguments *args, cudaStream_t stream, ps_error *error) {
    size_t bytes = table_bytes<Real>() + lay_out(args->n_columns).bytes * WARPS;
    auto kernel = system->geometry.is_thick ? normal_kernel<Real, true> : normal_kernel<Real, false>;
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)));
    PS_CUDA_LAUNCH(error, kernel, (unsigned)ps_cuda_blocks(args->n, WARPS), PS_CUDA_LANES * WARPS, bytes, stream, system->geometry, *args);
    return PS_OK;
}

/* Classes go to two streams in turn, so that one's last blocks do not leave the card idle. */
ps_code ps_cuda_normal(ps_cuda_system *system, ps_error *error) {
    const ps_cuda_backend *backend = system->backend;
    cudaStream_t stream = backend->compute;
    PS_TRY(ps_cuda_stream_join(backend->side, backend->compute, backend->compute_done, error));
    for (int i = PS_CUDA_CLASSES - 1; i >= 0; i--) {
        const ps_cuda_class *c = &system->classes[i];
        if (c->n == 0) continue;
        ps_normal_arguments args = {};
        args.pixels = ps_cuda_system_pixels(system);
        args.aliases = ps_cuda_system_aliases(system);
        args.list = system->d_by_count + c->first;
        args.n = c->n;
        args.n_columns = 2 * c->n_aliases;
        args.has_amplitude = system->methods & PS_METHOD_COMPLEX;
        args.normal = system->d_normal;
        if (i == PS_CUDA_SMALL)
            PS_TRY(ps_normal_launch_large(system, &args, error));
        else if (backend->fast_double)
            PS_TRY(launch<double>(system, &args, stream, error));
        else
            PS_TRY(launch<float>(system, &args, stream, error));
        stream = stream == backend->compute ? backend->side : backend->compute;
    }
    return ps_cuda_stream_join(backend->compute, backend->side, backend->side_done, error);
}
