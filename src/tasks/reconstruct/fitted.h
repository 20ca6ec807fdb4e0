/* A reconstruct job whose optics are fitted first, as one whose optics are known. Internal to this folder. */
#ifndef PS_TASKS_RECONSTRUCT_FITTED_H
#define PS_TASKS_RECONSTRUCT_FITTED_H

#include "tasks/task.h"

/* Collective. job: with optics.fit. fitted: the same job with the optics that were found inline; its other members are job's. An output
 * that is gone on with has the optics that it was begun with, and nothing is fitted again. json: owns the optics (cJSON_Delete) and
 * outlives fitted. text: for the record, malloc'd, NULL where nothing was fitted. */
ps_code ps_reconstruct_fit(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_job *fitted, cJSON **json,
                           char **text, ps_error *error);

#endif
