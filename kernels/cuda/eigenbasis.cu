/* Eigenvalues and eigenvectors of prior^-1/2 N prior^-1/2, the phase method's, of every frequency: physics section 5.
 *
 * Jacobi's rotations in the order of a tournament: a round pairs every index with another, so a round's rotations touch different
 * rows and columns and run side by side. A team of 8 threads takes a frequency of up to 8 aliases, a block of 128 a larger one; matrix and
 * vectors stay in shared memory (beyond 54 aliases in scratch). Once all off-diagonal entries are below 4e-15 of the trace it ends; 6 to 8
 * sweeps. Bytes: N's phase block once, vectors and values once. Bound by latency: three barriers a round. */
#include "kernels/cuda/operations.h"
#include "kernels/cuda/transfer.cuh"

enum { SMALL_TEAM = 8, LARGE_TEAM = 128, SMALL_TEAMS = 8, MOST_BLOCKS = 528, MOST_SWEEPS = 40 };
static const size_t most_shared = (size_t)96 << 10;

typedef struct {
    const ps_cuda_frequency *frequencies;
    const int32_t *list; /* [n] frequencies */
    int64_t n;
    int n_aliases; /* of all of them (small teams), or the largest */
    bool is_complex;
    const double2 *normal;
    const double *prior;
    double2 *basis, *scratch; /* scratch: per block, where the matrices do not fit shared memory; else NULL */
    double *eigenvalues;
    int32_t *failed;
} arguments;

typedef struct {
    double cosine, re, im;
} rotation; /* sine times the phase of the annihilated entry */

static size_t matrix_bytes(int n) {
    return 2 * (size_t)n * n * sizeof(double2);
}
static size_t rotation_bytes(int n) {
    return ((size_t)(n + 1) / 2 * sizeof(rotation) + 15) / 16 * 16;
}
static bool needs_scratch(int n) {
    return matrix_bytes(n) + rotation_bytes(n) > most_shared;
}

__device__ inline double2 minus_product(double2 a, double s, double2 f, double2 b) { /* s a - f b */
    return make_double2(fma(s, a.x, fma(-f.x, b.x, f.y * b.y)), fma(s, a.y, fma(-f.x, b.y, -f.y * b.x)));
}
__device__ inline double2 plus_product(double2 a, double s, double2 f, double2 b) { /* s a + f b */
    return make_double2(fma(s, a.x, fma(f.x, b.x, -f.y * b.y)), fma(s, a.y, fma(f.x, b.y, f.y * b.x)));
}

/* The two indices of pair i in a round of the tournament among m (even) players; an index of n or more sits out. */
__device__ inline void tournament_pair(int m, int round, int i, int *p, int *q) {
    *p = i == 0 ? m - 1 : (round + i) % (m - 1);
    *q = i == 0 ? round : (round - i + m - 1) % (m - 1);
}

/* The rotation that annihilates entry (p, q); false when the entry is negligible. */
__device__ inline bool choose_rotation(const double2 *matrix, int n, int p, int q, double threshold, rotation *r) {
    r->cosine = 1.0;
    r->re = r->im = 0.0;
    if (p >= n || q >= n) return false;
    double2 entry = matrix[p * n + q];
    double size = sqrt(fma(entry.x, entry.x, entry.y * entry.y));
    if (!(size > threshold)) return false;
    double tau = (matrix[q * n + q].x - matrix[p * n + p].x) / (2.0 * size);
    double tangent = (tau >= 0.0 ? 1.0 : -1.0) / (fabs(tau) + sqrt(fma(tau, tau, 1.0)));
    r->cosine = 1.0 / sqrt(fma(tangent, tangent, 1.0));
    double sine = tangent * r->cosine;
    r->re = sine * (entry.x / size);
    r->im = sine * (entry.y / size);
    return true;
}

/* Columns p and q of a matrix, one row of it. */
__device__ inline void rotate_columns(double2 *row, int p, int q, const rotation &r) {
    double2 a = row[p], b = row[q];
    row[p] = minus_product(a, r.cosine, make_double2(r.re, -r.im), b);
    row[q] = plus_product(b, r.cosine, make_double2(r.re, r.im), a);
}
__device__ inline void rotate_rows(double2 *matrix, int n, int p, int q, int column, const rotation &r) {
    double2 a = matrix[p * n + column], b = matrix[q * n + column];
    matrix[p * n + column] = minus_product(a, r.cosine, make_double2(r.re, r.im), b);
    matrix[q * n + column] = plus_product(b, r.cosine, make_double2(r.re, -r.im), a);
}

template <int TEAM> __device__ inline void team_sync() {
    if (TEAM <= 32)
        __syncwarp();
    else
        __syncthreads();
}
template <int TEAM> __device__ inline bool team_any(bool mine) {
    return TEAM <= 32 ? __any_sync(PS_FULL_WARP, mine) : __syncthreads_or(mine);
}

/* One sweep; whether any rotation was needed (in a warp of several teams: in any of them). */
template <int TEAM> __device__ inline bool sweep(double2 *matrix, double2 *vectors, rotation *rotations, int n, double threshold, int me) {
    int m = n + n % 2, pairs = m / 2;
    bool rotated = false;
    for (int round = 0; round < m - 1; round++) {
        for (int i = me; i < pairs; i += TEAM) {
            int p, q;
            tournament_pair(m, round, i, &p, &q);
            rotated |= choose_rotation(matrix, n, p, q, threshold, &rotations[i]);
        }
        team_sync<TEAM>();
        for (int i = me; i < pairs * n; i += TEAM) {
            int p, q;
            tournament_pair(m, round, i / n, &p, &q);
            if (p >= n || q >= n) continue;
            rotate_columns(matrix + i % n * n, p, q, rotations[i / n]);
            rotate_columns(vectors + i % n * n, p, q, rotations[i / n]);
        }
        team_sync<TEAM>();
        for (int i = me; i < pairs * n; i += TEAM) {
            int p, q;
            tournament_pair(m, round, i / n, &p, &q);
            if (p < n && q < n) rotate_rows(matrix, n, p, q, i % n, rotations[i / n]);
        }
        team_sync<TEAM>();
    }
    return team_any<TEAM>(rotated);
}

/* One frequency. matrix, vectors: [n, n]; all teams of a warp come here together, with the same n. */
template <int TEAM>
__device__ inline void diagonalise(const arguments &args, const ps_cuda_frequency &f, double2 *matrix, double2 *vectors,
                                   rotation *rotations, int n, int me, bool exists) {
    const double *prior = args.prior + f.first_alias;
    for (int i = me; i < n * n; i += TEAM) {
        int a = i / n, b = i % n, first = args.is_complex ? n : 0, row = first + (a > b ? a : b), column = first + (a > b ? b : a);
        double2 entry = exists ? args.normal[f.normal + (int64_t)row * (row + 1) / 2 + column] : make_double2(a == b, 0.0);
        double scale = exists ? 1.0 / sqrt(prior[a] * prior[b]) : 1.0;
        matrix[i] = make_double2(scale * entry.x, a == b ? 0.0 : (a > b ? scale : -scale) * entry.y);
        vectors[i] = make_double2(a == b ? 1.0 : 0.0, 0.0);
    }
    team_sync<TEAM>();
    double trace = 0.0;
    for (int a = 0; a < n; a++) trace += fabs(matrix[a * n + a].x);
    int sweeps = 0;
    while (sweep<TEAM>(matrix, vectors, rotations, n, 4e-15 * trace, me) && sweeps < MOST_SWEEPS) sweeps++;
    for (int i = me; exists && i < n * n; i += TEAM) args.basis[f.basis + i] = vectors[i];
    for (int a = me; exists && a < n; a += TEAM) args.eigenvalues[f.first_alias + a] = matrix[a * n + a].x;
    if (me == 0 && exists && (sweeps == MOST_SWEEPS || !isfinite(trace))) *args.failed = 1;
    team_sync<TEAM>();
}

static __global__ void __launch_bounds__(SMALL_TEAM *SMALL_TEAMS, 12) small_kernel(const __grid_constant__ arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    int team = threadIdx.x / SMALL_TEAM, me = threadIdx.x % SMALL_TEAM, n = args.n_aliases;
    int64_t index = (int64_t)blockIdx.x * SMALL_TEAMS + team;
    bool exists = index < args.n;
    double2 *matrix = (double2 *)ps_shared + (size_t)team * 2 * n * n;
    rotation *rotations = (rotation *)((double2 *)ps_shared + (size_t)SMALL_TEAMS * 2 * n * n) + team * (PS_CUDA_SMALL / 2);
    diagonalise<SMALL_TEAM>(args, args.frequencies[args.list[exists ? index : 0]], matrix, matrix + n * n, rotations, n, me, exists);
}

static __global__ void __launch_bounds__(LARGE_TEAM, 4) large_kernel(const __grid_constant__ arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    double2 *in_scratch = args.scratch ? args.scratch + (size_t)blockIdx.x * 2 * args.n_aliases * args.n_aliases : NULL;
    for (int64_t index = blockIdx.x; index < args.n; index += gridDim.x) {
        const ps_cuda_frequency f = args.frequencies[args.list[index]];
        int n = f.n_aliases;
        rotation *rotations = (rotation *)ps_shared;
        double2 *in_shared = (double2 *)(ps_shared + ((size_t)(args.n_aliases + 1) / 2 * sizeof(rotation) + 15) / 16 * 16);
        if (in_scratch)
            diagonalise<LARGE_TEAM>(args, f, in_scratch, in_scratch + n * n, rotations, n, threadIdx.x, true);
        else
            diagonalise<LARGE_TEAM>(args, f, in_shared, in_shared + n * n, rotations, n, threadIdx.x, true);
    }
}

size_t ps_cuda_eigenbasis_scratch(const ps_cuda_system *system) {
    int n = system->classes[PS_CUDA_SMALL].n_aliases;
    return system->methods & PS_METHOD_PHASE && needs_scratch(n) ? matrix_bytes(n) * MOST_BLOCKS : 0;
}

static ps_code launch_small(const ps_cuda_system *system, const arguments *args, ps_error *error) {
    size_t bytes = SMALL_TEAMS * (matrix_bytes(args->n_aliases) + PS_CUDA_SMALL / 2 * sizeof(rotation));
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)small_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)));
    PS_CUDA_LAUNCH(error, small_kernel, (unsigned)ps_cuda_blocks(args->n, SMALL_TEAMS), SMALL_TEAM * SMALL_TEAMS, bytes,
                   system->backend->compute, *args);
    return PS_OK;
}

static ps_code launch_large(ps_cuda_system *system, arguments *args, ps_error *error) {
    size_t bytes = rotation_bytes(args->n_aliases);
    if (needs_scratch(args->n_aliases)) {
        int64_t tiles;
        PS_TRY(ps_cuda_workspace_ensure(system, 1, &tiles, error));
        ps_cuda_arena arena = ps_cuda_scratch(system);
        args->scratch = ps_cuda_take<double2>(&arena, (int64_t)(matrix_bytes(args->n_aliases) / sizeof(double2)) * MOST_BLOCKS);
    } else {
        bytes += matrix_bytes(args->n_aliases);
    }
    int64_t blocks = args->n < MOST_BLOCKS ? args->n : (int64_t)MOST_BLOCKS;
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)large_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)));
    PS_CUDA_LAUNCH(error, large_kernel, (unsigned)blocks, LARGE_TEAM, bytes, system->backend->compute, *args);
    return PS_OK;
}

ps_code ps_cuda_eigenbasis(ps_cuda_system *system, ps_error *error) {
    int32_t failed = 0;
    arguments args = {};
    args.frequencies = system->d_frequencies;
    args.is_complex = system->methods & PS_METHOD_COMPLEX;
    args.normal = system->d_normal;
    args.prior = system->d_prior_phase;
    args.basis = system->d_basis;
    args.eigenvalues = system->d_eigenvalues;
    args.failed = system->d_flag;
    PS_TRY(PS_CUDA(error, cudaMemsetAsync(system->d_flag, 0, sizeof failed, system->backend->compute)));
    for (int i = 0; i < PS_CUDA_CLASSES; i++) {
        args.list = system->d_by_count + system->classes[i].first;
        args.n = system->classes[i].n;
        args.n_aliases = system->classes[i].n_aliases;
        if (args.n > 0) PS_TRY(i < PS_CUDA_SMALL ? launch_small(system, &args, error) : launch_large(system, &args, error));
    }
    PS_TRY(PS_CUDA(error, cudaMemcpyAsync(&failed, system->d_flag, sizeof failed, cudaMemcpyDeviceToHost, system->backend->compute)));
    PS_TRY(PS_CUDA(error, cudaStreamSynchronize(system->backend->compute)));
    if (failed) return PS_FAIL(error, PS_E_NUMERIC, "no eigenbasis for some scan frequency after %d sweeps", MOST_SWEEPS);
    return PS_OK;
}
