/* From N and b of a band's frequencies to one trial's explained power: what the reference and the fast CPU path share. */
#ifndef PS_KERNELS_CPU_EXPLAIN_H
#define PS_KERNELS_CPU_EXPLAIN_H

#include <complex.h>
#include <stdint.h>

/* Doubles complex that the matrices of the first n_frequencies take: sum of n_aliases^2; first_alias: [n_frequencies + 1]. */
int64_t ps_cpu_explain_entries(int64_t n_frequencies, const int64_t *first_alias);

/* kernels/trials.h's sum. normal: per frequency [n_aliases, n_aliases], Hermitian, of which the lower triangle (column <= row) is read;
 * overwritten by its factor. right: [aliases] b; overwritten. Where a trial's optics show nothing at all (every N is 0) it explains 0. */
double ps_cpu_explain(int64_t n_frequencies, const int64_t *first_alias, double strength, double complex *normal, double complex *right);

#endif
