/* What a histogram job comes to: recordings, region, positions, and each rank's share of them. */
#ifndef PS_TASKS_HISTOGRAM_PLAN_H
#define PS_TASKS_HISTOGRAM_PLAN_H

#include "cluster/cluster.h"
#include "plan/file_checks.h"
#include "plan/plan.h"
#include "tasks/histogram/entry.h"

/* Positions of all readable recordings in one order, "global position" g = usable recording * positions_per_frame + k, where k counts every
 * stride-th position of a recording. Pixels are those of the region, row by row. */
typedef struct {
    const ps_job *job;
    const ps_job_histogram *wanted; /* its histogram entry */
    ps_run_plan run;
    ps_file_checks checks;           /* of everything that is read; none before ps_file_checks_make */
    int64_t rows, columns, n_pixels; /* of the region */
    int64_t first_row, first_column;
    int64_t positions_per_frame;
    int64_t n_usable, *usable; /* [n_usable] frames of the series that can be opened */
    int64_t n_positions;       /* of all */
    double saturation;         /* INFINITY: none */
} ps_histogram_plan;

/* Shape of the job's region on the run's detector. PS_E_JOB when it reaches over the edge. */
ps_code ps_histogram_region(const ps_job *job, const ps_run_plan *run, int64_t *rows, int64_t *columns, ps_error *error);

/* Rank-local and deterministic. PS_E_JOB when the region reaches over the detector; else fails as ps_run_plan_open. */
ps_code ps_histogram_plan_build(const ps_job *job, ps_histogram_plan *plan, ps_error *error);
void ps_histogram_plan_free(ps_histogram_plan *plan);

/* The rank's part of n things: [*begin, *end). */
void ps_share(int64_t n, int rank, int n_ranks, int64_t *begin, int64_t *end);

/* Collective. Pixels that the recordings' own masks (of any of them) or the job's mask file exclude. given: [detector_rows,
 * detector_columns], 1 or 0. */
ps_code ps_histogram_given_mask(const ps_cluster *cluster, const ps_histogram_plan *plan, uint8_t *given, ps_error *error);

#endif
