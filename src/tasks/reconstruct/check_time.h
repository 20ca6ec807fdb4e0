/* How long a reconstruct job will take here, from a sample of its own problem. */
#ifndef PS_TASKS_RECONSTRUCT_CHECK_TIME_H
#define PS_TASKS_RECONSTRUCT_CHECK_TIME_H

#include "tasks/check.h"

/* Seconds on this machine, all cores, one rank: what one optics and one frame cost to compute, and for how long a frame will keep each
 * resource busy (check_bound.h).
 * Measured on a few scan frequencies with all pixels and on a few pixels with all positions, and scaled: an estimate, not a promise (within
 * a factor of two or three). Some seconds of work. PS_E_MEMORY and device errors come from the backend. */
ps_code ps_check_estimate_time(ps_check_report *report, ps_error *error);

#endif
