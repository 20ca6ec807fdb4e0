/* What must be known of a group's counts before its systems can be prepared: the mean pattern of its first frame, and hot pixels in it. */
#ifndef PS_PLAN_FIRST_PATTERNS_H
#define PS_PLAN_FIRST_PATTERNS_H

#include "cluster/cluster.h"
#include "input/loader.h"
#include "plan/plan.h"

/* Collective. group_mean: [run->n_groups], filled with malloc'd [detector pixels] patterns, the same on every rank, where the job needs
 * them (poisson weights of a group of several frames, or a search for hot pixels), else NULL; the caller frees each. Groups are spread over
 * ranks; a first frame that cannot be read is replaced by the next that can; hot pixels found are entered into run.
 *
 * measured: the output that is gone on with, or NULL. What it says of a group's pattern and hot pixels is taken, not measured again; a
 * group of which it has weights but no pattern (earlier versions) gets none. PS_E_ARGUMENT when frames are done and it has neither. */
ps_code ps_first_patterns(const ps_cluster *cluster, const ps_job *job, const ps_measured *measured, ps_run_plan *run, ps_loader *loader,
                          const ps_loader_shape *shape, double **group_mean, ps_error *error);
/* Whether a job takes anything from the group's mean pattern. */
bool ps_first_patterns_need(const ps_job *job, const ps_run_group *group);

#endif
