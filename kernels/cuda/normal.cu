/* N = M^H W M of every frequency, physics section 5, for both methods from one evaluation of the transfer.
 *
 * A column is one alias and one side band: t1 or t2 of transfer.cuh, 2 n_aliases of them. Each is zero outside the overlap of two
 * apertures, a quarter of the disc on average, so a tile of 32 pixels meets 2 to 3 of 8 columns. A warp (up to 8 aliases; 8 warps
 * beyond, normal_large.cu) takes a frequency and walks the tiles of a band: columns whose run covers the tile are evaluated, lanes over
 * pixels, and staged in shared memory, packed; groups of four packed columns (8 reals) are multiplied by the tensor cores over the 32
 * pixels; the block is added in double to the real Gram of all columns in shared memory. At the end N follows by
 * T_amplitude = t1 + t2, T_phase = i (t1 - t2).
 *
 * Real = double: transfer, products and sums in double (mma.m8n8k4). Real = float: transfer in float; each product split into tf32
 * parts, high times high, high times low, low times high (mma.m16n8k8), summed over one tile in float and then in double. No sum's
 * order depends on the launch: results are the same bit for bit.
 *
 * Bytes: 24 per slot and frequency from the caches; N once. Bound by instruction issue and double arithmetic: some 45 double operations
 * a pixel and column. Measured alternatives are in docs/performance.md. */
#include "kernels/cuda/normal.cuh"

enum { WARPS = 4 };

/* Shared memory of one warp, bytes from its start. */
typedef struct {
    size_t terms, stage, gram, slots, bytes;
} sections;

template <typename Real> __host__ __device__ static inline sections lay_out(int n_columns) {
    sections s;
    s.terms = 0;
    s.gram = s.terms + (size_t)n_columns * PS_CUDA_BAND_ROWS * sizeof(ps_row_terms);
    s.stage = s.gram + 4 * (size_t)n_columns * n_columns * sizeof(double);
    s.slots = s.stage + (size_t)ps_normal_stage<Real>(n_columns) * sizeof(Real);
    s.bytes = (s.slots + (size_t)n_columns * sizeof(int) + 15) / 16 * 16;
    return s;
}

/* Adds the products of all pairs of groups to the Gram; slots: [n_staged] columns. */
template <typename Real>
__device__ inline void add_products(const Real *stage, const int *slots, int n_staged, int n_columns, double *gram, int lane) {
    int n_groups = (n_staged + PS_NORMAL_GROUP - 1) / PS_NORMAL_GROUP;
    for (int a = 0; a < n_groups; a++)
        for (int b = a; b < n_groups; b++) {
            double2 products = ps_normal_multiply(stage, a, b, 2 * n_staged, lane);
            int i = a * PS_NORMAL_GROUP + lane / 8, j = b * PS_NORMAL_GROUP + lane % 4;
            if (i >= n_staged || j >= n_staged) continue;
            double2 *place = (double2 *)(gram + (2 * slots[i] + (lane / 4 & 1)) * 2 * n_columns + 2 * slots[j]);
            double2 sum = *place;
            *place = make_double2(sum.x + products.x, sum.y + products.y);
        }
}

/* The complex Gram of two columns; its upper triangle is complete. */
__device__ inline double2 gram_entry(const double *gram, int n_columns, int a, int b) {
    int row = a < b ? a : b, column = a < b ? b : a;
    const double *re = gram + 2 * row * 2 * n_columns + 2 * column, *im = re + 2 * n_columns;
    double imaginary = re[1] - im[0];
    return make_double2(re[0] + im[1], a > b ? -imaginary : imaginary);
}

/* N columns at this lane's pixel, side by side: their polynomials are chains of dependent steps, and two chains fill each other's gaps. */
template <typename Real, int N>
__device__ inline void stage_columns(const ps_cuda_geometry &g, const ps_row_terms *terms, const int (&columns)[N], double v, double chi,
                                     Real root, unsigned inside, int first, Real *stage, int *slots, int lane) {
    double s[N];
    Real cosine[N], sine[N], amplitude[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        const ps_row_terms &t = terms[columns[i] * PS_CUDA_BAND_ROWS];
        s[i] = v - t.place;
        amplitude[i] = root;
        ps_turn(ps_phase(t, s[i], chi), &cosine[i], &sine[i]);
    }
    if (g.is_thick)
#pragma unroll
        for (int i = 0; i < N; i++) {
            const ps_row_terms &t = terms[columns[i] * PS_CUDA_BAND_ROWS];
            amplitude[i] *= ps_sinc(fma(t.y1, v, t.y0), (Real)0);
        }
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (!(inside >> columns[i] & 1u)) amplitude[i] *= ps_aperture<Real>(g, terms[columns[i] * PS_CUDA_BAND_ROWS].p, s[i]);
        ps_normal_put(stage, 2 * (first + i), lane, amplitude[i] * cosine[i]);
        ps_normal_put(stage, 2 * (first + i) + 1, lane, amplitude[i] * sine[i]);
        slots[first + i] = columns[i]; /* all lanes, the same */
    }
}

template <typename Real>
static __global__ void __launch_bounds__(32 * WARPS, 5)
    normal_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ ps_normal_arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t index = (int64_t)blockIdx.x * WARPS + warp;
    if (index >= args.n) return; /* whole warps only */
    const ps_cuda_frequency f = args.aliases.frequencies[args.list[index]];
    const int n_columns = args.n_columns;
    const sections at = lay_out<Real>(n_columns);
    unsigned char *shared = ps_shared + warp * at.bytes;
    ps_row_terms *terms = (ps_row_terms *)(shared + at.terms);
    Real *stage = (Real *)(shared + at.stage);
    double *gram = (double *)(shared + at.gram);
    int *slots = (int *)(shared + at.slots);

    for (int i = lane; i < 4 * n_columns * n_columns; i += 32) gram[i] = 0.0;
    float2 place = make_float2(0.0f, 0.0f);
    if (lane < n_columns) {
        double sigma = lane & 1 ? -1.0 : 1.0;
        place.x = (float)(sigma * args.aliases.u[f.first_alias + lane / 2]);
        place.y = (float)(sigma * args.aliases.v[f.first_alias + lane / 2]);
    }
    const ps_row_terms *my_terms = terms + lane % PS_CUDA_BAND_ROWS;
    for (int b = 0; b < args.pixels.n_bands; b++) {
        const ps_cuda_band band = args.pixels.bands[b];
        ps_reach reach = {1, 0, 1, 0};
        if (lane < n_columns) reach = ps_reach_of(g, band, place.x, place.y);
        if (!__any_sync(PS_FULL_WARP, reach.first <= reach.last)) continue;
        for (int i = lane; i < n_columns * PS_CUDA_BAND_ROWS; i += 32) {
            int64_t alias = f.first_alias + i / (2 * PS_CUDA_BAND_ROWS);
            ps_form_row_terms(g, band.u + i % PS_CUDA_BAND_ROWS, args.aliases.u[alias], args.aliases.v[alias],
                              i / PS_CUDA_BAND_ROWS & 1 ? -1.0 : 1.0, &terms[i]);
        }
        double v = band.v + lane / PS_CUDA_BAND_ROWS;
        int64_t slot = (int64_t)band.first_tile * PS_CUDA_LANES + lane;
        __syncwarp();
        for (int tile = 0; tile < band.n_tiles; tile++, slot += PS_CUDA_LANES, v += PS_CUDA_TILE_COLUMNS) {
            bool touches = tile >= reach.first && tile <= reach.last, inner = tile >= reach.inner_first && tile <= reach.inner_last;
            unsigned touched = __ballot_sync(PS_FULL_WARP, touches), inside = __ballot_sync(PS_FULL_WARP, inner);
            if (touched == 0u) continue;
            double chi = args.pixels.pixels[slot].chi;
            Real root = (Real)args.pixels.root[slot];
            int n_staged = 0;
#pragma unroll 1
            for (unsigned left = touched; left;) {
                const int one[1] = {__ffs((int)left) - 1};
                left &= left - 1;
                if (left) {
                    const int two[2] = {one[0], __ffs((int)left) - 1};
                    left &= left - 1;
                    stage_columns<Real, 2>(g, my_terms, two, v, chi, root, inside, n_staged, stage, slots, lane);
                    n_staged += 2;
                } else {
                    stage_columns<Real, 1>(g, my_terms, one, v, chi, root, inside, n_staged, stage, slots, lane);
                    n_staged++;
                }
            }
            __syncwarp();
            add_products(stage, slots, n_staged, n_columns, gram, lane);
            __syncwarp();
        }
    }
    __syncwarp();
    for (int i = lane; i < f.n_aliases * f.n_aliases; i += 32) {
        int a = i / f.n_aliases, b = i % f.n_aliases;
        if (a <= b)
            ps_normal_store(args.normal + f.normal, f.n_aliases, args.has_amplitude, a, b, gram_entry(gram, n_columns, 2 * a, 2 * b),
                            gram_entry(gram, n_columns, 2 * a, 2 * b + 1), gram_entry(gram, n_columns, 2 * a + 1, 2 * b),
                            gram_entry(gram, n_columns, 2 * a + 1, 2 * b + 1));
    }
}

template <typename Real> static ps_code launch(const ps_cuda_system *system, const ps_normal_arguments *args, ps_error *error) {
    size_t bytes = lay_out<Real>(args->n_columns).bytes * WARPS;
    auto kernel = normal_kernel<Real>;
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)));
    PS_CUDA_LAUNCH(error, kernel, (unsigned)ps_cuda_blocks(args->n, WARPS), 32 * WARPS, bytes, system->backend->compute, system->geometry,
                   *args);
    return PS_OK;
}

ps_code ps_cuda_normal(ps_cuda_system *system, ps_error *error) {
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
        else if (system->backend->fast_double)
            PS_TRY(launch<double>(system, &args, error));
        else
            PS_TRY(launch<float>(system, &args, error));
    }
    return PS_OK;
}
