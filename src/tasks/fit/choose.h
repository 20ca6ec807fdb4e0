/* Which recordings are fitted. Rank-local. */
#ifndef PS_TASKS_FIT_CHOOSE_H
#define PS_TASKS_FIT_CHOOSE_H

#include "plan/plan.h"

/* The wanted-th usable recording of a group (0: the first). PS_E_JOB when it has fewer; PS_E_INPUT when it has none. */
ps_code ps_fit_choose_frame(const ps_run_plan *run, int64_t group, int64_t wanted, int64_t *frame, ps_error *error);

#endif
