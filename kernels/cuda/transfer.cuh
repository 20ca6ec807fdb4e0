/* The transfer of one pixel and one side band, physics section 3: t1 (sigma = +1) or t2 (sigma = -1),
 *
 *     t = w A(k) A(kappa) exp(i sigma (chi(k) - chi(kappa))),  kappa = k - sigma q.
 *
 * chi is a polynomial of degree 6 in detector pixels (p, s). A column of the transfer, one alias and one sigma, meets a detector row
 * in a polynomial of s alone, so its seven coefficients are formed once per row and a pixel costs six fused steps. They are
 * evaluated in double on every path: with 1 mm of spherical aberration chi passes hundreds of turns, and what remains after
 * taking whole turns off must be good to 1e-7. Everything after that is in Real, by short polynomials in a quarter turn: sin and cos
 * to 7e-15 and 6e-14 (double), 5e-9 and 5e-11 (float); sin(x)/x to 5e-14 and 4e-9. */
#ifndef PS_KERNELS_CUDA_TRANSFER_CUH
#define PS_KERNELS_CUDA_TRANSFER_CUH

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/intrinsics.cuh"

/* What a column and a detector row have in common. */
struct __align__(16) ps_row_terms {
    double d[7];  /* -sigma chi(kappa) in quarter turns = sum of d[j] s^j */
    double p;     /* kappa along the detector's rows, pixels */
    double place; /* s = v - place */
    double sigma;
    double y0, y1; /* thickness argument in half turns: y = y0 + y1 v */
};

/* Coefficients in powers of r^2: sin(pi r/2)/r and cos(pi r/2) for |r| <= 1/2, sin(pi r)/(pi r) for |r| <= 1/2. Constant memory feeds
 * a fused step directly, where a literal would cost two moves. */
static __constant__ double ps_sine[6] = {1.5707963267948899,     -0.64596409750431105,   0.079692626155809257,
                                         -0.0046817525921662067, 0.00016042926828128563, -3.5563914385380938e-06};
static __constant__ double ps_cosine[6] = {0.99999999999994449,   -1.2337005501201781,    0.25366950715430731,
                                           -0.020863468008997469, 0.00091916176782146498, -2.4851012742648956e-05};
static __constant__ double ps_sinc_series[7] = {0.99999999999994993, -1.6449340668285535,    0.81174242402254182,   -0.19075179381244922,
                                                0.02614750064613745, -0.0023440371796256106, 0.00014244306891269084};

/* u: the row, from k = 0; (qu, qv): the alias; all in detector pixels. */
__device__ inline void ps_form_row_terms(const ps_cuda_geometry &g, double u, double qu, double qv, double sigma, ps_row_terms *terms) {
    bool mirror = g.mirrored && sigma > 0.0;
    double p = u - sigma * qu, x = mirror ? -p : p;
#pragma unroll
    for (int j = 0; j <= 6; j++) {
        double d = g.chi[ps_cuda_chi_index(6 - j, j)];
#pragma unroll
        for (int i = 5 - j; i >= 0; i--) d = fma(d, x, g.chi[ps_cuda_chi_index(i, j)]);
        terms->d[j] = mirror && (j & 1) ? sigma * d : -sigma * d;
    }
    terms->p = p;
    terms->place = sigma * qv;
    terms->sigma = sigma;
    double bend = 0.5 * fma(g.thick_u * qu, qu, g.thick_v * qv * qv), tilt = fma(g.tilt_u, qu, g.tilt_v * qv);
    terms->y0 = fma(g.thick_u * qu, u, -sigma * bend) - tilt;
    terms->y1 = g.thick_v * qv;
}

/* -sigma chi(kappa) + sigma chi(k), quarter turns. */
__device__ inline double ps_phase(const ps_row_terms &t, double s, double chi) {
    double x = t.d[6];
#pragma unroll
    for (int j = 5; j >= 0; j--) x = fma(x, s, t.d[j]);
    return fma(t.sigma, chi, x);
}

/* x with its sign changed where bit 31 of `bits` is set. */
__device__ inline float ps_flip(float x, unsigned bits) {
    return __uint_as_float(__float_as_uint(x) ^ (bits & 0x80000000u));
}
__device__ inline double ps_flip(double x, unsigned bits) {
    return __hiloint2double((int)((unsigned)__double2hiint(x) ^ (bits & 0x80000000u)), __double2loint(x));
}

/* exp(i phase) for a phase in quarter turns; |phase| < 2^21 (float), 2^30 (double). */
__device__ inline void ps_turn(double phase, float *cosine, float *sine) {
    unsigned turn = (unsigned)__double2loint(phase + 0x1.8p22); /* units of 2^-30 quarter turns, modulo a full turn */
    unsigned nearest = turn + 0x20000000u;                      /* bits 31 and 30: the nearest quarter */
    float r = (float)(int)(turn << 2) * 0x1p-32f, z = r * r;
    float s = r * fmaf(fmaf(fmaf(-0.004602177f, z, 0.0796802281f), z, -0.645963479f), z, 1.57079632f);
    float c = fmaf(fmaf(fmaf(fmaf(0.000903631703f, z, -0.0208600713f), z, 0.253669204f), z, -1.23370054f), z, 1.0f);
    bool swap = nearest & 0x40000000u;
    *cosine = ps_flip(swap ? s : c, nearest + 0x40000000u);
    *sine = ps_flip(swap ? c : s, nearest);
}
__device__ inline void ps_turn(double phase, double *cosine, double *sine) {
    double shifted = phase + 0x1.8p52;
    unsigned quadrant = (unsigned)__double2loint(shifted);
    double r = phase - (shifted - 0x1.8p52), z = r * r;
    double s = ps_sine[5], c = ps_cosine[5];
#pragma unroll
    for (int i = 4; i >= 0; i--) {
        s = fma(s, z, ps_sine[i]);
        c = fma(c, z, ps_cosine[i]);
    }
    s *= r;
    bool swap = quadrant & 1u;
    *cosine = ps_flip(swap ? s : c, (quadrant + 1u) << 30);
    *sine = ps_flip(swap ? c : s, quadrant << 30);
}

/* sin(pi y)/(pi y). y is formed in double: near 0 it is a small difference of large terms. */
__device__ inline float ps_sinc(double y_exact, float) {
    float y = (float)y_exact, shifted = y + 0x1.8p23f, r = y - (shifted - 0x1.8p23f), z = r * r;
    float q = fmaf(fmaf(fmaf(fmaf(0.0247197574f, z, -0.190442309f), z, 0.81171493f), z, -1.64493321f), z, 1.0f);
    float w = r == y ? q : q * r * ps_rcp(y);
    return ps_flip(w, __float_as_uint(shifted) << 31);
}
__device__ inline double ps_sinc(double y, double) {
    double shifted = y + 0x1.8p52, r = y - (shifted - 0x1.8p52), z = r * r, q = ps_sinc_series[6];
    int whole = __double2loint(shifted);
#pragma unroll
    for (int i = 5; i >= 0; i--) q = fma(q, z, ps_sinc_series[i]);
    double w = whole == 0 ? q : q * r * ps_rcp(y);
    return ps_flip(w, (unsigned)whole << 31);
}

/* The sign of sin(pi y)/(pi y), as the sign bit to flip, and a lower bound of its size: |sin(pi r)| >= 2 |r| for |r| <= 1/2. */
struct ps_sinc_sign {
    unsigned bits;
    float bound;
    __device__ inline explicit ps_sinc_sign(float y) {
        float shifted = y + 0x1.8p23f, r = y - (shifted - 0x1.8p23f);
        bits = (__float_as_uint(shifted) << 31) ^ __float_as_uint(r) ^ __float_as_uint(y);
        bound = r == y ? 0.63f : fabsf(r) * 0.63f * ps_rcp(fabsf(y));
    }
};

/* The soft aperture at kappa = (p, s) pixels. The distance from its edge is a difference of nearly equal numbers, so 1 - rho^2 is formed
 * in double, and 1 - rho = (1 - rho^2)/(1 + rho). */
template <typename Real> __device__ inline Real ps_aperture(const ps_cuda_geometry &g, double p, double s) {
    double inside = fma(-g.edge_v * s, s, fma(-g.edge_u * p, p, 1.0));
    Real numerator = (Real)inside, rho2 = (Real)1 - numerator + (Real)1e-30;
    Real rho = rho2 * ps_rsqrt(rho2), width = sizeof(Real) == sizeof(float) ? (Real)g.width_f32 : (Real)g.width;
    if (!g.equal_pitch) {
        Real row = (Real)(g.direction_u[0] * p + g.direction_v[0] * s), column = (Real)(g.direction_u[1] * p + g.direction_v[1] * s);
        Real a = row * (Real)g.pitch_rad[0], b = column * (Real)g.pitch_rad[1];
        Real k2 = fma(row, row, column * column), h2 = fma(a, a, b * b);
        if (k2 == (Real)0) return (Real)1;
        width = (Real)g.semiangle_rad * k2 * ps_rsqrt(k2 * h2);
    }
    Real value = fma(numerator * width, ps_rcp((Real)1 + rho), (Real)0.5);
    return value < (Real)0 ? (Real)0 : value > (Real)1 ? (Real)1 : value;
}

/* t as (real, imaginary). amplitude: A(k) times whatever weight the caller folds in; on_edge: A(kappa) may be less than 1. */
template <typename Real>
__device__ inline void ps_transfer(const ps_cuda_geometry &g, const ps_row_terms &terms, double s, double y, double chi, Real amplitude,
                                   bool on_edge, Real *re, Real *im) {
    Real cosine, sine;
    ps_turn(ps_phase(terms, s, chi), &cosine, &sine);
    if (g.is_thick) amplitude *= ps_sinc(y, (Real)0);
    if (on_edge) amplitude *= ps_aperture<Real>(g, terms.p, s);
    *re = amplitude * cosine;
    *im = amplitude * sine;
}

/* SSB divides gamma = t1 - t2 by its size, and drops it below a floor. Where gamma is small, as the difference of two side bands or on the
 * foot of the soft aperture, the float transfer's rounding would show in the phase and decide at the floor: there gamma is formed again in
 * double. */
static constexpr float ps_gamma_floor2 = 1e-12f; /* section 6: 1e-6 squared */
__device__ inline bool ps_gamma_is_small(float re, float im) {
    float size2 = fmaf(re, re, im * im);
    return size2 > 0.0f && size2 < 1e-6f;
}

/* conj(gamma)/|gamma|'s parts: gamma scaled to size 1, or 0 below the floor. */
template <typename Real> __device__ inline float2 ps_unit_gamma(Real re, Real im) {
    Real size2 = fma(re, re, im * im);
    if (!(size2 > (Real)ps_gamma_floor2)) return make_float2(0.0f, 0.0f);
    Real inverse = ps_rsqrt(size2);
    return make_float2((float)(re * inverse), (float)(im * inverse));
}

/* Tiles of a band that the aperture around (u, v) reaches, first to last (none: first > last), and those of them where it is 1. */
struct ps_reach {
    int first, last, inner_first, inner_last;
};

__device__ inline ps_reach ps_reach_of(const ps_cuda_geometry &g, const ps_cuda_band &band, float u, float v) {
    const float width = (float)(PS_CUDA_TILE_COLUMNS - 1), step = 1.0f / (float)PS_CUDA_TILE_COLUMNS;
    float away = fabsf(band.middle_u - u), near_u = fmaxf(away - band.half_u, 0.0f), far_u = away + band.half_u;
    float outer2 = g.reach2 - g.edge_u_f32 * near_u * near_u, inner2 = g.inner2 - g.edge_u_f32 * far_u * far_u;
    float left = v - (float)band.v;
    ps_reach reach = {1, 0, 1, 0};
    if (outer2 > 0.0f) {
        float half = outer2 * g.inverse_edge_v * ps_rsqrt(outer2 * g.inverse_edge_v);
        reach.first = max((int)ceilf((left - half - width) * step), 0);
        reach.last = min((int)floorf((left + half) * step), band.n_tiles - 1);
    }
    if (inner2 > 0.0f) {
        float half = inner2 * g.inverse_edge_v * ps_rsqrt(inner2 * g.inverse_edge_v);
        reach.inner_first = (int)ceilf((left - half) * step);
        reach.inner_last = (int)floorf((left + half - width) * step);
    }
    return reach;
}

#endif
