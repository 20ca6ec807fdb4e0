/* Exact single-slice scattering, one detector pixel at a time. docs/simulate.md; docs/physics.md sections 1 to 3.
 *
 * With O~(q) the Fourier coefficients of the transmission exp(a + i phi), periodic over the scan area, the wave at k is, but for a phase
 * without consequence, psi(k, r) = sum over q of O~(q) P(k - q) exp(2 pi i q.r). Scan positions see q only modulo 1/step, so terms
 * are added up on the scan's grid and one inverse FFT of the scan's size gives every position. */
#ifndef PS_TASKS_SIMULATE_SCATTER_H
#define PS_TASKS_SIMULATE_SCATTER_H

#include "optics/optics.h"
#include "tasks/simulate/specimen.h"

typedef struct ps_scatter ps_scatter;

/* Takes what it needs of specimen, whose grid must be a multiple of the scan. n_threads: how many workspaces there are. */
ps_code ps_scatter_create(const ps_probe *probe, const ps_specimen *specimen, int64_t scan_rows, int64_t scan_columns, int n_threads,
                          ps_scatter **scatter, ps_error *error);
void ps_scatter_destroy(ps_scatter *scatter);
/* Bytes that ps_scatter_create keeps, and what its thread workspaces take. */
int64_t ps_scatter_bytes(const ps_fine_grid *grid, int64_t scan_rows, int64_t scan_columns, int n_threads);

/* intensity: [scan_rows, scan_columns] of the pixel at k (1/Angstrom, in the scan's axes), 1 where A = 1 and there is no specimen. May run
 * in several threads, each with its own thread number. The result does not depend on the thread. */
void ps_scatter_pixel(const ps_scatter *scatter, int thread, double k_row, double k_column, float *intensity);

#endif
