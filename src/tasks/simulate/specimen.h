/* The simulated object, periodic over the scan area, on a grid `upsampling` times finer than the scan. Scan position (0, 0) is its
 * grid point (0, 0). */
#ifndef PS_TASKS_SIMULATE_SPECIMEN_H
#define PS_TASKS_SIMULATE_SPECIMEN_H

#include "optics/optics.h"
#include "tasks/simulate/entry.h"
#include "tasks/simulate/gaussian.h"

typedef struct {
    ps_fine_grid grid;
    double *phase, *log_amplitude; /* [rows, columns] rad, 1; mean 0; owned */
    bool has_defect;
    double defect_A[2]; /* where the moving defect is in this frame; row, column */
} ps_specimen;

/* The two-site cell as it is used: turned, then strained so that whole cells fit the scan area. */
typedef struct {
    double vector_A[2][2]; /* [vector, row/column] */
    int64_t cells[2][2]; /* the scan area's row and column edge as sums of cell vectors: edge = cells[edge][0] * v0 + cells[edge][1] * v1 */
    int64_t n_cells;
} ps_lattice;

/* PS_E_JOB when no cell fits or more than 2^31 would. */
ps_code ps_lattice_fit(double lattice_A, double rotation_deg, const double extent_A[2], ps_lattice *lattice, ps_error *error);

double ps_crystal_sigma_A(const ps_job_simulate *job); /* of the Gaussian atoms */
double ps_blob_sigma_A(double band_inv_A);             /* of a random object's moving defect */

/* Frame `frame` of the series a job describes; band_inv_A: highest spatial frequency of a random object. Depends on the arguments
 * alone. Owned by the caller: ps_specimen_free. */
ps_code ps_specimen_build(const ps_job_simulate *job, const ps_fine_grid *grid, double band_inv_A, int64_t frame, ps_specimen *specimen,
                          ps_error *error);
void ps_specimen_free(ps_specimen *specimen);

/* Parts of ps_specimen_build; phase and log_amplitude are allocated and zero. */
ps_code ps_specimen_add_crystal(const ps_job_simulate *job, int64_t frame, ps_specimen *specimen, ps_error *error);
ps_code ps_specimen_add_noise(const ps_job_simulate *job, double band_inv_A, int64_t frame, ps_specimen *specimen, ps_error *error);

#endif
