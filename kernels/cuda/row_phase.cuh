/* The transfer along one detector row in float, for the reductions: the phase's polynomial (row_polynomial.cuh) is evaluated in double and
 * taken modulo a turn; its cosine and sine come from a table of 128 directions turned by the small rest, good to 1e-7. */
#ifndef PS_KERNELS_CUDA_ROW_PHASE_CUH
#define PS_KERNELS_CUDA_ROW_PHASE_CUH

#include "kernels/cuda/row_polynomial.cuh"

enum { PS_DIRECTIONS = 128 };

struct __align__(16) ps_row_phase {
    double c[PS_ROW_POWERS]; /* quarter turns = sum of c[j] v^j */
    double y0, y1;           /* thickness argument in half turns: y = y0 + y1 v */
    double p, place;         /* kappa = (p, v - place) */
};

/* u: the row, (qu, qv): the alias, in detector pixels from k = 0. sign: -1 for the conjugate of the transfer. */
__device__ inline void ps_form_row_phase(const ps_cuda_geometry &g, double u, double qu, double qv, double sigma, double sign,
                                         ps_row_phase *row) {
    ps_form_row_polynomial(g, u, qu, qv, sigma, sign, row->c, &row->y0, &row->y1);
    row->p = u - sigma * qu;
    row->place = sigma * qv;
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

/* The same from the special-function unit, to 5e-7: for directions that are summed over many pixels. */
__device__ inline void ps_turn_fast(double phase, float *cosine, float *sine) {
    float x = (float)__double2loint(phase + 0x1.8p22) * 1.46291808e-9f; /* 2 pi 2^-32 */
    *cosine = __cosf(x);
    *sine = __sinf(x);
}

/* The phase at v, quarter turns. c: the row's. */
__device__ inline double ps_row_turns(const double (&c)[6], double v) {
    double x = c[5];
#pragma unroll
    for (int j = 4; j >= 0; j--) x = fma(x, v, c[j]);
    return x;
}

#endif
