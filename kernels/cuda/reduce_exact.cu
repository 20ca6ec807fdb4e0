/* b of the aliases nearest to q = 0, physics section 5, all in double.
 *
 * A warp takes one alias and walks the bands of a chunk, lanes over pixels: both side bands, and for each frame of the batch the sums of
 * conj(T) W g for T_amplitude = t1 + t2 and T_phase = i (t1 - t2), added up over the lanes at the end of each segment, as in reduce.cu.
 * About one alias in a hundred comes here, so it costs little and is kept plain; it runs beside reduce.cu on a stream of its own. */
#include "kernels/cuda/reduce_kernels.cuh"

enum { WARPS = 4 };

__device__ inline double warp_sum(double value) {
    for (int other = 16; other > 0; other /= 2) value += __shfl_xor_sync(PS_FULL_WARP, value, other);
    return value;
}

/* One frame's sums. */
struct exact_sums {
    double2 amplitude, phase;

    /* t1, t2: the side bands; g weighted. */
    __device__ inline void add(const double (&re)[2], const double (&im)[2], double x, double y) {
        double sum_re = re[0] + re[1], sum_im = im[0] + im[1], difference_re = re[0] - re[1], difference_im = im[0] - im[1];
        amplitude.x = fma(sum_re, x, fma(sum_im, y, amplitude.x));
        amplitude.y = fma(sum_re, y, fma(-sum_im, x, amplitude.y));
        phase.x = fma(difference_re, y, fma(-difference_im, x, phase.x)); /* -i conj(t1 - t2) W g */
        phase.y = fma(-difference_re, x, fma(-difference_im, y, phase.y));
    }
    __device__ inline void flush(double2 *right_amplitude, double2 *right_phase, double scale, int lane) {
        amplitude = make_double2(scale * warp_sum(amplitude.x), scale * warp_sum(amplitude.y));
        phase = make_double2(scale * warp_sum(phase.x), scale * warp_sum(phase.y));
        if (lane == 0 && right_amplitude) ps_reduce_add(right_amplitude, amplitude.x, amplitude.y);
        if (lane == 0) ps_reduce_add(right_phase, phase.x, phase.y);
        amplitude = phase = make_double2(0.0, 0.0);
    }
};

/* One band: this lane's pixels added to the sums. at: the band's first tile in the chunk; place: of the frequency. */
template <int FRAMES>
__device__ inline void add_band(const ps_cuda_geometry &g, const ps_reduce_arguments &args, const ps_cuda_band &band, double qu, double qv,
                                int at, const ps_g_place &place, float conjugate, exact_sums (&sums)[FRAMES], int lane) {
    ps_row_terms terms[2];
    for (int side = 0; side < 2; side++) ps_form_row_terms(g, band.u + lane % PS_CUDA_BAND_ROWS, qu, qv, side ? -1.0 : 1.0, &terms[side]);
    double v = band.v + lane / PS_CUDA_BAND_ROWS;
#pragma unroll 1
    for (int tile = 0; tile < band.n_tiles; tile++, v += PS_CUDA_TILE_COLUMNS) {
        const ps_cuda_pixel pixel = args.pixels.pixels[(int64_t)(band.first_tile + tile) * PS_CUDA_LANES + lane];
        double re[2], im[2];
#pragma unroll
        for (int side = 0; side < 2; side++)
            ps_transfer(g, terms[side], v - terms[side].place, fma(terms[side].y1, v, terms[side].y0), pixel.chi, (double)pixel.aperture,
                        true, &re[side], &im[side]);
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++) {
            float2 value = ps_g_value(args.lines, args.g[frame], place, at + tile, lane);
            sums[frame].add(re, im, (double)value.x * (double)pixel.weight, (double)(value.y * conjugate) * (double)pixel.weight);
        }
    }
}

template <int FRAMES>
static __global__ void __launch_bounds__(32 * WARPS, 3)
    exact_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ ps_reduce_arguments args) {
    int lane = threadIdx.x % 32;
    int64_t index = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (index >= args.n_exact) return; /* whole warps only */
    int64_t alias = args.exact[index];
    const ps_cuda_frequency f = args.aliases.frequencies[args.aliases.alias_frequency[alias]];
    const ps_g_place place = ps_g_place_of(args.lines, f);
    int at = 0;
    exact_sums sums[FRAMES] = {};
    for (int b = args.first_band; b < args.end_band; b++) {
        const ps_cuda_band band = args.pixels.bands[b];
        add_band(g, args, band, args.aliases.u[alias], args.aliases.v[alias], at, place, f.conjugate, sums, lane);
        at += band.n_tiles;
        if (!band.ends_segment) continue;
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++)
            sums[frame].flush(args.right_amplitude[frame] ? &args.right_amplitude[frame][alias] : NULL, &args.right_phase[frame][alias],
                              args.inverse_dose[frame], lane);
    }
}

template <int FRAMES> static ps_code launch(const ps_cuda_system *system, const ps_reduce_arguments *args, ps_error *error) {
    PS_CUDA_LAUNCH(error, exact_kernel<FRAMES>, (unsigned)ps_cuda_blocks(args->n_exact, WARPS), 32 * WARPS, 0, system->backend->side,
                   system->geometry, *args);
    return PS_OK;
}

ps_code ps_reduce_launch_exact(const ps_cuda_system *system, int n_frames, const ps_reduce_arguments *args, ps_error *error) {
    if (args->n_exact == 0) return PS_OK;
    if (n_frames == 1) return launch<1>(system, args, error);
    if (n_frames == 2) return launch<2>(system, args, error);
    return launch<PS_REDUCE_FRAMES>(system, args, error);
}
