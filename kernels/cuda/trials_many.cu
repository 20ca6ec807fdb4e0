/* Explained power of trial optics where frequencies have several aliases: b^H (N + D)^-1 b.
 *
 * sum_kernel: a block takes one trial and one frequency. 64 pixels at a time, its threads form the transfer of all aliases in shared memory
 * and add up pairs of them, and of each with g: float over the 64 pixels, double in memory, where a pair always belongs to one thread.
 * Bound by the pairs' reads of shared memory. explain_kernel: a block takes one trial; threads are frequencies, each with a factorisation
 * in place, which is slow and small. */
#include "kernels/cuda/operations.h"
#include "kernels/cuda/trial_transfer.cuh"

enum { THREADS = 128, TILE = 64, STRIDE = TILE + 1, EXPLAIN_THREADS = 64, DEGREE = 6 };

/* What a block keeps in shared memory; rows: [most_aliases, STRIDE] behind it. */
struct shared_memory {
    ps_cuda_trial trial;
    ps_trial_places<TILE> places;
    ps_trial_alias aliases[PS_MAX_ALIASES];
    float2 g[TILE];
};

static __device__ inline float2 conjugate_product(float2 a, float2 b) {
    return make_float2(fmaf(a.x, b.x, a.y * b.y), fmaf(a.x, b.y, -a.y * b.x));
}

static __device__ inline void add_pair(const float2 *row, const float2 *column, bool is_first, double2 *to) {
    float2 sum = make_float2(0.0f, 0.0f);
    for (int i = 0; i < TILE; i++) {
        float2 product = conjugate_product(row[i], column[i]);
        sum.x += product.x;
        sum.y += product.y;
    }
    double2 before = is_first ? make_double2(0.0, 0.0) : *to;
    *to = make_double2(before.x + (double)sum.x, before.y + (double)sum.y);
}

/* Transfer of all aliases, and g, at the pixels [first, first + TILE); beyond the last one dark. */
static __device__ inline void form_rows(const ps_cuda_band_arrays &band, const float2 *spectrum, int64_t first, int n, shared_memory *m,
                                        float2 *rows) {
    for (int i = threadIdx.x; i < TILE; i += THREADS) {
        bool exists = first + i < band.n_pixels;
        ps_trial_place place = {0.0, 0.0, 0.0, 0.0f};
        if (exists) place = ps_trial_place_of<DEGREE>(m->trial, band.pixels[first + i]);
        m->places.put(i, place);
        m->g[i] = exists ? spectrum[first + i] : make_float2(0.0f, 0.0f);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n * TILE; i += THREADS)
        rows[i / TILE * STRIDE + i % TILE] = ps_trial_transfer<DEGREE>(m->trial, m->places.get(i % TILE), m->aliases[i / TILE]);
    __syncthreads();
}

static __global__ void __launch_bounds__(THREADS)
    sum_kernel(const __grid_constant__ ps_cuda_band_arrays band, const ps_cuda_trial *trials, ps_cuda_trial_sums sums) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    shared_memory *m = (shared_memory *)ps_shared;
    float2 *rows = (float2 *)(m + 1);
    int64_t frequency = blockIdx.x, trial = blockIdx.y, first_alias = band.first_alias[frequency];
    int n = (int)(band.first_alias[frequency + 1] - first_alias);
    double2 *normal = sums.normal + trial * sums.n_entries + band.first_entry[frequency];
    double2 *right = sums.right + trial * sums.n_aliases + first_alias;
    for (unsigned i = threadIdx.x; i < sizeof m->trial / sizeof(double); i += THREADS)
        ((double *)&m->trial)[i] = ((const double *)&trials[trial])[i];
    __syncthreads();
    for (int a = threadIdx.x; a < n; a += THREADS)
        m->aliases[a] = ps_trial_alias_of(m->trial, band.q_row[first_alias + a], band.q_column[first_alias + a]);
    __syncthreads();
    for (int64_t tile = 0; tile < band.n_pixels; tile += TILE) {
        form_rows(band, band.spectra + frequency * band.n_pixels, tile, n, m, rows);
        for (int pair = threadIdx.x; pair < n * (n + 1); pair += THREADS) {
            int row = pair < n * n ? pair / n : pair - n * n, column = pair % n;
            if (pair >= n * n)
                add_pair(rows + row * STRIDE, m->g, tile == 0, right + row);
            else if (column <= row)
                add_pair(rows + row * STRIDE, rows + column * STRIDE, tile == 0, normal + pair);
        }
        __syncthreads();
    }
}

/* conj(b) taken off a: a - x conj(y). */
static __device__ inline double2 less_conjugate(double2 a, double2 x, double2 y) {
    return make_double2(a.x - fma(x.x, y.x, x.y * y.y), a.y - fma(x.y, y.x, -x.x * y.y));
}

static __device__ inline double2 less(double2 a, double2 x, double2 y) {
    return make_double2(a.x - fma(x.x, y.x, -x.y * y.y), a.y - fma(x.x, y.y, x.y * y.x));
}

static __device__ inline double2 scaled(double2 a, double factor) {
    return make_double2(a.x * factor, a.y * factor);
}

/* N + D = L L^H in place, then |L^-1 b|^2. D > 0 keeps every pivot positive but for rounding, which is below it. */
static __device__ inline double explain_one(int n, double ridge, double2 *normal, double2 *right) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        double2 *row = normal + i * n;
        for (int j = 0; j < i; j++) {
            double2 value = row[j];
            for (int k = 0; k < j; k++) value = less_conjugate(value, row[k], normal[j * n + k]);
            row[j] = scaled(value, ps_rcp(normal[j * (n + 1)].x));
        }
        double pivot = row[i].x + ridge;
        double2 b = right[i];
        for (int k = 0; k < i; k++) {
            pivot -= fma(row[k].x, row[k].x, row[k].y * row[k].y);
            b = less(b, row[k], right[k]);
        }
        pivot = fmax(pivot, 0.5 * ridge);
        double inverse = ps_rsqrt(pivot);
        row[i] = make_double2(pivot * inverse, 0.0);
        right[i] = b = scaled(b, inverse);
        sum += fma(b.x, b.x, b.y * b.y);
    }
    return sum;
}

static __global__ void __launch_bounds__(EXPLAIN_THREADS, 1)
    explain_kernel(const __grid_constant__ ps_cuda_band_arrays band, ps_cuda_trial_sums sums, int64_t n_frequencies, double *explained) {
    __shared__ double room[EXPLAIN_THREADS];
    double2 *normal = sums.normal + blockIdx.x * sums.n_entries, *right = sums.right + blockIdx.x * sums.n_aliases;
    double diagonal = 0.0, sum = 0.0;
    for (int64_t f = threadIdx.x; f < n_frequencies; f += EXPLAIN_THREADS) {
        int64_t n = band.first_alias[f + 1] - band.first_alias[f];
        for (int64_t a = 0; a < n; a++) diagonal += normal[band.first_entry[f] + a * (n + 1)].x;
    }
    double ridge = band.strength * ps_trial_block_sum<EXPLAIN_THREADS>(diagonal, room) / (double)sums.n_aliases;
    for (int64_t f = threadIdx.x; f < n_frequencies && ridge > 0.0; f += EXPLAIN_THREADS)
        sum += explain_one((int)(band.first_alias[f + 1] - band.first_alias[f]), ridge, normal + band.first_entry[f],
                           right + band.first_alias[f]);
    sum = ps_trial_block_sum<EXPLAIN_THREADS>(sum, room);
    if (threadIdx.x == 0) explained[blockIdx.x] = sum;
}

ps_code ps_cuda_trials_many(cudaStream_t stream, const ps_cuda_band_arrays *band, const ps_cuda_trial_sums *sums, int64_t n_frequencies,
                            int64_t most_aliases, int64_t n_trials, const ps_cuda_trial *trials, double *explained, ps_error *error) {
    dim3 grid((unsigned)n_frequencies, (unsigned)n_trials);
    int bytes = (int)(sizeof(shared_memory) + (size_t)most_aliases * STRIDE * sizeof(float2));
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)sum_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)));
    PS_CUDA_LAUNCH(error, sum_kernel, grid, THREADS, bytes, stream, *band, trials, *sums);
    PS_CUDA_LAUNCH(error, explain_kernel, (unsigned)n_trials, EXPLAIN_THREADS, 0, stream, *band, *sums, n_frequencies, explained);
    return PS_OK;
}
