/* b, data norm and the SSB sums of a batch of frames, physics sections 5 and 6, from one evaluation of the transfer for all of them.
 *
 * A warp takes a task, up to 4 (or 8) aliases of one frequency, and walks the bands of a chunk in strips of tiles, lanes over pixels. It
 * copies g of a strip to shared memory, 256 contiguous bytes a tile and frame, while the next strip is on its way to the level-2 cache;
 * then it takes one column (alias and side band) after another: the row's polynomial goes to registers, the run of tiles that the overlap
 * covers is evaluated in float (row_phase.cuh), each lane sums conj(t) W g, and the run's sum over the lanes joins the segment's in shared
 * memory. At the end of a segment of bands, always the same ones, these are added up in double and go to the frame's arrays: neither the
 * chunks of g nor the number of frames that share a launch shows in a result. SSB takes both side bands of an alias at a time
 * (reduce_strip.cuh).
 *
 * Aliases near q = 0 go to reduce_exact.cu instead. b of the complex method: sum of conj(t1 + t2) W g; of the phase method: -i sum of
 * conj(t1 - t2) W g. Where g is the conjugate of what is stored, the phases change sign and so does the sum's imaginary part.
 * Bytes: 8 per slot, spectrum and frame; 4 to 12 per slot and column from the caches. Bound by instruction issue: 64 instructions a tile
 * and column for one frame, 80 for four. Measured alternatives are in docs/performance.md. */
#include "kernels/cuda/reduce_strip.cuh"

enum { WARPS = 4 };

/* --- a segment's sums --- */

template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
__device__ inline void clear(ps_strip_memory<ALIASES, RIGHT, SSB, FRAMES> *memory, int lane) {
    if constexpr (RIGHT)
        for (int i = lane; i < 2 * ALIASES * FRAMES; i += 32) memory->right[i / FRAMES][i % FRAMES] = make_float2(0.0f, 0.0f);
    if constexpr (SSB)
        for (int i = lane; i < ALIASES * FRAMES; i += 32) memory->ssb[i / FRAMES][i % FRAMES] = make_float2(0.0f, 0.0f);
}

/* Lanes over (alias, frame). */
template <int ALIASES, bool SSB, int FRAMES>
__device__ inline void flush_right(const ps_cuda_geometry &g, const ps_reduce_arguments &args,
                                   const ps_strip_memory<ALIASES, true, SSB, FRAMES> *memory, int lane) {
    int frame = lane % FRAMES, mine = lane / FRAMES; /* at most 32 */
    if (mine >= memory->task.n_aliases) return;
    int64_t alias = memory->first_alias + mine;
    if (ps_reduce_is_exact(g, args.aliases.u[alias], args.aliases.v[alias])) return;
    float2 t1 = memory->right[2 * mine][frame], t2 = memory->right[2 * mine + 1][frame];
    double scale = args.inverse_dose[frame], x1 = scale * (double)t1.x, x2 = scale * (double)t2.x;
    double y1 = memory->conjugate * scale * (double)t1.y, y2 = memory->conjugate * scale * (double)t2.y;
    if (args.right_amplitude[frame]) ps_reduce_add(&args.right_amplitude[frame][alias], x1 + x2, y1 + y2);
    ps_reduce_add(&args.right_phase[frame][alias], y1 - y2, x2 - x1);
}

template <int ALIASES, bool RIGHT, int FRAMES>
__device__ inline void flush_ssb(const ps_reduce_arguments &args, const ps_strip_memory<ALIASES, RIGHT, true, FRAMES> *memory, int lane) {
    int frame = lane % FRAMES, mine = lane / FRAMES;
    if (mine >= memory->task.n_aliases) return;
    float2 sum = memory->ssb[mine][frame];
    double scale = args.inverse_dose[frame] * args.ssb_scale;
    ps_reduce_add(&args.ssb[frame][memory->first_alias + mine], scale * (double)sum.x, memory->conjugate * scale * (double)sum.y);
}

__device__ inline void flush_data_norm(double *data_norm, float sum, double inverse_dose, int lane) {
    double total = (double)sum;
    for (int other = 16; other > 0; other /= 2) total += __shfl_xor_sync(PS_FULL_WARP, total, other);
    if (lane == 0) *data_norm += total * inverse_dose * inverse_dose;
}

/* --- a band --- */

/* Terms of a task's columns in one band, to shared memory, and the run of column `lane`. */
template <typename Memory>
__device__ inline uint2 enter_band(const ps_cuda_geometry &g, const ps_reduce_arguments &args, const ps_cuda_band &band, Memory *memory,
                                   int lane) {
    const double *u = args.aliases.u + memory->first_alias, *v = args.aliases.v + memory->first_alias;
    int n_aliases = memory->task.n_aliases;
    for (int i = lane; i < 2 * n_aliases * PS_CUDA_BAND_ROWS; i += 32) {
        int column = i / PS_CUDA_BAND_ROWS;
        ps_form_row_phase(g, band.u + i % PS_CUDA_BAND_ROWS, u[column / 2], v[column / 2], column & 1 ? -1.0 : 1.0, memory->conjugate,
                          &memory->rows[i]);
    }
    ps_reach reach = {1, 0, 1, 0};
    float sigma = lane & 1 ? -1.0f : 1.0f;
    if (lane < 2 * n_aliases) reach = ps_reach_of(g, band, sigma * (float)u[lane / 2], sigma * (float)v[lane / 2]);
    return ps_run_of(reach, band.n_tiles);
}

/* Copies g of a strip's n tiles, the chunk's from `tile` on, to shared memory, two tiles at a time, 16 bytes a lane. */
template <int FRAMES>
__device__ inline void fetch_strip(const ps_reduce_arguments &args, const ps_g_place &place, int tile, int n,
                                   float2 (*g)[PS_REDUCE_STRIP][PS_CUDA_LANES], int lane) {
    int half = lane / 16, part = lane % 16, line = part / 8;
    int64_t step = 2 * (line ? args.lines.step[1] : args.lines.step[0]);
#pragma unroll
    for (int frame = 0; frame < FRAMES; frame++) {
        const char *source = ps_g_line(args.lines, args.g[frame], place, tile + half, line) + 16 * (part % 8);
#pragma unroll
        for (int i = 0; i < PS_REDUCE_STRIP; i += 2, source += step)
            if (i + half < n) ps_copy_async16(&g[frame][i + half][2 * part], source);
    }
}

/* Of the compact form: the lane's own values of the strip. */
template <int FRAMES> __device__ inline void unpack_strip(float2 (*g)[PS_REDUCE_STRIP][PS_CUDA_LANES], int n, int lane) {
#pragma unroll
    for (int frame = 0; frame < FRAMES; frame++)
#pragma unroll 2
        for (int i = 0; i < n; i++) ps_g_unpack_tile(g[frame][i], lane);
}

/* Asks for the next strip, a line of 128 bytes a lane. */
template <int FRAMES>
__device__ inline void prefetch_strip(const ps_reduce_arguments &args, const ps_g_place &place, int tile, int n, int lane) {
    if (lane >= 2 * n) return;
#pragma unroll
    for (int frame = 0; frame < FRAMES; frame++) ps_prefetch(ps_g_line(args.lines, args.g[frame], place, tile + lane / 2, lane % 2));
}

template <int FRAMES> __device__ inline void add_data_norm(const ps_strip &strip, int n, float (&data_norm)[FRAMES]) {
    ps_tile_walk at(strip, 0, 0);
#pragma unroll 4
    for (int i = 0; i < n; i++, at.advance()) {
        float weight = at.tile->weight[0];
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++) {
            float2 g = at.value(frame);
            data_norm[frame] = fmaf(weight, fmaf(g.x, g.x, g.y * g.y), data_norm[frame]);
        }
    }
}

/* The columns, or aliases, that have tiles in the strip. mine: the run of column `lane`. */
template <int ALIASES, bool RIGHT, bool SSB, int FRAMES> struct add_columns {
    static __device__ inline void run(const ps_cuda_geometry &g, ps_strip_memory<ALIASES, RIGHT, SSB, FRAMES> *memory,
                                      const ps_strip &strip, ps_run mine, unsigned wanted, int lane) {
        wanted = (wanted | wanted >> 1) & 0x55555555u;
        for (; wanted; wanted &= wanted - 1) {
            int column = __ffs((int)wanted) - 1;
            const ps_run runs[2] = {ps_run_of_lane(mine, column), ps_run_of_lane(mine, column + 1)};
            float2 ssb[FRAMES] = {}, right[2][FRAMES] = {};
            ps_add_alias<RIGHT>(g, &memory->rows[column * PS_CUDA_BAND_ROWS + lane % PS_CUDA_BAND_ROWS], strip, runs, ssb, right);
            ps_add_sums(memory->ssb[column / 2], ssb, lane);
            if constexpr (RIGHT) {
                ps_add_sums(memory->right[column], right[0], lane);
                ps_add_sums(memory->right[column + 1], right[1], lane);
            }
        }
    }
};
template <int ALIASES, int FRAMES> struct add_columns<ALIASES, true, false, FRAMES> {
    static __device__ inline void run(const ps_cuda_geometry &g, ps_strip_memory<ALIASES, true, false, FRAMES> *memory,
                                      const ps_strip &strip, ps_run mine, unsigned wanted, int lane) {
        for (; wanted; wanted &= wanted - 1) {
            int column = __ffs((int)wanted) - 1;
            float2 sums[FRAMES] = {};
            ps_add_column(g, ps_column(&memory->rows[column * PS_CUDA_BAND_ROWS + lane % PS_CUDA_BAND_ROWS]), strip,
                          ps_run_of_lane(mine, column), sums);
            ps_add_sums(memory->right[column], sums, lane);
        }
    }
};

template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
__device__ inline void end_segment(const ps_cuda_geometry &g, const ps_reduce_arguments &args,
                                   ps_strip_memory<ALIASES, RIGHT, SSB, FRAMES> *memory, float (&data_norm)[FRAMES], int lane) {
    __syncwarp();
    if constexpr (RIGHT) flush_right(g, args, memory, lane);
    if constexpr (SSB) flush_ssb(args, memory, lane);
    __syncwarp();
    clear(memory, lane);
#pragma unroll
    for (int frame = 0; frame < FRAMES; frame++) {
        if (memory->task.sums_data_norm)
            flush_data_norm(&args.data_norm[frame][memory->task.frequency], data_norm[frame], args.inverse_dose[frame], lane);
        data_norm[frame] = 0.0f;
    }
}

/* --- a task --- */

/* What is seldom needed goes to shared memory. */
template <typename Memory>
__device__ inline void enter_task(const ps_reduce_arguments &args, const ps_cuda_task &task, Memory *memory, int lane) {
    const ps_cuda_frequency &f = args.aliases.frequencies[task.frequency];
    if (lane == 0) {
        memory->task = task;
        memory->first_alias = f.first_alias + task.first;
        memory->conjugate = f.conjugate;
        memory->place = ps_g_place_of(args.lines, f);
    }
}

/* As many as registers and shared memory allow without spills. */
template <bool RIGHT, bool SSB, int FRAMES> constexpr int blocks_per_sm() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
    if (SSB) return RIGHT && FRAMES == PS_REDUCE_FRAMES ? 3 : RIGHT || FRAMES > 1 ? 4 : 5;
    return FRAMES == PS_REDUCE_FRAMES ? 5 : FRAMES == 1 ? 7 : 6;
#else
    return SSB ? (RIGHT && FRAMES == PS_REDUCE_FRAMES ? 2 : 3) : FRAMES == PS_REDUCE_FRAMES ? 5 : 6;
#endif
}

template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
static __global__ void __launch_bounds__(32 * WARPS, (blocks_per_sm<RIGHT, SSB, FRAMES>()))
    reduce_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ ps_reduce_arguments args) {
    extern __shared__ __align__(16) unsigned char ps_shared[];
    typedef ps_strip_memory<ALIASES, RIGHT, SSB, FRAMES> shared_type;
    float2 *directions = (float2 *)ps_shared;
    ps_fill_directions(directions);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t index = (int64_t)blockIdx.x * WARPS + warp;
    if (index >= args.n_tasks) return; /* whole warps only */
    shared_type *memory = (shared_type *)(directions + PS_DIRECTIONS) + warp;
    int tile = 0; /* of the chunk */
    enter_task(args, args.tasks[index], memory, lane);
    float data_norm[FRAMES] = {};
    clear(memory, lane);
    for (int b = args.first_band; b < args.end_band; b++) {
        const ps_cuda_band &band = args.pixels.bands[b]; /* read again where needed: registers are short */
        __syncwarp();
        const uint2 run = enter_band(g, args, band, memory, lane);
        for (int first = 0; first < band.n_tiles; first += PS_REDUCE_STRIP) {
            int n = min(PS_REDUCE_STRIP, band.n_tiles - first);
            const ps_run mine = ps_run_in_strip(run, first);
            unsigned wanted = __ballot_sync(PS_FULL_WARP, mine.begin() < mine.end());
            __syncwarp();
            fetch_strip<FRAMES>(args, memory->place, tile, n, memory->g, lane);
            ps_copy_commit();
            tile += n;
            prefetch_strip<FRAMES>(args, memory->place, tile, min(PS_REDUCE_STRIP, band.n_tiles - first - n), lane);
            ps_copy_wait<0>();
            __syncwarp();
            if (args.lines.is_compact) unpack_strip<FRAMES>(memory->g, n, lane);
            const ps_strip strip = {band.v + lane / PS_CUDA_BAND_ROWS + PS_CUDA_TILE_COLUMNS * first,
                                    (const ps_cuda_tile *)(args.pixels.tiles[band.first_tile + first].aperture + lane),
                                    &memory->g[0][0][lane], directions};
            if (memory->task.sums_data_norm) add_data_norm(strip, n, data_norm);
            add_columns<ALIASES, RIGHT, SSB, FRAMES>::run(g, memory, strip, mine, wanted, lane);
        }
        if (band.ends_segment) end_segment(g, args, memory, data_norm, lane);
    }
}

/* --- the launches of one chunk --- */

template <int ALIASES, bool RIGHT, bool SSB, int FRAMES>
static ps_code launch(const ps_cuda_system *system, const ps_reduce_arguments *args, cudaStream_t stream, ps_error *error) {
    if (args->n_tasks == 0) return PS_OK;
    auto kernel = reduce_kernel<ALIASES, RIGHT, SSB, FRAMES>;
    int bytes = (int)(sizeof(ps_strip_memory<ALIASES, RIGHT, SSB, FRAMES>) * WARPS + PS_DIRECTIONS * sizeof(float2));
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)));
    PS_CUDA_LAUNCH(error, kernel, (unsigned)ps_cuda_blocks(args->n_tasks, WARPS), 32 * WARPS, bytes, stream, system->geometry, *args);
    return PS_OK;
}

template <bool RIGHT, bool SSB, int FRAMES>
static ps_code launch_sizes(const ps_cuda_system *system, ps_reduce_arguments *args, ps_error *error) {
    args->tasks = system->d_tasks + system->n_small_tasks;
    args->n_tasks = system->n_tasks - system->n_small_tasks;
    PS_TRY((launch<8, RIGHT, SSB, FRAMES>(system, args, system->backend->side, error)));
    args->tasks = system->d_tasks;
    args->n_tasks = system->n_small_tasks;
    return launch<4, RIGHT, SSB, FRAMES>(system, args, system->backend->compute, error);
}

template <int FRAMES> static ps_code launch_methods(const ps_cuda_system *system, ps_reduce_arguments *args, ps_error *error) {
    bool right = system->methods & PS_METHODS_RIGHT_SIDE, ssb = system->methods & PS_METHOD_SSB;
    if (right && ssb) return launch_sizes<true, true, FRAMES>(system, args, error);
    if (right) return launch_sizes<true, false, FRAMES>(system, args, error);
    return launch_sizes<false, true, FRAMES>(system, args, error);
}

static ps_code launch_frames(const ps_cuda_system *system, int n_frames, ps_reduce_arguments *args, ps_error *error) {
    if (n_frames == 1) return launch_methods<1>(system, args, error);
    if (n_frames == 2) return launch_methods<2>(system, args, error);
    return launch_methods<PS_REDUCE_FRAMES>(system, args, error);
}

/* The exact aliases and the larger tasks go beside the others, on the side stream. */
ps_code ps_reduce_launch(const ps_cuda_system *system, int n_frames, ps_reduce_arguments *args, ps_error *error) {
    const ps_cuda_backend *backend = system->backend;
    bool right = system->methods & PS_METHODS_RIGHT_SIDE;
    PS_TRY(ps_cuda_stream_join(backend->side, backend->compute, backend->compute_done, error));
    if (right) PS_TRY(ps_reduce_launch_exact(system, n_frames, args, error));
    PS_TRY(launch_frames(system, n_frames, args, error));
    return ps_cuda_stream_join(backend->compute, backend->side, backend->side_done, error);
}
