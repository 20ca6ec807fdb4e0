/* The reconstruct task: a series in, one output file out. */
#ifndef PS_TASKS_RECONSTRUCT_RUN_H
#define PS_TASKS_RECONSTRUCT_RUN_H

#include "cluster/cluster.h"
#include "job/job.h"
#include "tasks/task.h"

/* Collective: every rank returns the same code. PS_OK: all frames done; PS_E_PARTIAL: some failed; PS_E_INPUT: none could be read;
 * PS_E_INTERRUPTED: stopped, the output can be resumed; anything else: nothing more was written than the output says. */
ps_code ps_reconstruct(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error);

#endif
