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
template <typename Real> struct __align__(16) ps_row_terms {
    double d[7]; /* -sigma chi(kappa) in quarter turns = sum of d[j] s^j */
    double p;    /* kappa along the detector's rows, pixels */
    double s0;   /* s = v - s0 */
    double sigma;
    Real y0, y1; /* thickness argument in half turns: y = y0 + y1 v */
};

/* u: the row, from k = 0; (qu, qv): the alias; all in detector pixels. */
template <typename Real>
__device__ inline void ps_form_row_terms(const ps_cuda_geometry &g, double u, double qu, double qv, double sigma,
                                         ps_row_terms<Real> *terms) {
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
    terms->s0 = sigma * qv;
    terms->sigma = sigma;
    double bend = 0.5 * fma(g.thick_u * qu, qu, g.thick_v * qv * qv), tilt = fma(g.tilt_u, qu, g.tilt_v * qv);
    terms->y0 = (Real)(fma(g.thick_u * qu, u, -sigma * bend) - tilt);
    terms->y1 = (Real)(g.thick_v * qv);
}

/* -sigma chi(kappa) + sigma chi(k), quarter turns. */
template <typename Real> __device__ inline double ps_phase(const ps_row_terms<Real> &t, double s, double chi) {
    double x = t.d[6];
#pragma unroll
    for (int j = 5; j >= 0; j--) x = fma(x, s, t.d[j]);
    return fma(t.sigma, chi, x);
}

/* exp(i phase) for a phase in quarter turns; |phase| < 2^21 (float), 2^30 (double). */
__device__ inline void ps_turn(double phase, float *cosine, float *sine) {
    int turn = __double2loint(phase + 0x1.8p22); /* units of 2^-30 quarter turns, modulo a full turn */
    int quadrant = (int)((unsigned)turn + 0x20000000u) >> 30;
    float r = (float)(int)((unsigned)turn - ((unsigned)quadrant << 30)) * 0x1p-30f, z = r * r;
    float s = r * fmaf(fmaf(fmaf(-0.004602177f, z, 0.0796802281f), z, -0.645963479f), z, 1.57079632f);
    float c = fmaf(fmaf(fmaf(fmaf(0.000903631703f, z, -0.0208600713f), z, 0.253669204f), z, -1.23370054f), z, 1.0f);
    float x = quadrant & 1 ? s : c, y = quadrant & 1 ? c : s;
    *cosine = (quadrant + 1) & 2 ? -x : x;
    *sine = quadrant & 2 ? -y : y;
}
__device__ inline void ps_turn(double phase, double *cosine, double *sine) {
    double shifted = phase + 0x1.8p52;
    int quadrant = __double2loint(shifted);
    double r = phase - (shifted - 0x1.8p52), z = r * r;
    double s = fma(-3.5563914385380938e-06, z, 0.00016042926828128563), c = fma(-2.4851012742648956e-05, z, 0.00091916176782146498);
    s = fma(s, z, -0.0046817525921662067);
    c = fma(c, z, -0.020863468008997469);
    s = fma(s, z, 0.079692626155809257);
    c = fma(c, z, 0.25366950715430731);
    s = fma(s, z, -0.64596409750431105);
    c = fma(c, z, -1.2337005501201781);
    s = fma(s, z, 1.5707963267948899) * r;
    c = fma(c, z, 0.99999999999994449);
    double x = quadrant & 1 ? s : c, y = quadrant & 1 ? c : s;
    *cosine = (quadrant + 1) & 2 ? -x : x;
    *sine = quadrant & 2 ? -y : y;
}

/* sin(pi y)/(pi y). */
__device__ inline float ps_sinc(float y) {
    float shifted = y + 0x1.8p23f, r = y - (shifted - 0x1.8p23f), z = r * r;
    float q = fmaf(fmaf(fmaf(fmaf(0.0247197574f, z, -0.190442309f), z, 0.81171493f), z, -1.64493321f), z, 1.0f);
    float far = q * r * ps_rcp(y);
    float w = r == y ? q : far;
    return __float_as_int(shifted) & 1 ? -w : w;
}
__device__ inline double ps_sinc(double y) {
    double shifted = y + 0x1.8p52, r = y - (shifted - 0x1.8p52), z = r * r;
    double q = fma(0.00014244306891269084, z, -0.0023440371796256106);
    q = fma(q, z, 0.02614750064613745);
    q = fma(q, z, -0.19075179381244922);
    q = fma(q, z, 0.81174242402254182);
    q = fma(q, z, -1.6449340668285535);
    q = fma(q, z, 0.99999999999994993);
    double far = q * r * ps_rcp(y);
    double w = r == y ? q : far;
    return __double2loint(shifted) & 1 ? -w : w;
}

/* The soft aperture at kappa = (p, s) pixels. The distance from its edge is a difference of nearly equal numbers, so 1 - rho^2 is formed
 * in double, and 1 - rho = (1 - rho^2)/(1 + rho). */
template <typename Real> __device__ inline Real ps_aperture(const ps_cuda_geometry &g, double p, double s) {
    double inside = fma(-g.edge_v * s, s, fma(-g.edge_u * p, p, 1.0));
    Real numerator = (Real)inside, rho2 = (Real)1 - numerator;
    rho2 = rho2 > (Real)1e-30 ? rho2 : (Real)1e-30;
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
__device__ inline void ps_transfer(const ps_cuda_geometry &g, const ps_row_terms<Real> &terms, double s, Real y, double chi, Real amplitude,
                                   bool on_edge, Real *re, Real *im) {
    Real cosine, sine;
    ps_turn(ps_phase(terms, s, chi), &cosine, &sine);
    if (g.is_thick) amplitude *= ps_sinc(y);
    if (on_edge) amplitude *= ps_aperture<Real>(g, terms.p, s);
    *re = amplitude * cosine;
    *im = amplitude * sine;
}

/* Whether the aperture around (u, v) reaches a tile, and whether some of the tile may lie on its edge. */
__device__ inline void ps_overlap(const ps_cuda_geometry &g, const ps_cuda_tile &tile, float u, float v, bool *touches, bool *on_edge) {
    float du = fabsf(tile.u - u), dv = fabsf(tile.v - v), eu = g.edge_u_f32, ev = g.edge_v_f32;
    float near_u = fmaxf(du - tile.half_u, 0.0f), near_v = fmaxf(dv - tile.half_v, 0.0f), far_u = du + tile.half_u,
          far_v = dv + tile.half_v;
    *touches = eu * near_u * near_u + ev * near_v * near_v < g.reach2;
    *on_edge = !(eu * far_u * far_u + ev * far_v * far_v <= g.inner2);
}

#endif
