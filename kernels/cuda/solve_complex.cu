/* The complex method's answers at one pair of strengths, physics section 5: x = (N + D)^-1 b by Cholesky's factorisation, and
 *     residual = data norm - Re(x^H b) - x^H D x,  effective degrees of freedom = dim - sum of D_i (N + D)^-1_ii.
 *
 * A team of 8 threads takes a frequency of up to 4 aliases (8 unknowns), 16 up to 8, a block of 128 a larger one. The packed lower
 * triangle lives in shared memory (beyond 52 aliases in scratch) and is factored in place, rows over threads; the reciprocal of the
 * diagonal is kept in its place. Only when the effective degrees of freedom is wanted is the factor inverted, in place too.
 * Bytes: N once, b and x once. Bound by latency: two barriers an unknown. */
#include "kernels/cuda/operations.h"
#include "kernels/cuda/sum.cuh"
#include "kernels/cuda/transfer.cuh"

enum { THREADS = 128, LARGE_TEAM = 128, MOST_BLOCKS = 528 };
static const size_t most_shared = (size_t)96 << 10;

typedef struct {
    const ps_cuda_frequency *frequencies;
    const int32_t *list; /* [n] frequencies */
    int64_t n;
    int n_aliases; /* of all of them (small teams), or the largest */
    const double2 *normal, *right_amplitude, *right_phase;
    const double *prior, *data_norm;
    double mu_amplitude, mu_phase; /* strength times scale */
    double2 *x_amplitude, *x_phase;
    double *residual, *effective_dof;
    double2 *scratch;
    int32_t *failed;
} arguments;

/* One team's memory: packed [dim (dim+1)/2], vector and column [dim], diagonal [dim]. */
__host__ __device__ static inline size_t vector_bytes(int dim) {
    return (size_t)dim * (2 * sizeof(double2) + sizeof(double));
}
__host__ __device__ static inline size_t packed_elements(int dim) {
    return (size_t)dim * (dim + 1) / 2;
}
static bool needs_scratch(int n_aliases) {
    return packed_elements(2 * n_aliases) * sizeof(double2) + vector_bytes(2 * n_aliases) > most_shared;
}

template <int TEAM> __device__ inline void team_sync() {
    if (TEAM <= 32)
        __syncwarp();
    else
        __syncthreads();
}

/* The sum of a value over a team, in every member. */
template <int TEAM> __device__ inline double team_sum(double value) {
    if (TEAM <= 32) {
        for (int other = TEAM / 2; other > 0; other /= 2) value += __shfl_xor_sync(PS_FULL_WARP, value, other);
        return value;
    }
    __shared__ double sums[LARGE_TEAM];
    sums[threadIdx.x] = value;
    for (int half = TEAM / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    value = sums[0];
    __syncthreads();
    return value;
}

__device__ inline int packed(int i, int j) {
    return i * (i + 1) / 2 + j;
}
/* *c -= a b and *c -= a conj(b) */
__device__ inline void subtract(double2 *c, double2 a, double2 b) {
    *c = make_double2(fma(-a.x, b.x, fma(a.y, b.y, c->x)), fma(-a.x, b.y, fma(-a.y, b.x, c->y)));
}
__device__ inline void subtract_conjugate(double2 *c, double2 a, double2 b) {
    *c = make_double2(fma(-a.x, b.x, fma(-a.y, b.y, c->x)), fma(a.x, b.y, fma(-a.y, b.x, c->y)));
}

/* L of matrix = L L^H in place, the diagonal inverted; false when a pivot is not positive. */
template <int TEAM, int WIDTH> __device__ inline bool factor(double2 *matrix, int dim, int me) {
    bool good = true;
    for (int j = 0; j < dim; j++) {
        double pivot = matrix[packed(j, j)].x;
        good = good && pivot > 0.0;
        double inverse = ps_rsqrt(pivot > 0.0 ? pivot : 1.0);
        team_sync<TEAM>();
        for (int i = j + 1 + me; i < dim; i += TEAM) {
            double2 *entry = &matrix[packed(i, j)];
            *entry = make_double2(entry->x * inverse, entry->y * inverse);
        }
        if (me == 0) matrix[packed(j, j)] = make_double2(inverse, 0.0);
        team_sync<TEAM>();
        for (int i = j + 1 + me / WIDTH; i < dim; i += TEAM / WIDTH)
            for (int k = j + 1 + me % WIDTH; k <= i; k += WIDTH)
                subtract_conjugate(&matrix[packed(i, k)], matrix[packed(i, j)], matrix[packed(k, j)]);
        team_sync<TEAM>();
    }
    return good;
}

/* x = L^-H L^-1 vector, in place. */
template <int TEAM> __device__ inline void substitute(const double2 *matrix, double2 *vector, int dim, int me) {
    for (int j = 0; j < dim; j++) {
        double inverse = matrix[packed(j, j)].x;
        if (me == 0) vector[j] = make_double2(vector[j].x * inverse, vector[j].y * inverse);
        team_sync<TEAM>();
        for (int i = j + 1 + me; i < dim; i += TEAM) subtract(&vector[i], matrix[packed(i, j)], vector[j]);
        team_sync<TEAM>();
    }
    for (int j = dim - 1; j >= 0; j--) {
        double inverse = matrix[packed(j, j)].x;
        if (me == 0) vector[j] = make_double2(vector[j].x * inverse, vector[j].y * inverse);
        team_sync<TEAM>();
        for (int i = me; i < j; i += TEAM) subtract_conjugate(&vector[i], vector[j], matrix[packed(j, i)]);
        team_sync<TEAM>();
    }
}

/* L^-1 in place of L. column: [dim] */
template <int TEAM> __device__ inline void invert(double2 *matrix, double2 *column, int dim, int me) {
    for (int j = dim - 1; j >= 0; j--) {
        double inverse = matrix[packed(j, j)].x;
        for (int i = j + 1 + me; i < dim; i += TEAM) column[i] = matrix[packed(i, j)];
        team_sync<TEAM>();
        for (int i = j + 1 + me; i < dim; i += TEAM) {
            double2 sum = make_double2(0.0, 0.0);
            for (int k = j + 1; k <= i; k++) subtract(&sum, matrix[packed(i, k)], column[k]);
            matrix[packed(i, j)] = make_double2(sum.x * inverse, sum.y * inverse);
        }
        team_sync<TEAM>();
    }
}

/* sum of D_i (N + D)^-1_ii from L^-1: sum over k >= i of D_i |L^-1_ki|^2. */
template <int TEAM> __device__ inline double weighted_trace(const double2 *matrix, const double *diagonal, int dim, int me) {
    double sum = 0.0;
    for (int k = me; k < dim; k += TEAM)
        for (int i = 0; i <= k; i++) {
            double2 entry = matrix[packed(k, i)];
            sum = fma(diagonal[i], fma(entry.x, entry.x, entry.y * entry.y), sum);
        }
    return team_sum<TEAM>(sum);
}

__device__ inline double2 right_side(const arguments &args, const ps_cuda_frequency &f, int n, int i) {
    return i < n ? args.right_amplitude[f.first_alias + i] : args.right_phase[f.first_alias + i - n];
}

template <int TEAM>
__device__ inline void load(const arguments &args, const ps_cuda_frequency &f, double2 *matrix, double2 *vector, double *diagonal, int n,
                            int me) {
    int dim = 2 * n;
    for (int i = me; i < dim; i += TEAM) {
        double prior = args.prior[f.first_alias + i % n];
        diagonal[i] = prior * (i < n ? args.mu_amplitude : args.mu_phase);
        vector[i] = right_side(args, f, n, i);
    }
    for (int i = me; i < (int)packed_elements(dim); i += TEAM) matrix[i] = args.normal[f.normal + i];
    team_sync<TEAM>();
    for (int i = me; i < dim; i += TEAM) matrix[packed(i, i)].x += diagonal[i];
    team_sync<TEAM>();
}

/* One frequency; all teams of a warp come here together, with the same n. */
template <int TEAM, int WIDTH>
__device__ inline void solve_frequency(const arguments &args, int32_t frequency, double2 *matrix, double2 *vector, int n, int me,
                                       bool exists) {
    const ps_cuda_frequency f = args.frequencies[frequency];
    int dim = 2 * n;
    double2 *column = vector + dim;
    double *diagonal = (double *)(column + dim);
    load<TEAM>(args, f, matrix, vector, diagonal, n, me);
    bool good = factor<TEAM, WIDTH>(matrix, dim, me);
    substitute<TEAM>(matrix, vector, dim, me);
    double sum = 0.0;
    for (int i = me; i < dim; i += TEAM) {
        double2 x = vector[i], b = right_side(args, f, n, i);
        sum += fma(x.x, b.x, x.y * b.y) + diagonal[i] * fma(x.x, x.x, x.y * x.y);
        if (exists && args.x_phase) (i < n ? args.x_amplitude : args.x_phase)[f.first_alias + i % n] = x;
    }
    sum = team_sum<TEAM>(sum);
    if (me == 0 && exists && args.residual) args.residual[frequency] = f.multiplicity * (args.data_norm[frequency] - sum);
    if (me == 0 && exists && !good) *args.failed = 1;
    if (args.effective_dof) {
        invert<TEAM>(matrix, column, dim, me);
        double trace = weighted_trace<TEAM>(matrix, diagonal, dim, me);
        if (me == 0 && exists) args.effective_dof[frequency] = f.multiplicity * (dim - trace);
    }
    team_sync<TEAM>();
}

template <int TEAM> static __global__ void __launch_bounds__(THREADS, 8) small_kernel(const __grid_constant__ arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    int team = threadIdx.x / TEAM, dim = 2 * args.n_aliases;
    size_t bytes = packed_elements(dim) * sizeof(double2) + vector_bytes(dim);
    int64_t index = (int64_t)blockIdx.x * (THREADS / TEAM) + team;
    bool exists = index < args.n;
    double2 *matrix = (double2 *)(ps_shared + team * bytes);
    solve_frequency<TEAM, 1>(args, args.list[exists ? index : 0], matrix, matrix + packed_elements(dim), args.n_aliases, threadIdx.x % TEAM,
                             exists);
}

static __global__ void __launch_bounds__(LARGE_TEAM, 4) large_kernel(const __grid_constant__ arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    int most = 2 * args.n_aliases;
    double2 *vector = (double2 *)ps_shared, *in_shared = (double2 *)(ps_shared + (vector_bytes(most) + 15) / 16 * 16);
    double2 *in_scratch = args.scratch ? args.scratch + (size_t)blockIdx.x * packed_elements(most) : NULL;
    for (int64_t index = blockIdx.x; index < args.n; index += gridDim.x) {
        int32_t frequency = args.list[index];
        int n = args.frequencies[frequency].n_aliases;
        if (in_scratch)
            solve_frequency<LARGE_TEAM, 16>(args, frequency, in_scratch, vector, n, threadIdx.x, true);
        else
            solve_frequency<LARGE_TEAM, 16>(args, frequency, in_shared, vector, n, threadIdx.x, true);
    }
}

size_t ps_cuda_solve_complex_scratch(const ps_cuda_system *system) {
    int n = system->classes[PS_CUDA_SMALL].n_aliases;
    return system->methods & PS_METHOD_COMPLEX && needs_scratch(n) ? packed_elements(2 * n) * sizeof(double2) * MOST_BLOCKS : 0;
}

template <int TEAM> static ps_code launch_small(const ps_cuda_system *system, const arguments *args, ps_error *error) {
    auto kernel = small_kernel<TEAM>;
    size_t bytes = (packed_elements(2 * args->n_aliases) * sizeof(double2) + vector_bytes(2 * args->n_aliases)) * (THREADS / TEAM);
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)));
    PS_CUDA_LAUNCH(error, kernel, (unsigned)ps_cuda_blocks(args->n, THREADS / TEAM), THREADS, bytes, system->backend->compute, *args);
    return PS_OK;
}

static ps_code launch_large(const ps_cuda_system *system, arguments *args, double2 *scratch, ps_error *error) {
    int dim = 2 * args->n_aliases;
    size_t bytes = (vector_bytes(dim) + 15) / 16 * 16;
    args->scratch = needs_scratch(args->n_aliases) ? scratch : NULL;
    if (!args->scratch) bytes += packed_elements(dim) * sizeof(double2);
    int64_t blocks = args->n < MOST_BLOCKS ? args->n : (int64_t)MOST_BLOCKS;
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)large_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)));
    PS_CUDA_LAUNCH(error, large_kernel, (unsigned)blocks, LARGE_TEAM, bytes, system->backend->compute, *args);
    return PS_OK;
}

static ps_code launch_classes(const ps_cuda_system *system, arguments *args, double2 *scratch, ps_error *error) {
    for (int i = 0; i < PS_CUDA_CLASSES; i++) {
        args->list = system->d_by_count + system->classes[i].first;
        args->n = system->classes[i].n;
        args->n_aliases = system->classes[i].n_aliases;
        if (args->n == 0) continue;
        if (i >= PS_CUDA_SMALL)
            PS_TRY(launch_large(system, args, scratch, error));
        else
            PS_TRY(args->n_aliases <= 4 ? launch_small<8>(system, args, error) : launch_small<16>(system, args, error));
    }
    return PS_OK;
}

static ps_code clear_answer(const ps_cuda_system *system, const ps_cuda_answer *answer, double *residual, double *effective_dof,
                            ps_error *error) {
    cudaStream_t stream = system->backend->compute;
    size_t unknowns = (size_t)system->desc.n_aliases * sizeof(double2), values = (size_t)system->desc.n_frequencies * sizeof(double);
    if (answer->x_phase) {
        PS_TRY(PS_CUDA(error, cudaMemsetAsync(answer->x_phase, 0, unknowns, stream)));
        PS_TRY(PS_CUDA(error, cudaMemsetAsync(answer->x_amplitude, 0, unknowns, stream)));
    }
    if (answer->residual) PS_TRY(PS_CUDA(error, cudaMemsetAsync(residual, 0, values, stream)));
    if (answer->effective_dof) PS_TRY(PS_CUDA(error, cudaMemsetAsync(effective_dof, 0, values, stream)));
    return PS_OK;
}

/* The data norm of frequencies without an alias stays in the residual. */
struct unsolved_data_norm {
    const ps_cuda_frequency *frequencies;
    const double *residual, *data_norm;
    __device__ double operator()(int64_t i) const {
        return frequencies[i].n_aliases == 0 ? frequencies[i].multiplicity * data_norm[i] : residual[i];
    }
};

ps_code ps_cuda_solve_complex(ps_cuda_frame *frame, ps_strength strength, const ps_cuda_answer *answer, ps_cuda_arena scratch,
                              ps_error *error) {
    ps_cuda_system *system = frame->system;
    double *residual = ps_cuda_take<double>(&scratch, system->desc.n_frequencies);
    double *effective_dof = ps_cuda_take<double>(&scratch, system->desc.n_frequencies);
    double2 *matrices = ps_cuda_take<double2>(&scratch, (int64_t)(ps_cuda_solve_complex_scratch(system) / sizeof(double2)));
    arguments args = {};
    args.frequencies = system->d_frequencies;
    args.normal = system->d_normal;
    args.right_amplitude = frame->d_right_amplitude;
    args.right_phase = frame->d_right_phase;
    args.prior = system->d_prior_complex;
    args.data_norm = frame->d_data_norm;
    args.mu_amplitude = strength.amplitude * system->scale_amplitude;
    args.mu_phase = strength.phase * system->scale_phase;
    args.x_amplitude = answer->x_amplitude;
    args.x_phase = answer->x_phase;
    args.residual = answer->residual ? residual : NULL;
    args.effective_dof = answer->effective_dof ? effective_dof : NULL;
    args.failed = system->d_flag;
    PS_TRY(clear_answer(system, answer, residual, effective_dof, error));
    PS_TRY(launch_classes(system, &args, matrices, error));
    unsolved_data_norm left = {system->d_frequencies, residual, frame->d_data_norm};
    ps_array_value traces = {effective_dof};
    if (answer->residual) PS_TRY(ps_cuda_sum(system, left, system->desc.n_frequencies, answer->residual, error));
    if (answer->effective_dof) PS_TRY(ps_cuda_sum(system, traces, system->desc.n_frequencies, answer->effective_dof, error));
    return PS_OK;
}
