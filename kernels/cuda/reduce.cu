/* b, power and the SSB sums of a batch of frames, physics sections 5 and 6, from one evaluation of the transfer for all of them.
 *
 * A warp takes a task, up to 4 (or 8) aliases of one frequency, and walks the bands of a chunk in strips of tiles, lanes over pixels. It
 * reads g of a strip once, 256 contiguous bytes a tile and frame, and keeps it in shared memory; then it takes one column (alias and side
 * band) after another: the row's polynomial goes to registers, the run of tiles that the overlap covers is evaluated in float, and each
 * lane sums conj(t) W g. A lane's sums of a column are kept in shared memory; at the end of a segment of bands, always the same ones, they
 * are added up over the lanes in double and go to the frame's arrays: neither the chunks of g nor the number of frames that share a launch
 * shows in a result. SSB takes both side bands of an alias at a time, gamma = t1 - t2, and adds g conj(gamma)/|gamma|.
 *
 * Aliases near q = 0 go to reduce_exact.cu instead. b of the complex method: sum of conj(t1 + t2) W g; of the phase method: -i sum of
 * conj(t1 - t2) W g. Bytes: 8 per slot, spectrum and frame; 16 per slot and column from the caches. Bound by instruction issue (transfer)
 * for one frame, by memory from about four frames on. Measured alternatives are in docs/performance.md. */
#include <limits.h>
#include <math.h>

#include "kernels/cuda/reduce.cuh"

enum { WARPS = 4 };

/* Shared memory of one warp. Sums: vectors of 32 lanes; a column's at (alias * FRAMES + frame) * 2 + side, SSB's at
 * alias * FRAMES + frame. g of one strip is worked on while the next one's is on its way. */
template <int ALIASES, bool RIGHT, bool SSB, int FRAMES> struct __align__(16) warp_memory {
    static constexpr int STRIP = FRAMES == PS_REDUCE_FRAMES ? 4 : 8; /* tiles */
    ps_row_terms terms[2 * ALIASES * PS_CUDA_BAND_ROWS];
    ps_reach reaches[2 * ALIASES];
    float2 g[2][FRAMES][STRIP][PS_CUDA_LANES];
    float2 columns[RIGHT ? 2 * ALIASES * FRAMES : 1][PS_CUDA_LANES];
    float2 ssb[SSB ? ALIASES * FRAMES : 1][PS_CUDA_LANES];
};

/* --- the sums of a segment --- */

/* The sum of 32 lanes' entries of one vector, for four neighbouring lanes that take a quarter each (part = lane % 4). */
__device__ inline double2 sum_vector(const float2 *vector, int part) {
    double2 sum = make_double2(0.0, 0.0);
#pragma unroll
    for (int i = 0; i < PS_CUDA_LANES / 4; i++) {
        float2 value = vector[part * (PS_CUDA_LANES / 4) + i];
        sum.x += (double)value.x;
        sum.y += (double)value.y;
    }
    for (int other = 1; other <= 2; other *= 2) {
        sum.x += __shfl_xor_sync(PS_FULL_WARP, sum.x, other);
        sum.y += __shfl_xor_sync(PS_FULL_WARP, sum.y, other);
    }
    return sum;
}

/* Adds the sums of a segment to the frames' arrays, eight vectors at a time, four lanes each. */
template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
__device__ inline void flush(const ps_cuda_geometry &g, const ps_reduce_arguments &args,
                             const warp_memory<ALIASES, RIGHT, SSB, FRAMES> *memory, int64_t first_alias, int n_aliases, int lane) {
    int part = lane % 4;
    __syncwarp();
    if (RIGHT)
        for (int at = 0; at < 2 * n_aliases * FRAMES; at += 8) {
            int vector = at + lane / 4, pair = vector / 2, frame = pair % FRAMES;
            bool exists = vector < 2 * n_aliases * FRAMES;
            double2 mine = sum_vector(memory->columns[exists ? vector : 0], part), other;
            other.x = __shfl_xor_sync(PS_FULL_WARP, mine.x, 4);
            other.y = __shfl_xor_sync(PS_FULL_WARP, mine.y, 4);
            if (!exists || part != 0 || vector % 2 != 0) continue;
            int64_t alias = first_alias + pair / FRAMES;
            if (ps_reduce_is_exact(g, args.aliases.u[alias], args.aliases.v[alias])) continue;
            double scale = args.inverse_dose[frame];
            if (args.right_amplitude[frame])
                ps_reduce_add(&args.right_amplitude[frame][alias], scale * (mine.x + other.x), scale * (mine.y + other.y));
            ps_reduce_add(&args.right_phase[frame][alias], scale * (mine.y - other.y), scale * (other.x - mine.x));
        }
    if (SSB)
        for (int at = 0; at < n_aliases * FRAMES; at += 8) {
            int vector = at + lane / 4, frame = vector % FRAMES;
            bool exists = vector < n_aliases * FRAMES;
            double2 sum = sum_vector(memory->ssb[exists ? vector : 0], part);
            double scale = args.inverse_dose[frame] * args.ssb_scale;
            if (exists && part == 0) ps_reduce_add(&args.ssb[frame][first_alias + vector / FRAMES], scale * sum.x, scale * sum.y);
        }
    __syncwarp();
}

template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
__device__ inline void clear(warp_memory<ALIASES, RIGHT, SSB, FRAMES> *memory, int lane) {
    if (RIGHT)
        for (int i = 0; i < 2 * ALIASES * FRAMES; i++) memory->columns[i][lane] = make_float2(0.0f, 0.0f);
    if (SSB)
        for (int i = 0; i < ALIASES * FRAMES; i++) memory->ssb[i][lane] = make_float2(0.0f, 0.0f);
}

__device__ inline void flush_power(double *power, float sum, double inverse_dose, int lane) {
    double total = (double)sum;
    for (int other = 16; other > 0; other /= 2) total += __shfl_xor_sync(PS_FULL_WARP, total, other);
    if (lane == 0) *power += total * inverse_dose * inverse_dose;
}

/* --- one strip --- */

/* A strip as its warp sees it. */
template <int FRAMES, int STRIP> struct strip_view {
    int first, n;                /* tiles of the band */
    double v;                    /* this lane's column in the strip's first tile, from k = 0 */
    const ps_cuda_pixel *pixels; /* this lane's pixel in it */
    const float2 (*g)[STRIP][PS_CUDA_LANES];
    float conjugate; /* of g */
};

/* conj(a) b added to *sum. */
__device__ inline void add_product(float2 *sum, float a_re, float a_im, float2 b) {
    sum->x = fmaf(a_re, b.x, fmaf(a_im, b.y, sum->x));
    sum->y = fmaf(a_re, b.y, fmaf(-a_im, b.x, sum->y));
}

__device__ inline void add_sum(float2 *place, float2 sum, float conjugate) {
    *place = make_float2(place->x + sum.x, place->y + conjugate * sum.y);
}

/* The strip's tiles [begin, end) of one column. With conjugate = -1, conj(t) conj(g) = conj(t g): t's imaginary part changes sign here and
 * the sum's at its end. */
template <bool EDGE, int FRAMES, int STRIP>
__device__ inline void add_run(const ps_cuda_geometry &g, const ps_row_terms &terms, const strip_view<FRAMES, STRIP> &s, int begin, int end,
                               int lane, float2 (&sums)[FRAMES]) {
    double v = s.v + (double)(PS_CUDA_TILE_COLUMNS * begin);
#pragma unroll 2
    for (int i = begin; i < end; i++, v += PS_CUDA_TILE_COLUMNS) {
        const ps_cuda_pixel pixel = s.pixels[i * PS_CUDA_LANES];
        float re, im;
        ps_transfer(g, terms, v - terms.place, fma(terms.y1, v, terms.y0), pixel.chi, pixel.aperture, EDGE, &re, &im);
        re *= pixel.weight;
        im *= pixel.weight * s.conjugate;
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++) add_product(&sums[frame], re, im, s.g[frame][i][lane]);
    }
}

/* One column's part of b. */
template <int ALIASES, bool SSB, int FRAMES, int STRIP>
__device__ inline void add_column(const ps_cuda_geometry &g, warp_memory<ALIASES, true, SSB, FRAMES> *memory,
                                  const strip_view<FRAMES, STRIP> &s, int column, int lane) {
    const ps_reach reach = memory->reaches[column];
    int begin = max(reach.first - s.first, 0), end = min(reach.last - s.first + 1, s.n);
    if (begin >= end) return;
    int inner = min(max(reach.inner_first - s.first, begin), end), outer = min(max(reach.inner_last - s.first + 1, inner), end);
    const ps_row_terms terms = memory->terms[column * PS_CUDA_BAND_ROWS + lane % PS_CUDA_BAND_ROWS];
    float2 sums[FRAMES];
#pragma unroll
    for (int frame = 0; frame < FRAMES; frame++) sums[frame] = make_float2(0.0f, 0.0f);
    add_run<true>(g, terms, s, begin, inner, lane, sums);
    add_run<false>(g, terms, s, inner, outer, lane, sums);
    add_run<true>(g, terms, s, outer, end, lane, sums);
#pragma unroll
    for (int frame = 0; frame < FRAMES; frame++)
        add_sum(&memory->columns[((column >> 1) * FRAMES + frame) * 2 + (column & 1)][lane], sums[frame], s.conjugate);
}

/* t of this lane's pixel in tile i of the strip. */
template <typename Real, int FRAMES, int STRIP>
__device__ inline void evaluate(const ps_cuda_geometry &g, const ps_row_terms &terms, const ps_reach &reach,
                                const strip_view<FRAMES, STRIP> &s, int i, double chi, Real aperture, Real *re, Real *im) {
    int tile = s.first + i;
    double v = s.v + (double)(PS_CUDA_TILE_COLUMNS * i);
    ps_transfer(g, terms, v - terms.place, fma(terms.y1, v, terms.y0), chi, aperture, tile < reach.inner_first || tile > reach.inner_last,
                re, im);
}

/* gamma/|gamma| in double. terms: of this lane's row and sigma = +1; those of -1 stand a band's rows further. */
template <int FRAMES, int STRIP>
__device__ inline float2 exact_unit_gamma(const ps_cuda_geometry &g, const ps_row_terms *terms, const ps_reach *reach,
                                          const strip_view<FRAMES, STRIP> &s, int i, const ps_cuda_pixel &pixel) {
    double re[2], im[2];
#pragma unroll
    for (int side = 0; side < 2; side++)
        evaluate(g, terms[side * PS_CUDA_BAND_ROWS], reach[side], s, i, pixel.chi, (double)pixel.aperture, &re[side], &im[side]);
    return ps_unit_gamma(re[0] - re[1], im[0] - im[1]);
}

/* One alias's part of the SSB sums, and of b where it is wanted. */
template <int ALIASES, bool RIGHT, int FRAMES, int STRIP>
__device__ inline void add_alias(const ps_cuda_geometry &g, warp_memory<ALIASES, RIGHT, true, FRAMES> *memory,
                                 const strip_view<FRAMES, STRIP> &s, int alias, int lane) {
    const ps_reach reach[2] = {memory->reaches[2 * alias], memory->reaches[2 * alias + 1]};
    int first = min(reach[0].first <= reach[0].last ? reach[0].first : INT_MAX, reach[1].first <= reach[1].last ? reach[1].first : INT_MAX);
    int begin = max(first - s.first, 0), end = min(max(reach[0].last, reach[1].last) - s.first + 1, s.n);
    if (begin >= end) return;
    const ps_row_terms *terms = &memory->terms[2 * alias * PS_CUDA_BAND_ROWS + lane % PS_CUDA_BAND_ROWS];
    float2 sums[FRAMES], right[2][FRAMES];
#pragma unroll
    for (int frame = 0; frame < FRAMES; frame++) sums[frame] = right[0][frame] = right[1][frame] = make_float2(0.0f, 0.0f);
#pragma unroll 1
    for (int i = begin; i < end; i++) {
        const ps_cuda_pixel pixel = s.pixels[i * PS_CUDA_LANES];
        float gamma_re = 0.0f, gamma_im = 0.0f;
#pragma unroll
        for (int side = 0; side < 2; side++) {
            if (s.first + i < reach[side].first || s.first + i > reach[side].last) continue;
            float re, im;
            evaluate(g, terms[side * PS_CUDA_BAND_ROWS], reach[side], s, i, pixel.chi, pixel.aperture, &re, &im);
            gamma_re += side ? -re : re;
            gamma_im += side ? -im : im;
            if (RIGHT)
#pragma unroll
                for (int frame = 0; frame < FRAMES; frame++)
                    add_product(&right[side][frame], re * pixel.weight, im * (pixel.weight * s.conjugate), s.g[frame][i][lane]);
        }
        float2 unit = ps_unit_gamma(gamma_re, gamma_im);
        if (ps_gamma_is_small(gamma_re, gamma_im)) unit = exact_unit_gamma(g, terms, reach, s, i, pixel);
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++) add_product(&sums[frame], unit.x, unit.y * s.conjugate, s.g[frame][i][lane]);
    }
#pragma unroll
    for (int frame = 0; frame < FRAMES; frame++) {
        add_sum(&memory->ssb[alias * FRAMES + frame][lane], sums[frame], s.conjugate);
        for (int side = 0; RIGHT && side < 2; side++)
            add_sum(&memory->columns[(alias * FRAMES + frame) * 2 + side][lane], right[side][frame], s.conjugate);
    }
}

template <int FRAMES, int STRIP> __device__ inline void add_power(const strip_view<FRAMES, STRIP> &s, float (&power)[FRAMES], int lane) {
    for (int i = 0; i < s.n; i++) {
        float weight = s.pixels[i * PS_CUDA_LANES].weight;
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++) {
            float2 g = s.g[frame][i][lane];
            power[frame] = fmaf(weight, fmaf(g.x, g.x, g.y * g.y), power[frame]);
        }
    }
}

template <int ALIASES, bool RIGHT, bool SSB, int FRAMES> struct add_columns {
    template <int STRIP>
    static __device__ inline void run(const ps_cuda_geometry &g, warp_memory<ALIASES, RIGHT, SSB, FRAMES> *memory,
                                      const strip_view<FRAMES, STRIP> &s, int n_aliases, int lane) {
        for (int alias = 0; alias < n_aliases; alias++) add_alias<ALIASES, RIGHT, FRAMES>(g, memory, s, alias, lane);
    }
};
template <int ALIASES, int FRAMES> struct add_columns<ALIASES, true, false, FRAMES> {
    template <int STRIP>
    static __device__ inline void run(const ps_cuda_geometry &g, warp_memory<ALIASES, true, false, FRAMES> *memory,
                                      const strip_view<FRAMES, STRIP> &s, int n_aliases, int lane) {
        for (int column = 0; column < 2 * n_aliases; column++) add_column<ALIASES, false, FRAMES>(g, memory, s, column, lane);
    }
};

/* --- one task --- */

/* Row terms and reaches of a task's columns in one band. */
template <typename Memory>
__device__ inline void enter_band(const ps_cuda_geometry &g, const ps_reduce_arguments &args, const ps_cuda_band &band, int64_t first_alias,
                                  int n_aliases, Memory *memory, int lane) {
    __syncwarp();
    for (int i = lane; i < 2 * n_aliases * PS_CUDA_BAND_ROWS; i += 32) {
        int column = i / PS_CUDA_BAND_ROWS;
        double u = args.aliases.u[first_alias + column / 2], v = args.aliases.v[first_alias + column / 2], sigma = column & 1 ? -1.0 : 1.0;
        ps_form_row_terms(g, band.u + i % PS_CUDA_BAND_ROWS, u, v, sigma, &memory->terms[i]);
        if (i % PS_CUDA_BAND_ROWS == 0) memory->reaches[column] = ps_reach_of(g, band, (float)(sigma * u), (float)(sigma * v));
    }
    __syncwarp();
}

/* The strips of a chunk in their order. */
struct strip_place {
    int band, first; /* tile of the band */
};

__device__ inline strip_place next_strip(const ps_cuda_pixels &pixels, strip_place at, int length) {
    at.first += length;
    if (at.first >= pixels.bands[at.band].n_tiles) {
        at.band++;
        at.first = 0;
    }
    return at;
}

/* Starts the copies of a strip's g; from: this frequency's value of this lane in the chunk's first tile. */
template <int FRAMES, int STRIP>
__device__ inline void fetch_strip(const ps_reduce_arguments &args, strip_place at, int64_t from, float2 (*g)[STRIP][PS_CUDA_LANES],
                                   int lane) {
    const ps_cuda_band band = args.pixels.bands[at.band];
    int64_t step = args.n_spectrum * PS_CUDA_LANES;
    from += (band.first_tile + at.first - args.pixels.bands[args.first_band].first_tile) * step;
    for (int i = 0; i < min(STRIP, band.n_tiles - at.first); i++)
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++) ps_copy_async(&g[frame][i][lane], args.spectra[frame] + from + i * step);
}

template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
static __global__ void __launch_bounds__(32 * WARPS, SSB || FRAMES == PS_REDUCE_FRAMES ? 4 : 5)
    reduce_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ ps_reduce_arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    typedef warp_memory<ALIASES, RIGHT, SSB, FRAMES> shared_type;
    constexpr int STRIP = shared_type::STRIP;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, buffer = 0;
    int64_t index = (int64_t)blockIdx.x * WARPS + warp;
    if (index >= args.n_tasks) return; /* whole warps only */
    shared_type *memory = (shared_type *)ps_shared + warp;
    const ps_cuda_task task = args.tasks[index];
    const ps_cuda_frequency f = args.aliases.frequencies[task.frequency];
    int64_t first_alias = f.first_alias + task.first, from = f.spectrum * PS_CUDA_LANES + lane;
    float power[FRAMES];
#pragma unroll
    for (int frame = 0; frame < FRAMES; frame++) power[frame] = 0.0f;
    clear(memory, lane);
    strip_place at = {args.first_band, 0};
    fetch_strip<FRAMES, STRIP>(args, at, from, memory->g[0], lane);
    ps_copy_commit();
    while (at.band < args.end_band) {
        const ps_cuda_band band = args.pixels.bands[at.band];
        strip_place next = next_strip(args.pixels, at, STRIP);
        if (next.band < args.end_band) fetch_strip<FRAMES, STRIP>(args, next, from, memory->g[buffer ^ 1], lane);
        ps_copy_commit();
        if (at.first == 0) enter_band(g, args, band, first_alias, task.n_aliases, memory, lane);
        ps_copy_wait<1>();
        strip_view<FRAMES, STRIP> s = {at.first,
                                       min(STRIP, band.n_tiles - at.first),
                                       band.v + lane / PS_CUDA_BAND_ROWS + PS_CUDA_TILE_COLUMNS * at.first,
                                       args.pixels.pixels + (int64_t)(band.first_tile + at.first) * PS_CUDA_LANES + lane,
                                       memory->g[buffer],
                                       f.conjugate};
        if (task.sums_power) add_power(s, power, lane);
        add_columns<ALIASES, RIGHT, SSB, FRAMES>::run(g, memory, s, task.n_aliases, lane);
        if (next.band != at.band && band.ends_segment) {
            flush(g, args, memory, first_alias, task.n_aliases, lane);
            clear(memory, lane);
#pragma unroll
            for (int frame = 0; frame < FRAMES; frame++) {
                if (task.sums_power) flush_power(&args.power[frame][task.frequency], power[frame], args.inverse_dose[frame], lane);
                power[frame] = 0.0f;
            }
        }
        at = next;
        buffer ^= 1;
    }
}

/* --- the launches of one chunk --- */

template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
static ps_code launch(const ps_cuda_system *system, const ps_reduce_arguments *args, ps_error *error) {
    if (args->n_tasks == 0) return PS_OK;
    auto kernel = reduce_kernel<ALIASES, RIGHT, SSB, FRAMES>;
    int bytes = (int)sizeof(warp_memory<ALIASES, RIGHT, SSB, FRAMES>) * WARPS;
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)));
    PS_CUDA_LAUNCH(error, kernel, (unsigned)ps_cuda_blocks(args->n_tasks, WARPS), 32 * WARPS, bytes, system->backend->compute,
                   system->geometry, *args);
    return PS_OK;
}

template <bool RIGHT, bool SSB, int FRAMES>
static ps_code launch_sizes(const ps_cuda_system *system, ps_reduce_arguments *args, ps_error *error) {
    args->tasks = system->d_tasks + system->n_small_tasks;
    args->n_tasks = system->n_tasks - system->n_small_tasks;
    PS_TRY((launch<8, RIGHT, SSB, FRAMES>(system, args, error)));
    args->tasks = system->d_tasks;
    args->n_tasks = system->n_small_tasks;
    return launch<4, RIGHT, SSB, FRAMES>(system, args, error);
}

template <int FRAMES> static ps_code launch_methods(const ps_cuda_system *system, ps_reduce_arguments *args, ps_error *error) {
    bool right = system->methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX), ssb = system->methods & PS_METHOD_SSB;
    if (right) PS_TRY(ps_reduce_launch_exact(system, FRAMES, args, error));
    if (right && ssb) return launch_sizes<true, true, FRAMES>(system, args, error);
    if (right) return launch_sizes<true, false, FRAMES>(system, args, error);
    return launch_sizes<false, true, FRAMES>(system, args, error);
}

static ps_code launch_frames(const ps_cuda_system *system, int n_frames, ps_reduce_arguments *args, ps_error *error) {
    if (n_frames == 1) return launch_methods<1>(system, args, error);
    if (n_frames == 2) return launch_methods<2>(system, args, error);
    return launch_methods<PS_REDUCE_FRAMES>(system, args, error);
}

/* How many of `left` frames the next launch takes: there are kernels for 1, 2 and 4. */
static int frames_together(int64_t left) {
    return left >= PS_REDUCE_FRAMES ? PS_REDUCE_FRAMES : left >= 2 ? 2 : 1;
}

static ps_code reduce_chunk(ps_cuda_frame *const *frames, int64_t n_frames, int64_t first_band, int64_t end_band, int64_t frame_stride,
                            ps_error *error) {
    const ps_cuda_system *system = frames[0]->system;
    ps_reduce_arguments args = {};
    args.pixels = ps_cuda_system_pixels(system);
    args.aliases = ps_cuda_system_aliases(system);
    args.n_spectrum = system->n_spectrum;
    args.exact = system->d_exact;
    args.n_exact = system->n_exact;
    args.first_band = (int32_t)first_band;
    args.end_band = (int32_t)end_band;
    args.ssb_scale = 1.0 / (double)system->desc.n_active;
    for (int64_t done = 0; done < n_frames;) {
        int together = frames_together(n_frames - done);
        for (int i = 0; i < together; i++, done++) {
            args.spectra[i] = system->workspace.spectra + done * frame_stride;
            args.inverse_dose[i] = 1.0 / frames[done]->dose;
            args.right_amplitude[i] = frames[done]->d_right_amplitude;
            args.right_phase[i] = frames[done]->d_right_phase;
            args.ssb[i] = frames[done]->d_ssb;
            args.power[i] = frames[done]->d_power;
            if (!(system->methods & PS_METHOD_COMPLEX)) args.right_amplitude[i] = NULL;
        }
        PS_TRY(launch_frames(system, together, &args, error));
    }
    return PS_OK;
}

/* --- a batch --- */

static ps_code check_frames(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    for (int64_t i = 0; i < n_frames; i++) {
        ps_cuda_frame *frame = (ps_cuda_frame *)frames[i];
        if (frame->system != ((ps_cuda_frame *)frames[0])->system)
            return PS_FAIL(error, PS_E_ARGUMENT, "frames 0 and %lld of the batch belong to different systems", (long long)i);
        if (!(dose[i] > 0.0) || isinf(dose[i]))
            return PS_FAIL(error, PS_E_ARGUMENT, "dose of frame %lld of the batch is %g, expected a positive number", (long long)i,
                           dose[i]);
        PS_TRY(ps_cuda_system_require(frame->system, frame->system->methods, error));
        PS_TRY(ps_cuda_frame_ensure_means(frame, error));
    }
    return PS_OK;
}

static ps_code clear_sums(ps_cuda_frame *frame, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    size_t bytes = (size_t)system->desc.n_aliases * sizeof(double2);
    cudaStream_t stream = system->backend->compute;
    frame->is_reduced = false;
    if (system->methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX))
        PS_TRY(PS_CUDA(error, cudaMemsetAsync(frame->d_right_phase, 0, bytes, stream)));
    if (system->methods & PS_METHOD_COMPLEX) PS_TRY(PS_CUDA(error, cudaMemsetAsync(frame->d_right_amplitude, 0, bytes, stream)));
    if (system->methods & PS_METHOD_SSB) PS_TRY(PS_CUDA(error, cudaMemsetAsync(frame->d_ssb, 0, bytes, stream)));
    return PS_CUDA(error, cudaMemsetAsync(frame->d_power, 0, (size_t)system->desc.n_frequencies * sizeof(double), stream));
}

/* Section 6: the image's zero frequency is the mean of all pixels' g(0, k) = mean counts / dose. */
static ps_code set_ssb_zero(ps_cuda_frame *frame, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    if (!(system->methods & PS_METHOD_SSB) || system->zero_alias < 0) return PS_OK;
    double2 value = make_double2(0.0, 0.0);
    for (int64_t i = 0; i < system->desc.n_active; i++) value.x += frame->mean[i] / frame->dose / (double)system->desc.n_active;
    return ps_cuda_send(frame->d_ssb + system->zero_alias, &value, 1, error);
}

/* The spectra of one frame's chunk, unless its complete spectra stand there from an earlier call. */
static ps_code fill_store(ps_cuda_frame *frame, int64_t place, int64_t first_tile, int64_t n_tiles, int64_t frame_stride, ps_error *error) {
    ps_cuda_workspace *workspace = &frame->system->workspace;
    bool whole = n_tiles == frame->system->layout.n_tiles;
    if (whole && workspace->owner[place] == frame->serial) return PS_OK;
    PS_TRY(ps_cuda_spectra(frame, first_tile, n_tiles, workspace->spectra + place * frame_stride, error));
    if (whole) workspace->owner[place] = frame->serial;
    return PS_OK;
}

static ps_code reduce_batch(ps_cuda_frame *const *frames, int64_t n_frames, ps_error *error) {
    ps_cuda_system *system = frames[0]->system;
    const ps_cuda_layout *layout = &system->layout;
    int64_t tiles;
    PS_TRY(ps_cuda_workspace_ensure(system, n_frames, &tiles, error));
    int64_t frame_stride = tiles * system->n_spectrum * PS_CUDA_LANES;
    for (int64_t i = 0; i < system->workspace.n_owners && tiles < layout->n_tiles; i++) system->workspace.owner[i] = 0;
    for (int64_t i = 0; i < n_frames; i++) PS_TRY(clear_sums(frames[i], error));
    for (int64_t band = 0, end; band < layout->n_bands; band = end) {
        end = ps_cuda_chunk_end(layout, band, tiles);
        int64_t first = layout->bands[band].first_tile, last = layout->bands[end - 1].first_tile + layout->bands[end - 1].n_tiles;
        for (int64_t i = 0; i < n_frames; i++) PS_TRY(fill_store(frames[i], i, first, last - first, frame_stride, error));
        PS_TRY(reduce_chunk(frames, n_frames, band, end, frame_stride, error));
    }
    for (int64_t i = 0; i < n_frames; i++)
        if (system->methods & PS_METHOD_PHASE) PS_TRY(ps_cuda_project(frames[i], error));
    PS_TRY(PS_CUDA(error, cudaStreamSynchronize(system->backend->compute)));
    for (int64_t i = 0; i < n_frames; i++) {
        PS_TRY(set_ssb_zero(frames[i], error));
        frames[i]->is_reduced = true;
    }
    return PS_OK;
}

static ps_code reduce(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    PS_TRY(ps_cuda_enter(((ps_cuda_frame *)frames[0])->system->backend, error));
    PS_TRY(check_frames(frames, n_frames, dose, error));
    for (int64_t i = 0; i < n_frames; i++) ((ps_cuda_frame *)frames[i])->dose = dose[i];
    return reduce_batch((ps_cuda_frame *const *)frames, n_frames, error);
}

ps_code ps_cuda_frame_reduce(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    if (n_frames < 1) return PS_OK;
    ps_cuda_backend *backend = ((ps_cuda_frame *)frames[0])->system->backend;
    pthread_mutex_lock(&backend->compute_lock);
    ps_code code = reduce(frames, n_frames, dose, error);
    pthread_mutex_unlock(&backend->compute_lock);
    return code;
}
