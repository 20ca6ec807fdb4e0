/* What is there already where a frame of a simulated series goes. */
#ifndef PS_TASKS_SIMULATE_EXISTING_H
#define PS_TASKS_SIMULATE_EXISTING_H

#include "tasks/simulate/leftovers.h"
#include "tasks/simulate/targets.h"
#include "tasks/task.h"

/* Rank-local. *whole: the frame's recording is there. Without overwrite and resume anything that is in the frame's place, also under a
 * second name that a killed run left, is PS_E_ARGUMENT; with them only what no simulation made: it is never replaced. A warning names what
 * a killed run left. leftovers: for all frames, starts as {0}. */
ps_code ps_simulate_look(const ps_simulate_paths *paths, const ps_run_options *options, ps_leftovers *leftovers, bool *whole,
                         ps_error *error);

#endif
