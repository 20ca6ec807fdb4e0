/* exp(-i chi) along rows of spatial frequencies, fast: chi is a polynomial of degree 6 in the components of k, so along a row it is a
 * polynomial of one variable. docs/physics.md section 2. */
#ifndef PS_TASKS_SIMULATE_PROBE_ROWS_H
#define PS_TASKS_SIMULATE_PROBE_ROWS_H

#include <stdint.h>

#include "kernels/backend.h"

enum { PS_CHI_DEGREE = 6 };

/* chi/(2 pi) = sum of turns[i][j] k_row^i k_column^j, k in 1/Angstrom; terms with i + j > 6 are 0. */
typedef struct {
    double turns[PS_CHI_DEGREE + 1][PS_CHI_DEGREE + 1];
} ps_chi_polynomial;

void ps_chi_polynomial_build(const ps_probe *probe, ps_chi_polynomial *chi);
/* row: coefficients of k_column^j at this k_row. */
void ps_chi_polynomial_row(const ps_chi_polynomial *chi, double k_row, double row[PS_CHI_DEGREE + 1]);
/* real, imaginary: [n] exp(-i chi) at k_column = first + i * step; absolute error below 3e-7. */
void ps_chi_row_waves(const double row[PS_CHI_DEGREE + 1], double first, double step, int64_t n, float *real, float *imaginary);

#endif
