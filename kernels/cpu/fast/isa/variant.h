/* What differs between the compilations of this folder: PS_FAST_ISA is baseline, avx2 or avx512. */
#ifndef PS_KERNELS_CPU_FAST_ISA_VARIANT_H
#define PS_KERNELS_CPU_FAST_ISA_VARIANT_H

#include "kernels/cpu/fast/isa/isa.h"

#define PS_FAST_JOIN_(a, b) a##_##b
#define PS_FAST_JOIN(a, b) PS_FAST_JOIN_(a, b)
#define PS_FAST_NAME(function) PS_FAST_JOIN(function, PS_FAST_ISA)

#if defined(__AVX512F__)
enum { PS_FAST_VECTOR_BYTES = 64, PS_FAST_REGISTER_TILE = 3 };
#elif defined(__AVX2__)
enum { PS_FAST_VECTOR_BYTES = 32, PS_FAST_REGISTER_TILE = 2 };
#else
enum { PS_FAST_VECTOR_BYTES = 16, PS_FAST_REGISTER_TILE = 2 };
#endif

bool PS_FAST_NAME(ps_fast_transfer)(const ps_fast_pixels *pixels, const ps_fast_alias *alias, const float *factor, int64_t first, int64_t n,
                                    float *amplitude, float *phase);
void PS_FAST_NAME(ps_fast_products)(const ps_fast_operands *operands, bool upper, double *sums);
void PS_FAST_NAME(ps_fast_explain)(const ps_fast_pixels *pixels, const ps_fast_alias *alias, const float *factor, const float *spectrum,
                                   double *normal, double right[2]);
void PS_FAST_NAME(ps_fast_place)(int64_t n, const double *row, const double *column, const double to_x[3], const double to_y[3],
                                 const float pitch[2], double *x, double *y, double *inside, float *factor);
void PS_FAST_NAME(ps_fast_normalise)(int64_t width, float floor, float *row);
void PS_FAST_NAME(ps_fast_tridiagonalise)(int n, double *matrix, double *reduced);
void PS_FAST_NAME(ps_fast_to_basis)(int n, const double *matrix, const double *reduced, double *vectors);
void PS_FAST_NAME(ps_fast_from_basis)(int n, const double *matrix, const double *reduced, double *vectors);
bool PS_FAST_NAME(ps_fast_solve_shifted)(int n, const double *reduced, double mu, const double *c, double *y, double *pivots,
                                         double *explained, double *trace);
void PS_FAST_NAME(ps_fast_multiply)(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                                    float *c, int64_t c_stride);
void PS_FAST_NAME(ps_fast_add_phases)(int64_t n, const float *real, const float *imaginary, double *sums, double *squares);

#endif
