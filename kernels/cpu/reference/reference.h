/* The plain float64 CPU path: the oracle of all tests, written to be read beside docs/physics.md.
 *
 * Matrices are column-major with Fortran's meaning of Hermitian: normal(a, b) is at [a + b * dim]. Unknowns of the complex
 * method: amplitudes of all aliases first, then phases. */
#ifndef PS_KERNELS_CPU_REFERENCE_REFERENCE_H
#define PS_KERNELS_CPU_REFERENCE_REFERENCE_H

#include "kernels/cpu/cpu.h"

#define PS_REFERENCE_GAMMA_FLOOR 1e-6 /* section 6: at and below it a pixel says nothing about a frequency */

typedef struct {
    ps_cpu_system cpu;
    double complex *probe;        /* [n_active] P(k) */
    int64_t *normal_offset;       /* [n_frequencies] of each frequency's matrix in `normal` */
    double complex *normal;       /* per solved frequency [dim, dim]; dim = n_aliases, or 2 n_aliases with the complex method */
    int64_t *basis_offset;        /* [n_frequencies] in `eigenvectors` */
    double complex *eigenvectors; /* per solved frequency [n_aliases, n_aliases], of prior^-1/2 N prior^-1/2 */
    double *eigenvalues;          /* [n_aliases of the system], each frequency's ascending */
} ps_reference_system;

PS_CPU_PATH(reference);

/* Section 2: P(k) = A(k) exp(-i chi(k)); k in 1/Angstrom, in the scan's axes. */
double ps_reference_aperture(const ps_probe *probe, double k_row, double k_column);
double ps_reference_chi(const ps_probe *probe, double k_row, double k_column);
double complex ps_reference_probe(const ps_probe *probe, double k_row, double k_column);

/* Section 3, one alias at the pixels [first, first + n): amplitude, phase: [n], either may be NULL. */
void ps_reference_transfer(const ps_reference_system *system, int64_t alias, int64_t first, int64_t n, double complex *amplitude,
                           double complex *phase);

/* g(q, k) of the slots [first, first + n): spectra: [n, scan_rows, scan_columns/2 + 1]. Uses OpenMP. */
ps_code ps_reference_spectra(const ps_cpu_frame *frame, int64_t first, int64_t n, double dose, double complex *spectra, ps_error *error);

int64_t ps_reference_dim(const ps_reference_system *system, int64_t frequency); /* of the stored normal matrix */
ps_code ps_reference_normal(ps_reference_system *system, ps_error *error);      /* N of every frequency, and the scales */
ps_code ps_reference_eigenbasis(ps_reference_system *system, ps_error *error);

/* Puts x [n_aliases of f] on the fine grid, and its conjugate at -Q for a frequency that stands for both. */
void ps_reference_place(const ps_system_desc *desc, const ps_frequency *f, const double complex *x, double complex *image);
/* image: [fine_rows, fine_columns] complex, in place: the unnormalised inverse transform of Fourier coefficients. */
ps_code ps_reference_image(const ps_system_desc *desc, double complex *image, ps_error *error);

#endif
