/* b of the aliases nearest to q = 0, physics section 5, all in double.
 *
 * A warp takes one alias and one frame and walks the bands of a chunk, lanes over pixels: both side bands, the sums of conj(T) W g for
 * T_amplitude = t1 + t2 and T_phase = i (t1 - t2), added up over the lanes at the end of each segment, as in reduce.cu. About one alias in
 * a hundred comes here, so it costs little and is kept plain. */
#include "kernels/cuda/reduce.cuh"

enum { WARPS = 4 };

__device__ inline double warp_sum(double value) {
    for (int other = 16; other > 0; other /= 2) value += __shfl_xor_sync(PS_FULL_WARP, value, other);
    return value;
}

/* One band: this lane's pixels added to the four sums. at: this lane's g in the band's first tile. */
__device__ inline void add_band(const ps_cuda_geometry &g, const ps_cuda_pixels &pixels, const ps_cuda_band &band, double qu, double qv,
                                const float2 *spectrum, int64_t step, float conjugate, double2 *amplitude, double2 *phase, int lane) {
    ps_row_terms terms[2];
    for (int side = 0; side < 2; side++) ps_form_row_terms(g, band.u + lane % PS_CUDA_BAND_ROWS, qu, qv, side ? -1.0 : 1.0, &terms[side]);
    double v = band.v + lane / PS_CUDA_BAND_ROWS;
#pragma unroll 1
    for (int tile = 0; tile < band.n_tiles; tile++, v += PS_CUDA_TILE_COLUMNS) {
        const ps_cuda_pixel pixel = pixels.pixels[(int64_t)(band.first_tile + tile) * PS_CUDA_LANES + lane];
        float2 value = spectrum[tile * step];
        double re[2], im[2], x = (double)value.x * (double)pixel.weight, y = (double)(value.y * conjugate) * (double)pixel.weight;
#pragma unroll
        for (int side = 0; side < 2; side++)
            ps_transfer(g, terms[side], v - terms[side].place, fma(terms[side].y1, v, terms[side].y0), pixel.chi, (double)pixel.aperture,
                        true, &re[side], &im[side]);
        double sum_re = re[0] + re[1], sum_im = im[0] + im[1], difference_re = re[0] - re[1], difference_im = im[0] - im[1];
        amplitude->x = fma(sum_re, x, fma(sum_im, y, amplitude->x));
        amplitude->y = fma(sum_re, y, fma(-sum_im, x, amplitude->y));
        phase->x = fma(difference_re, y, fma(-difference_im, x, phase->x)); /* -i conj(t1 - t2) W g */
        phase->y = fma(-difference_re, x, fma(-difference_im, y, phase->y));
    }
}

static __global__ void __launch_bounds__(32 * WARPS, 3)
    exact_kernel(const __grid_constant__ ps_cuda_geometry g, const __grid_constant__ ps_reduce_arguments args) {
    int lane = threadIdx.x % 32, frame = blockIdx.y;
    int64_t index = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (index >= args.n_exact) return; /* whole warps only */
    int64_t alias = args.exact[index], step = args.n_spectrum * PS_CUDA_LANES;
    const ps_cuda_frequency f = args.aliases.frequencies[args.aliases.alias_frequency[alias]];
    const float2 *spectrum = args.spectra[frame] + f.spectrum * PS_CUDA_LANES + lane;
    int32_t chunk_tile = args.pixels.bands[args.first_band].first_tile;
    double2 amplitude = make_double2(0.0, 0.0), phase = amplitude;
    for (int b = args.first_band; b < args.end_band; b++) {
        const ps_cuda_band band = args.pixels.bands[b];
        add_band(g, args.pixels, band, args.aliases.u[alias], args.aliases.v[alias], spectrum + (band.first_tile - chunk_tile) * step, step,
                 f.conjugate, &amplitude, &phase, lane);
        if (!band.ends_segment) continue;
        double scale = args.inverse_dose[frame];
        amplitude = make_double2(scale * warp_sum(amplitude.x), scale * warp_sum(amplitude.y));
        phase = make_double2(scale * warp_sum(phase.x), scale * warp_sum(phase.y));
        if (lane == 0 && args.right_amplitude[frame]) ps_reduce_add(&args.right_amplitude[frame][alias], amplitude.x, amplitude.y);
        if (lane == 0) ps_reduce_add(&args.right_phase[frame][alias], phase.x, phase.y);
        amplitude = phase = make_double2(0.0, 0.0);
    }
}

ps_code ps_reduce_launch_exact(const ps_cuda_system *system, int n_frames, const ps_reduce_arguments *args, ps_error *error) {
    if (args->n_exact == 0) return PS_OK;
    dim3 grid((unsigned)ps_cuda_blocks(args->n_exact, WARPS), (unsigned)n_frames);
    PS_CUDA_LAUNCH(error, exact_kernel, grid, 32 * WARPS, 0, system->backend->compute, system->geometry, *args);
    return PS_OK;
}
