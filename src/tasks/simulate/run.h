/* The simulate task: time series of exact single-slice 4D-STEM recordings with known truth. docs/simulate.md. */
#ifndef PS_TASKS_SIMULATE_RUN_H
#define PS_TASKS_SIMULATE_RUN_H

#include "cluster/cluster.h"
#include "job/job.h"
#include "tasks/task.h"

/* Collective; every rank returns the same code. Frames are spread over ranks; each frame's files are the same whatever the number of ranks
 * and threads. A frame's master appears last, by rename: where it is, the frame is whole. A file that is there already is
 * PS_E_ARGUMENT, and nothing is written, unless options say overwrite, or resume: then a whole frame is kept if its fingerprint is the
 * job's, and PS_E_JOB names the first difference if not. What no simulation made is never replaced. */
ps_code ps_simulate(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error);

#endif
