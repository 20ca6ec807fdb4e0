/* b, power and the SSB sums of a batch of frames, physics sections 5 and 6, from one evaluation of the transfer for all of them.
 *
 * A warp takes a task, up to 4 (or 8) aliases of one frequency, and walks the tiles of a chunk: lanes over pixels; g of each frame is read
 * once, 256 contiguous bytes a tile; of the columns (alias and side band) only those whose overlap meets the tile are evaluated, in float;
 * each lane adds conj(t) W g to its own sums in shared memory, so the sums need no exchange. After PS_CUDA_SEGMENT_TILES tiles, always the
 * same ones, they are added up over the lanes in double and to the frame's arrays: neither the chunks of g nor the number of frames that
 * share a launch shows in a result. SSB needs both side bands of an alias at a pixel, gamma = t1 - t2, and then adds g conj(gamma)/|gamma|.
 *
 * b of the complex method: sum of conj(t1 + t2) W g; of the phase method: -i sum of conj(t1 - t2) W g.
 * Bytes: 8 per slot, spectrum and frame; 33 per slot and task from the caches. Bound by instruction issue (transfer) for one frame, by
 * memory from about four frames on. Measured alternatives are in docs/performance.md. */
#include <math.h>

#include "kernels/cuda/operations.h"
#include "kernels/cuda/transfer.cuh"

enum { WARPS = 4, MOST_FRAMES = 4 };

typedef struct {
    ps_cuda_pixels pixels;
    ps_cuda_aliases aliases;
    const ps_cuda_task *tasks; /* [n_tasks] */
    int64_t n_tasks, n_spectrum;
    int32_t first_tile, end_tile; /* of the chunk, whole segments */
    double ssb_scale;             /* 1/n_active */
    const float2 *spectra[MOST_FRAMES];
    double inverse_dose[MOST_FRAMES];
    double2 *right_amplitude[MOST_FRAMES], *right_phase[MOST_FRAMES], *ssb[MOST_FRAMES];
    double *power[MOST_FRAMES];
} arguments;

/* Shared memory of one warp. Sums: vectors of 32 lanes; a column's at (alias * FRAMES + frame) * 2 + side, SSB's at alias * FRAMES + frame.
 */
template <int ALIASES, bool RIGHT, bool SSB, int FRAMES> struct __align__(16) warp_memory {
    ps_row_terms<float> terms[2 * ALIASES * PS_CUDA_BAND_ROWS];
    float2 columns[RIGHT ? 2 * ALIASES * FRAMES : 1][PS_CUDA_LANES];
    float2 ssb[SSB ? ALIASES * FRAMES : 1][PS_CUDA_LANES];
};

/* What a lane holds of its pixel. */
template <int FRAMES> struct pixel_data {
    double chi, v;
    float aperture, weight;
    int row;
    float2 g[FRAMES];
};

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

__device__ inline void add_to(double2 *place, double re, double im) {
    *place = make_double2(place->x + re, place->y + im);
}

/* Adds the sums of a segment to the frames' arrays. Eight vectors at a time, four lanes each. */
template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
__device__ inline void flush(const arguments &args, const warp_memory<ALIASES, RIGHT, SSB, FRAMES> *memory, int64_t first_alias,
                             int n_aliases, int lane) {
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
            double scale = args.inverse_dose[frame];
            if (args.right_amplitude[frame])
                add_to(&args.right_amplitude[frame][alias], scale * (mine.x + other.x), scale * (mine.y + other.y));
            add_to(&args.right_phase[frame][alias], scale * (mine.y - other.y), scale * (other.x - mine.x));
        }
    if (SSB)
        for (int at = 0; at < n_aliases * FRAMES; at += 8) {
            int vector = at + lane / 4, frame = vector % FRAMES;
            bool exists = vector < n_aliases * FRAMES;
            double2 sum = sum_vector(memory->ssb[exists ? vector : 0], part);
            double scale = args.inverse_dose[frame] * args.ssb_scale;
            if (exists && part == 0) add_to(&args.ssb[frame][first_alias + vector / FRAMES], scale * sum.x, scale * sum.y);
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

/* conj(a) b added to *sum. */
__device__ inline void add_product(float2 *sum, float a_re, float a_im, float2 b) {
    float2 value = *sum;
    value.x = fmaf(a_re, b.x, fmaf(a_im, b.y, value.x));
    value.y = fmaf(a_re, b.y, fmaf(-a_im, b.x, value.y));
    *sum = value;
}

template <int FRAMES>
__device__ inline void evaluate(const ps_cuda_geometry &g, const ps_row_terms<float> *column, const pixel_data<FRAMES> &pixel, bool on_edge,
                                float *re, float *im) {
    const ps_row_terms<float> &t = column[pixel.row];
    ps_transfer(g, t, pixel.v - t.s0, fmaf(t.y1, (float)pixel.v, t.y0), pixel.chi, pixel.aperture, on_edge, re, im);
}

template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
__device__ inline void add_tile(const ps_cuda_geometry &g, warp_memory<ALIASES, RIGHT, SSB, FRAMES> *memory,
                                const pixel_data<FRAMES> &pixel, unsigned touched, unsigned edge, int lane) {
    for (unsigned left = SSB ? (touched | touched >> 1) & 0x55555555u : touched; left; left &= left - 1) {
        int column = __ffs((int)left) - 1;
        float re = 0.0f, im = 0.0f, gamma_re = 0.0f, gamma_im = 0.0f;
        for (int side = 0; side < (SSB ? 2 : 1); side++) {
            int here = column + side, vector = ((here >> 1) * FRAMES) * 2 + (here & 1);
            if (SSB && !(touched >> here & 1u)) continue;
            evaluate(g, &memory->terms[here * PS_CUDA_BAND_ROWS], pixel, (edge >> here & 1u) != 0u, &re, &im);
            if (RIGHT)
#pragma unroll
                for (int frame = 0; frame < FRAMES; frame++)
                    add_product(&memory->columns[vector + 2 * frame][lane], re * pixel.weight, im * pixel.weight, pixel.g[frame]);
            gamma_re += side ? -re : re;
            gamma_im += side ? -im : im;
        }
        if (!SSB) continue;
        float size2 = fmaf(gamma_re, gamma_re, gamma_im * gamma_im), inverse = size2 > 1e-12f ? ps_rsqrt(size2) : 0.0f;
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++)
            add_product(&memory->ssb[(column >> 1) * FRAMES + frame][lane], gamma_re * inverse, gamma_im * inverse, pixel.g[frame]);
    }
}

template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
static __global__ void __launch_bounds__(32 * WARPS)
    reduce_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    typedef warp_memory<ALIASES, RIGHT, SSB, FRAMES> shared_type;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t index = (int64_t)blockIdx.x * WARPS + warp;
    if (index >= args.n_tasks) return; /* whole warps only */
    shared_type *memory = (shared_type *)ps_shared + warp;
    const ps_cuda_task task = args.tasks[index];
    const ps_cuda_frequency f = args.aliases.frequencies[task.frequency];
    int64_t first_alias = f.first_alias + task.first;
    int n_columns = 2 * task.n_aliases;
    float place_u = 0.0f, place_v = 0.0f, power[FRAMES];
    if (lane < n_columns) {
        double sigma = lane & 1 ? -1.0 : 1.0;
        place_u = (float)(sigma * args.aliases.u[first_alias + lane / 2]);
        place_v = (float)(sigma * args.aliases.v[first_alias + lane / 2]);
    }
#pragma unroll
    for (int frame = 0; frame < FRAMES; frame++) power[frame] = 0.0f;
    clear(memory, lane);
    int band = -1;
    for (int tile = args.first_tile; tile < args.end_tile; tile++) {
        if (args.pixels.tile_band[tile] != band) {
            band = args.pixels.tile_band[tile];
            __syncwarp();
            for (int i = lane; i < n_columns * PS_CUDA_BAND_ROWS; i += 32) {
                int64_t alias = first_alias + i / (2 * PS_CUDA_BAND_ROWS);
                ps_form_row_terms(g, args.pixels.bands[band].u + i % PS_CUDA_BAND_ROWS, args.aliases.u[alias], args.aliases.v[alias],
                                  i / PS_CUDA_BAND_ROWS & 1 ? -1.0 : 1.0, &memory->terms[i]);
            }
            __syncwarp();
        }
        bool touches = false, on_edge = false;
        if (lane < n_columns) ps_overlap(g, args.pixels.tiles[tile], place_u, place_v, &touches, &on_edge);
        unsigned touched = __ballot_sync(PS_FULL_WARP, touches), edge = __ballot_sync(PS_FULL_WARP, touches && on_edge);
        int64_t slot = (int64_t)tile * PS_CUDA_LANES + lane;
        int64_t at = ((int64_t)(tile - args.first_tile) * args.n_spectrum + f.spectrum) * PS_CUDA_LANES + lane;
        pixel_data<FRAMES> pixel;
        pixel.weight = args.pixels.weight[slot];
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++) {
            pixel.g[frame] = args.spectra[frame][at];
            pixel.g[frame].y *= f.conjugate;
            power[frame] = fmaf(pixel.weight, fmaf(pixel.g[frame].x, pixel.g[frame].x, pixel.g[frame].y * pixel.g[frame].y), power[frame]);
        }
        if (touched) {
            pixel.chi = args.pixels.chi[slot];
            pixel.v = args.pixels.v[slot];
            pixel.aperture = args.pixels.aperture[slot];
            pixel.row = args.pixels.row[slot];
            add_tile(g, memory, pixel, touched, edge, lane);
        }
        if ((tile + 1) % PS_CUDA_SEGMENT_TILES == 0 || tile + 1 == args.end_tile) {
            flush(args, memory, first_alias, task.n_aliases, lane);
            clear(memory, lane);
#pragma unroll
            for (int frame = 0; frame < FRAMES; frame++) {
                if (task.sums_power) flush_power(&args.power[frame][task.frequency], power[frame], args.inverse_dose[frame], lane);
                power[frame] = 0.0f;
            }
        }
    }
}

/* --- the launches of one chunk --- */

template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
static ps_code launch(const ps_cuda_system *system, const arguments *args, ps_error *error) {
    if (args->n_tasks == 0) return PS_OK;
    auto kernel = reduce_kernel<ALIASES, RIGHT, SSB, FRAMES>;
    int bytes = (int)sizeof(warp_memory<ALIASES, RIGHT, SSB, FRAMES>) * WARPS;
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)));
    PS_CUDA_LAUNCH(error, kernel, (unsigned)ps_cuda_blocks(args->n_tasks, WARPS), 32 * WARPS, bytes, system->backend->compute,
                   system->geometry, *args);
    return PS_OK;
}

template <bool RIGHT, bool SSB, int FRAMES> static ps_code launch_sizes(const ps_cuda_system *system, arguments *args, ps_error *error) {
    args->tasks = system->d_tasks + system->n_small_tasks;
    args->n_tasks = system->n_tasks - system->n_small_tasks;
    PS_TRY((launch<8, RIGHT, SSB, FRAMES>(system, args, error)));
    args->tasks = system->d_tasks;
    args->n_tasks = system->n_small_tasks;
    return launch<4, RIGHT, SSB, FRAMES>(system, args, error);
}

template <int FRAMES> static ps_code launch_methods(const ps_cuda_system *system, arguments *args, ps_error *error) {
    bool right = system->methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX), ssb = system->methods & PS_METHOD_SSB;
    if (right && ssb) return launch_sizes<true, true, FRAMES>(system, args, error);
    if (right) return launch_sizes<true, false, FRAMES>(system, args, error);
    return launch_sizes<false, true, FRAMES>(system, args, error);
}

static ps_code launch_frames(const ps_cuda_system *system, int n_frames, arguments *args, ps_error *error) {
    if (n_frames == 1) return launch_methods<1>(system, args, error);
    if (n_frames == 2) return launch_methods<2>(system, args, error);
    return launch_methods<MOST_FRAMES>(system, args, error);
}

/* How many of `left` frames the next launch takes: there are kernels for 1, 2 and 4. */
static int frames_together(int64_t left) {
    return left >= MOST_FRAMES ? MOST_FRAMES : left >= 2 ? 2 : 1;
}

static ps_code reduce_chunk(ps_cuda_frame *const *frames, int64_t n_frames, int64_t first_tile, int64_t n_tiles, int64_t frame_stride,
                            ps_error *error) {
    const ps_cuda_system *system = frames[0]->system;
    arguments args = {};
    args.pixels = ps_cuda_system_pixels(system);
    args.aliases = ps_cuda_system_aliases(system);
    args.n_spectrum = system->n_spectrum;
    args.first_tile = (int32_t)first_tile;
    args.end_tile = (int32_t)(first_tile + n_tiles);
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
    int64_t tiles, all = system->layout.n_tiles;
    PS_TRY(ps_cuda_workspace_ensure(system, n_frames, &tiles, error));
    int64_t frame_stride = tiles * system->n_spectrum * PS_CUDA_LANES;
    for (int64_t i = 0; i < system->workspace.n_owners && tiles < all; i++) system->workspace.owner[i] = 0;
    for (int64_t i = 0; i < n_frames; i++) PS_TRY(clear_sums(frames[i], error));
    for (int64_t first = 0; first < all; first += tiles) {
        int64_t n = all - first < tiles ? all - first : tiles;
        for (int64_t i = 0; i < n_frames; i++) PS_TRY(fill_store(frames[i], i, first, n, frame_stride, error));
        PS_TRY(reduce_chunk(frames, n_frames, first, n, frame_stride, error));
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
