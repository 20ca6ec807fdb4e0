/* A side band's phase and thickness argument along a detector row, for the kernels that walk rows pixel by pixel: what transfer.cuh
 * evaluates at one place, with all that the row and the column share folded in.
 *
 * sigma (chi(k) - chi(kappa)) is a polynomial of degree 5 of the pixel's column v: the sixth powers cancel. The thickness argument is a
 * line. */
#ifndef PS_KERNELS_CUDA_ROW_POLYNOMIAL_CUH
#define PS_KERNELS_CUDA_ROW_POLYNOMIAL_CUH

#include "kernels/cuda/transfer.cuh"

enum { PS_ROW_POWERS = 6 };

/* chi's coefficients in powers of s at p, or of -kappa's where mirrored. */
__device__ inline void ps_chi_along(const ps_cuda_geometry &g, double p, bool mirrored, double (&d)[7]) {
    double x = mirrored ? -p : p;
#pragma unroll
    for (int j = 0; j <= 6; j++) {
        d[j] = g.chi[ps_cuda_chi_index(6 - j, j)];
#pragma unroll
        for (int i = 5 - j; i >= 0; i--) d[j] = fma(d[j], x, g.chi[ps_cuda_chi_index(i, j)]);
        if (mirrored && (j & 1)) d[j] = -d[j];
    }
}

/* u: the row, (qu, qv): the alias, in detector pixels from k = 0; sign: 1, or -1 for the conjugate of the transfer. c: quarter turns = sum
 * of c[j] v^j; thickness argument in half turns = y0 + y1 v. */
__device__ inline void ps_form_row_polynomial(const ps_cuda_geometry &g, double u, double qu, double qv, double sigma, double sign,
                                              double (&c)[PS_ROW_POWERS], double *y0, double *y1) {
    double d[7], place = sigma * qv;
    ps_chi_along(g, u - sigma * qu, g.mirrored && sigma > 0.0, d);
#pragma unroll
    for (int i = 0; i < PS_ROW_POWERS; i++)
#pragma unroll
        for (int j = 5; j >= i; j--) d[j] = fma(-place, d[j + 1], d[j]); /* in powers of v = s + place */
    sign *= sigma;
#pragma unroll
    for (int j = 0; j < PS_ROW_POWERS; j++) {
        double chi = g.chi[ps_cuda_chi_index(6 - j, j)];
#pragma unroll
        for (int i = 5 - j; i >= 0; i--) chi = fma(chi, u, g.chi[ps_cuda_chi_index(i, j)]);
        c[j] = sign * (chi - d[j]);
    }
    double bend = 0.5 * fma(g.thick_u * qu, qu, g.thick_v * qv * qv), tilt = fma(g.tilt_u, qu, g.tilt_v * qv);
    *y0 = fma(g.thick_u * qu, u, -sigma * bend) - tilt;
    *y1 = g.thick_v * qv;
}

#endif
