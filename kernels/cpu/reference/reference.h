/* The plain float64 CPU path: the oracle of all tests, written to be read beside docs/physics.md.
 *
 * Matrices are column-major with Fortran's meaning of Hermitian: normal(a, b) stands at [a + b * dim]. Unknowns of the complex
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
    double scale_amplitude, scale_phase;
} ps_reference_system;

typedef struct {
    ps_cpu_frame cpu;
    double complex *right_amplitude, *right_phase; /* [n_aliases] b; amplitude with the complex method only */
    double complex *ssb;                           /* [n_aliases] mean over k of the corrected spectrum */
    double *power;                                 /* [n_frequencies] g^H W g */
} ps_reference_frame;

/* Section 2: P(k) = A(k) exp(-i chi(k)); k in 1/Angstrom, scan frame. */
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

ps_code ps_reference_memory_plan(const ps_system_desc *desc, ps_methods methods, ps_dtype dtype, size_t budget_bytes, int64_t max_frames,
                                 ps_memory_plan *plan, ps_error *error);
ps_code ps_reference_reduce(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error);
ps_code ps_reference_solve(ps_frame *frame, ps_methods method, int64_t n_strengths, const ps_strength *strengths,
                           const ps_solution *solution, ps_error *error);
ps_code ps_reference_ssb(ps_frame *frame, ps_ssb_estimator estimator, float *phase_f32, double *phase_f64, double *loss, ps_error *error);

/* image: [fine_rows, fine_columns] complex, in place: the unnormalised inverse transform of Fourier coefficients. */
ps_code ps_reference_image(const ps_system_desc *desc, double complex *image, ps_error *error);

ps_code ps_reference_get_transfer(ps_system *system, int64_t frequency, double *transfer, ps_error *error);
ps_code ps_reference_get_normal(ps_system *system, ps_methods method, int64_t frequency, double *normal, ps_error *error);
ps_code ps_reference_get_eigenvalues(ps_system *system, int64_t frequency, double *eigenvalues, ps_error *error);
ps_code ps_reference_get_right_side(ps_frame *frame, ps_methods method, int64_t frequency, double *right_side, double *power,
                                    ps_error *error);
ps_code ps_reference_get_spectrum(ps_frame *frame, int64_t frequency, double dose, double *spectrum, ps_error *error);
ps_code ps_reference_frame_power(ps_frame *frame, double *power, ps_error *error);
ps_code ps_reference_system_scales(ps_system *system, ps_methods method, double *amplitude, double *phase, ps_error *error);

#endif
