/* Which recordings are fitted. Rank-local. */
#ifndef PS_TASKS_FIT_CHOOSE_H
#define PS_TASKS_FIT_CHOOSE_H

#include "plan/plan.h"
#include "tasks/fit/tries.h"

/* The wanted-th usable recording of a group (0: the first). PS_E_JOB when it has fewer; PS_E_INPUT when it has none. */
ps_code ps_fit_choose_frame(const ps_run_plan *run, int64_t group, int64_t wanted, int64_t *frame, ps_error *error);

/* The same, on rank 0, without those whose fit was begun and never ended too often: the next usable one then, with a word to the log. */
ps_code ps_fit_choose_untried(const ps_run_plan *run, int64_t group, int64_t wanted, const ps_fit_tries *tries, int64_t *frame,
                              ps_error *error);

/* The recordings that a job fits, one of each group, or all that are usable (per_frame), in the order of the series; *frames: malloc'd. */
ps_code ps_fit_list_frames(const ps_job *job, const ps_run_plan *run, int64_t *n, int64_t **frames, ps_error *error);

#endif
