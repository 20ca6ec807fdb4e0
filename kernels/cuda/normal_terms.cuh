/* What N needs of the transfer along a detector row: the phase's polynomial (row_polynomial.cuh) and the aperture's terms.
 *
 * Phases are turned into cosines and sines by a table of directions and short series, good to 5e-14; sin(pi y)/(pi y) is good to 2e-13.
 * Coefficients of small terms have no more digits than fit into an instruction. */
#ifndef PS_KERNELS_CUDA_NORMAL_TERMS_CUH
#define PS_KERNELS_CUDA_NORMAL_TERMS_CUH

#include "kernels/cuda/row_polynomial.cuh"

enum { PS_NORMAL_POWERS = PS_ROW_POWERS, PS_NORMAL_DIRECTIONS = 512 };

struct __align__(16) ps_normal_terms {
    double c[PS_NORMAL_POWERS]; /* quarter turns = sum of c[j] v^j */
    double y0, y1;              /* thickness argument in half turns: y = y0 + y1 v */
    double place, row_rho2;     /* kappa = (p, v - place); rho^2 = row_rho2 + edge_v (v - place)^2 */
    double p, unused;
};

static __constant__ double ps_normal_sine = 1.5707963267948966, ps_normal_cosine = -1.2337005501361697;
static __constant__ double ps_normal_sinc[3] = {-1.644934066828087, 0.8117424240536456, -0.19075179521750385};

/* u: the row, (qu, qv): the alias, in detector pixels from k = 0. */
__device__ inline void ps_normal_form_terms(const ps_cuda_geometry &g, double u, double qu, double qv, double sigma, ps_normal_terms *row) {
    double p = u - sigma * qu;
    ps_form_row_polynomial(g, u, qu, qv, sigma, 1.0, row->c, &row->y0, &row->y1);
    row->place = sigma * qv;
    row->row_rho2 = fma(g.edge_u * p, p, 1e-30);
    row->p = p;
}

/* c[0] + c[1] v + ... */
__device__ inline double ps_normal_phase(const double2 *c, double v) {
    double2 c01 = c[0], c23 = c[1], c45 = c[2];
    return fma(fma(fma(fma(fma(c45.y, v, c45.x), v, c23.y), v, c23.x), v, c01.y), v, c01.x);
}

/* table: [PS_NORMAL_DIRECTIONS] shared, cosine and sine. All threads of the block. */
__device__ inline void ps_normal_fill_directions(double2 *table) {
    for (int i = threadIdx.x; i < PS_NORMAL_DIRECTIONS; i += blockDim.x)
        sincospi(i * (2.0 / PS_NORMAL_DIRECTIONS), &table[i].y, &table[i].x);
    __syncthreads();
}

/* exp(i phase) for a phase in quarter turns, |phase| < 2^21 (float), 2^30 (double). */
__device__ inline void ps_normal_turn(const double2 *table, double phase, double *cosine, double *sine) {
    const double magic = 0x1.8p54 / PS_NORMAL_DIRECTIONS;
    double shifted = phase + magic, r = phase - (shifted - magic), z = r * r;
    double2 direction = table[(unsigned)__double2loint(shifted) % PS_NORMAL_DIRECTIONS];
    double s = r * fma(z, -0x1.4abbdp-1, ps_normal_sine), c = z * fma(z, 0x1.03c1fp-2, ps_normal_cosine);
    *cosine = fma(direction.x, c, fma(-direction.y, s, direction.x));
    *sine = fma(direction.y, c, fma(direction.x, s, direction.y));
}
__device__ inline void ps_normal_turn(const double2 *, double phase, float *cosine, float *sine) {
    ps_turn(phase, cosine, sine);
}

__device__ inline double ps_normal_thickness(const ps_normal_terms &t, double v, double) {
    double y = fma(t.y1, v, t.y0), shifted = y + 0x1.8p52, r = y - (shifted - 0x1.8p52), z = r * r;
    int whole = __double2loint(shifted);
    double q = fma(fma(0x1.2adbdp-13, z, -0x1.333e9p-9), z, 0x1.ac66ap-6);
#pragma unroll
    for (int i = 2; i >= 0; i--) q = fma(q, z, ps_normal_sinc[i]);
    q = fma(q, z, 1.0);
    return ps_flip(whole == 0 ? q : q * r * ps_rcp(y), (unsigned)whole << 31);
}
__device__ inline float ps_normal_thickness(const ps_normal_terms &t, double v, float) {
    return ps_sinc(fma(t.y1, v, t.y0), 0.0f);
}

/* The soft aperture at kappa. In double, 1 - rho can be taken as it is. */
__device__ inline double ps_normal_aperture(const ps_cuda_geometry &g, const ps_normal_terms &t, double v, double) {
    double s = v - t.place;
    if (!g.equal_pitch) return ps_aperture<double>(g, t.p, s);
    double rho2 = fma(g.edge_v * s, s, t.row_rho2), value = fma(-g.width, rho2 * ps_rsqrt(rho2), g.width + 0.5);
    return value < 0.0 ? 0.0 : value > 1.0 ? 1.0 : value;
}
__device__ inline float ps_normal_aperture(const ps_cuda_geometry &g, const ps_normal_terms &t, double v, float) {
    return ps_aperture<float>(g, t.p, v - t.place);
}

#endif
