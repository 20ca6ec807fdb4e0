/* The transfer along one detector row in float, for the kernels that walk rows pixel by pixel: what transfer.cuh evaluates at one place,
 * with everything that the row and the column share folded into polynomials of the pixel's column v.
 *
 * sigma (chi(k) - chi(kappa)) is a polynomial of v of degree 5: the sixth powers cancel. It is evaluated in double and taken modulo a
 * turn; its cosine and sine come from a table of 128 directions turned by the small rest, good to 1e-7. */
#ifndef PS_KERNELS_CUDA_ROW_PHASE_CUH
#define PS_KERNELS_CUDA_ROW_PHASE_CUH

#include "kernels/cuda/transfer.cuh"

enum { PS_DIRECTIONS = 128 };

struct __align__(16) ps_row_phase {
    double c[6];     /* quarter turns = sum of c[j] v^j */
    double y0, y1;   /* thickness argument in half turns: y = y0 + y1 v */
    double p, place; /* kappa = (p, v - place) */
};

/* chi's coefficients in powers of s at p, or of -kappa's where mirrored. */
__device__ inline void ps_chi_along(const ps_cuda_geometry &g, double p, bool mirrored, double (&d)[7]) {
    double x = mirrored ? -p : p;
#pragma unroll
    for (int j = 0; j <= 6; j++) {
        d[j] = g.chi[ps_cuda_chi_index(6 - j, j)];
#pragma unroll
        for (int i = 5 - j; i >= 0; i--) d[j] = fma(d[j], x, g.chi[ps_cuda_chi_index(i, j)]);
    }
    if (mirrored)
#pragma unroll
        for (int j = 1; j < 6; j += 2) d[j] = -d[j];
}

/* u: the row, (qu, qv): the alias, in detector pixels from k = 0. sign: -1 for the conjugate of the transfer. */
__device__ inline void ps_form_row_phase(const ps_cuda_geometry &g, double u, double qu, double qv, double sigma, double sign,
                                         ps_row_phase *row) {
    double d[7], p = u - sigma * qu, place = sigma * qv;
    ps_chi_along(g, p, g.mirrored && sigma > 0.0, d);
#pragma unroll
    for (int i = 0; i < 6; i++)
#pragma unroll
        for (int j = 5; j >= i; j--) d[j] = fma(-place, d[j + 1], d[j]); /* in powers of v = s + place */
    sign *= sigma;
#pragma unroll
    for (int j = 0; j < 6; j++) {
        double chi = g.chi[ps_cuda_chi_index(6 - j, j)];
#pragma unroll
        for (int i = 5 - j; i >= 0; i--) chi = fma(chi, u, g.chi[ps_cuda_chi_index(i, j)]);
        row->c[j] = sign * (chi - d[j]);
    }
    double bend = 0.5 * fma(g.thick_u * qu, qu, g.thick_v * qv * qv), tilt = fma(g.tilt_u, qu, g.tilt_v * qv);
    row->y0 = fma(g.thick_u * qu, u, -sigma * bend) - tilt;
    row->y1 = g.thick_v * qv;
    row->p = p;
    row->place = place;
}

/* table: [PS_DIRECTIONS] shared, cosine and sine. All threads of the block. */
__device__ inline void ps_fill_directions(float2 *table) {
    for (int i = threadIdx.x; i < PS_DIRECTIONS; i += blockDim.x) {
        double sine, cosine;
        sincospi(i * (2.0 / PS_DIRECTIONS), &sine, &cosine);
        table[i] = make_float2((float)cosine, (float)sine);
    }
    __syncthreads();
}

/* exp(i phase) for a phase in quarter turns, |phase| < 2^21. */
__device__ inline void ps_turn_by_table(const float2 *table, double phase, float *cosine, float *sine) {
    unsigned turn = (unsigned)__double2loint(phase + 0x1.8p22); /* units of 2^-32 turns, modulo a turn */
    float2 direction = table[(turn + 0x1000000u) >> 25];
    float rest = (float)(int)(turn << 7) * 1.14290475e-11f; /* 2 pi 2^-39: radians from the nearest direction */
    float z = rest * rest, s = rest * fmaf(z, -0.166666667f, 1.0f), c = z * fmaf(z, 0.0416666667f, -0.5f);
    *cosine = fmaf(direction.x, c, fmaf(-direction.y, s, direction.x));
    *sine = fmaf(direction.y, c, fmaf(direction.x, s, direction.y));
}

/* The phase at v, quarter turns. c: the row's. */
__device__ inline double ps_row_turns(const double (&c)[6], double v) {
    double x = c[5];
#pragma unroll
    for (int j = 4; j >= 0; j--) x = fma(x, v, c[j]);
    return x;
}

#endif
