/* The forward transform of a real scan to its half-plane, in float: FFTW, or matrix products where FFTW would be slow.
 *
 * An axis whose length has a large prime factor costs FFTW several times what other lengths do; up to a few hundred points, products with
 * the matrix of the transform are faster there. The choice depends on the shape alone. */
#ifndef PS_KERNELS_CPU_FAST_DFT_H
#define PS_KERNELS_CPU_FAST_DFT_H

#include <complex.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/fast/isa/isa.h"

typedef struct {
    const ps_fast_isa *isa;
    int64_t rows, columns, half;      /* half: columns/2 + 1 */
    int64_t scan_stride, half_stride; /* floats of a scan and complex numbers of a half-plane, each rounded up to cache lines */
    struct fftwf_plan_s *plan;
    int64_t width;        /* floats of a row of half complex numbers, rounded up */
    float *along_columns; /* [columns, width] real and imaginary parts in turn; NULL: FFTW */
    float *along_rows;    /* [2, rows, rows] real parts, imaginary parts */
} ps_fast_dft;

/* On error ps_fast_dft_release cleans up, which is also allowed for a zeroed dft. */
ps_code ps_fast_dft_init(const ps_system_desc *desc, const ps_fast_isa *isa, ps_fast_dft *dft, ps_error *error);
void ps_fast_dft_release(ps_fast_dft *dft);
/* scan: [scan_stride], spectrum: [half_stride] complex, scratch: [ps_fast_dft_scratch floats]; all on cache lines. Thread-safe. */
void ps_fast_dft_run(const ps_fast_dft *dft, float *scan, float complex *spectrum, float *scratch);

int64_t ps_fast_scan_stride(const ps_system_desc *desc);
int64_t ps_fast_half_stride(const ps_system_desc *desc);
int64_t ps_fast_dft_scratch(const ps_system_desc *desc); /* floats */
size_t ps_fast_dft_bytes(const ps_system_desc *desc);    /* of the matrices */

#endif
