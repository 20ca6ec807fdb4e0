/* gamma/|gamma| of one pixel along a line of fine frequencies, physics section 6, for the SSB estimator `phase`.
 *
 * A line is a row of the fine grid or, in a geometry whose steps have changed places, a column: one coordinate of kappa = k - sigma Q is
 * fixed, so chi costs six fused steps in the other. Lengths in steps of the fine grid's frequencies.
 *
 * Where one side band has the frequency to itself only the sign of its amplitude counts, which is read off the thickness argument. */
#ifndef PS_KERNELS_CUDA_SSB_GAMMA_CUH
#define PS_KERNELS_CUDA_SSB_GAMMA_CUH

#include "kernels/cuda/row_phase.cuh"
#include "kernels/cuda/transfer.cuh"

/* One pixel along one line, in shared memory. */
struct __align__(16) ps_gamma_line {
    ps_row_terms terms[2];     /* sigma = +1, -1; sigma chi(k) added to d[0] */
    double v;                  /* k along the line */
    double along, slope, bend; /* thickness arguments at x along the line: along + slope x -+ (bend + thick_v/2 x^2) */
    float across[2], v_f32;    /* rho^2 = across + edge_v s^2 */
    float aperture;            /* A(k); 0: no pixel */
};

/* fixed: the line's place; (u, v): k across and along it; chi: chi(k) in quarter turns. One sigma a call. */
__device__ inline void ps_gamma_form_terms(const ps_cuda_geometry &g, double fixed, double u, double chi, int side, ps_gamma_line *line) {
    double sigma = side ? -1.0 : 1.0;
    ps_form_row_terms(g, u, fixed, 0.0, sigma, &line->terms[side]);
    line->terms[side].d[0] = fma(sigma, chi, line->terms[side].d[0]);
    line->across[side] = (float)(g.edge_u * line->terms[side].p * line->terms[side].p);
}
__device__ inline void ps_gamma_form_line(const ps_cuda_geometry &g, double fixed, double u, double v, float aperture,
                                          ps_gamma_line *line) {
    line->v = v;
    line->along = fixed * fma(g.thick_u, u, -g.tilt_u);
    line->slope = fma(g.thick_v, v, -g.tilt_v);
    line->bend = 0.5 * g.thick_u * fixed * fixed;
    line->v_f32 = (float)v;
    line->aperture = aperture;
}

/* The same in registers, for a walk along the line. */
struct ps_gamma_walk {
    double d[2][7], v, along, slope, bend;
    float across[2], v_f32, aperture;

    __device__ inline explicit ps_gamma_walk(const ps_gamma_line &line)
        : v(line.v), along(line.along), slope(line.slope), bend(line.bend), v_f32(line.v_f32), aperture(line.aperture) {
#pragma unroll
        for (int side = 0; side < 2; side++) {
            across[side] = line.across[side];
#pragma unroll
            for (int j = 0; j < 7; j++) d[side][j] = line.terms[side].d[j];
        }
    }
    __device__ inline double turns(int side, double s) const {
        double x = d[side][6];
#pragma unroll
        for (int j = 5; j >= 0; j--) x = fma(x, s, d[side][j]);
        return x;
    }
};

/* In double: where gamma is small, as the difference of two side bands or on the foot of the soft aperture, float would decide wrongly. */
__device__ inline float2 ps_gamma_unit_exact(const ps_cuda_geometry &g, const ps_gamma_line &line, double x) {
    double re = 0.0, im = 0.0, along = fma(line.slope, x, line.along), bend = fma(0.5 * g.thick_v * x, x, line.bend);
#pragma unroll 1
    for (int side = 0; side < 2; side++) {
        const ps_row_terms &terms = line.terms[side];
        double s = side ? line.v + x : line.v - x, cosine, sine;
        double amplitude = (double)line.aperture * ps_aperture<double>(g, terms.p, s);
        if (!(fma(g.edge_u * terms.p, terms.p, g.edge_v * s * s) < (double)g.reach2)) continue;
        if (g.is_thick) amplitude *= ps_sinc(side ? along + bend : along - bend, 0.0);
        ps_turn(ps_phase(terms, s, 0.0), &cosine, &sine);
        re = fma(side ? -amplitude : amplitude, cosine, re);
        im = fma(side ? -amplitude : amplitude, sine, im);
    }
    return ps_unit_gamma(re, im);
}

/* (cosine, sine): the direction of the only side band. y: its thickness argument; edge: A(kappa). */
__device__ inline float2 ps_gamma_single(const ps_cuda_geometry &g, const ps_gamma_walk &walk, const ps_gamma_line &line, double x, float y,
                                         float edge, bool is_second, float cosine, float sine) {
    ps_sinc_sign sign(y);
    float own = walk.aperture * edge;
    if (own == 0.0f) return make_float2(0.0f, 0.0f);
    if (!(sign.bound * own >= 1e-4f)) return ps_gamma_unit_exact(g, line, x);
    unsigned flip = sign.bits ^ (is_second ? 0x80000000u : 0u);
    return make_float2(ps_flip(cosine, flip), ps_flip(sine, flip));
}

/* x: the frequency along the line, x_f32 the same. */
__device__ inline float2 ps_gamma_unit(const ps_cuda_geometry &g, const ps_gamma_walk &walk, const ps_gamma_line &line, double x,
                                       float x_f32) {
    const float s_f32[2] = {walk.v_f32 - x_f32, walk.v_f32 + x_f32};
    float cosine[2] = {0.0f, 0.0f}, sine[2] = {0.0f, 0.0f}, edge[2] = {1.0f, 1.0f};
    bool reached[2];
#pragma unroll
    for (int side = 0; side < 2; side++) {
        float rho2 = fmaf(g.edge_v_f32 * s_f32[side], s_f32[side], walk.across[side]);
        reached[side] = rho2 < g.reach2;
        if (!reached[side]) continue;
        double s = side ? walk.v + x : walk.v - x;
        ps_turn_fast(walk.turns(side, s), &cosine[side], &sine[side]);
        if (rho2 > g.inner2) edge[side] = ps_aperture<float>(g, line.terms[side].p, s);
    }
    if (!reached[0] && !reached[1]) return make_float2(0.0f, 0.0f);
    double along = fma(walk.slope, x, walk.along), bend = fma(0.5 * g.thick_v * x, x, walk.bend);
    if (!reached[0] || !reached[1]) {
        bool second = reached[1];
        return ps_gamma_single(g, walk, line, x, g.is_thick ? (float)(second ? along + bend : along - bend) : 0.0f,
                               second ? edge[1] : edge[0], second, cosine[0] + cosine[1], sine[0] + sine[1]);
    }
    if (g.is_thick) {
        edge[0] *= ps_sinc(along - bend, 0.0f);
        edge[1] *= ps_sinc(along + bend, 0.0f);
    }
    float re = fmaf(edge[0], cosine[0], -(edge[1] * cosine[1])), im = fmaf(edge[0], sine[0], -(edge[1] * sine[1]));
    float size2 = fmaf(re, re, im * im), own2 = walk.aperture * walk.aperture;
    if (!(size2 * own2 >= 1e-6f)) {
        if (size2 == 0.0f || own2 == 0.0f) return make_float2(0.0f, 0.0f);
        return ps_gamma_unit_exact(g, line, x);
    }
    float inverse = ps_rsqrt(size2);
    return make_float2(re * inverse, im * inverse);
}

#endif
