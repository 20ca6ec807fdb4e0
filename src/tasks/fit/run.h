/* The fit task: a series in; optics files and a record of how they were found out. */
#ifndef PS_TASKS_FIT_RUN_H
#define PS_TASKS_FIT_RUN_H

#include "tasks/task.h"

/* See ps_task. One fit for each optics group, which all ranks do together. */
ps_code ps_fit_task_run(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error);

#endif
