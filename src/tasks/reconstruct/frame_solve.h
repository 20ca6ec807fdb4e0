/* From a reduced frame to everything that is written of it: images of every method and strength, curves, SSB. */
#ifndef PS_TASKS_RECONSTRUCT_FRAME_SOLVE_H
#define PS_TASKS_RECONSTRUCT_FRAME_SOLVE_H

#include "job/job.h"
#include "store/output.h"

typedef struct ps_frame_solver ps_frame_solver;

/* Holds the host buffers one frame's results need; they serve one frame after another. */
ps_code ps_frame_solver_create(const ps_job *job, int64_t image_rows, int64_t image_columns, ps_frame_solver **solver, ps_error *error);
void ps_frame_solver_destroy(ps_frame_solver *solver);
size_t ps_frame_solver_bytes(const ps_job *job, int64_t image_rows, int64_t image_columns);

/* frame: reduced. n_data: complex values of the full plane that were fitted. result points into the solver until its next use. */
ps_code ps_frame_solve(ps_frame_solver *solver, ps_frame *frame, double n_data, ps_frame_result *result, ps_error *error);

#endif
