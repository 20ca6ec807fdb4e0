/* The simulate task: time series of exact single-slice 4D-STEM recordings with known truth. docs/simulate.md. */
#ifndef PS_TASKS_SIMULATE_SIMULATE_H
#define PS_TASKS_SIMULATE_SIMULATE_H

#include "cluster/cluster.h"
#include "job/job.h"
#include "tasks/reconstruct/run.h"

/* What a simulate job will do, for `ptyseries check`. */
typedef struct {
    int64_t upsampling; /* object grid relative to the scan grid */
    int64_t object_rows, object_columns;
    double object_step_A[2];
    double lattice_A[2][2];  /* crystal: the two cell vectors (row, column) used, fitted to the scan area; else 0 */
    int64_t n_atoms;         /* crystal, without defects */
    int64_t bytes_per_frame; /* of raw counts, before compression */
    int64_t memory_bytes;    /* at peak per rank, inside the budget */
    int64_t scratch_bytes;   /* temporary file beside the output per rank; 0: counts fit in memory */
} ps_simulate_plan;

/* Rank-local. PS_E_JOB says what cannot be simulated and why. */
ps_code ps_simulate_check(const ps_job *job, uint64_t available_bytes, ps_simulate_plan *plan, ps_error *error);

/* Collective; every rank returns the same code. Frames are spread over ranks; each frame's files are the same whatever the number of ranks
 * and threads. A frame's master appears last, by rename: where it is, the frame is whole. A file that is there already is
 * PS_E_ARGUMENT, and nothing is written, unless options say overwrite, or resume: then a whole frame is kept if its fingerprint is the
 * job's, and PS_E_JOB names the first difference if not. What no simulation made is never replaced. */
ps_code ps_simulate(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error);

#endif
