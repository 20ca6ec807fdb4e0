/* The counts of one frame: every detector pixel scattered, scaled to the dose, drawn, and turned into position order. */
#ifndef PS_TASKS_SIMULATE_EXPOSURE_H
#define PS_TASKS_SIMULATE_EXPOSURE_H

#include "tasks/simulate/setup.h"
#include "tasks/simulate/transpose.h"

/* directory: for a temporary file. *turning: owned by the caller. A count that the dtype does not hold is PS_E_JOB. The counts depend on
 * setup's job, frame and specimen alone. */
ps_code ps_expose(const ps_simulate_setup *setup, const ps_specimen *specimen, int64_t frame, const char *directory,
                  const ps_simulate_watch *watch, ps_transpose **turning, ps_error *error);

#endif
