/* The histogram task: one histogram per detector pixel over all patterns of a series. docs/histogram.md. */
#ifndef PS_TASKS_HISTOGRAM_RUN_H
#define PS_TASKS_HISTOGRAM_RUN_H

#include "cluster/cluster.h"
#include "job/job.h"
#include "tasks/task.h"

/* Collective: every rank returns the same code, as ps_reconstruct does. */
ps_code ps_histogram_run(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error);

#endif
