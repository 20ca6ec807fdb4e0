/* From a frame's counts to its files on disk: picked by position, encoded, written as a Dectris master. */
#ifndef PS_TASKS_SIMULATE_RECORD_H
#define PS_TASKS_SIMULATE_RECORD_H

#include "tasks/simulate/setup.h"
#include "tasks/simulate/targets.h"
#include "tasks/simulate/transpose.h"

/* Rank-local. On error, watch's included, no file is left. Nothing but the files' names depends on paths, whose truth and
 * optics are there under their temporary names. */
ps_code ps_record(const ps_simulate_setup *setup, int64_t frame, ps_transpose *turning, const ps_simulate_paths *paths,
                  const ps_simulate_watch *watch, ps_error *error);

#endif
