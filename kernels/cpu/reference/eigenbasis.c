#include <lapacke.h>
#include <math.h>

#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"

/* Eigenvalues and eigenvectors of prior^-1/2 N prior^-1/2, N the phase block. Returns LAPACK's info. */
static int basis_of_frequency(ps_reference_system *system, int64_t frequency) {
    const ps_frequency *f = &system->cpu.desc.frequencies[frequency];
    const double *prior = system->cpu.desc.prior_phase + f->first_alias;
    int64_t n = f->n_aliases, dim = ps_reference_dim(system, frequency), first = dim - n;
    const double complex *normal = system->normal + system->normal_offset[frequency];
    double complex *vectors = system->eigenvectors + system->basis_offset[frequency];
    if (n == 0) return 0;
    for (int64_t b = 0; b < n; b++)
        for (int64_t a = 0; a < n; a++) vectors[a + b * n] = normal[first + a + (first + b) * dim] / sqrt(prior[a] * prior[b]);
    return LAPACKE_zheevd(LAPACK_COL_MAJOR, 'V', 'U', (int)n, vectors, (int)n, system->eigenvalues + f->first_alias);
}

ps_code ps_reference_eigenbasis(ps_reference_system *system, ps_error *error) {
    int64_t n_frequencies = system->cpu.desc.n_frequencies, failed = n_frequencies;
#pragma omp parallel for schedule(dynamic) num_threads(system->cpu.backend->n_threads) reduction(min : failed)
    for (int64_t i = 1; i < n_frequencies; i++)
        if (basis_of_frequency(system, i) != 0 && i < failed) failed = i;
    if (failed < n_frequencies)
        return PS_FAIL(error, PS_E_NUMERIC, "no eigenbasis for scan frequency (%d, %d)", system->cpu.desc.frequencies[failed].row,
                       system->cpu.desc.frequencies[failed].column);
    return PS_OK;
}
