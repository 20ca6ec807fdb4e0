/* What a simulated frame is known to be: its object and its optics. */
#ifndef PS_TASKS_SIMULATE_TRUTH_H
#define PS_TASKS_SIMULATE_TRUTH_H

#include "tasks/simulate/setup.h"

/* Both write the file under its temporary name (partial.h); it gets its own together with the recording. */

/* path: "..._truth.h5". Datasets phase and log_amplitude [row, column] float32 on the object's grid,
 * axes in Angstrom, the frame's optics as JSON text. */
ps_code ps_truth_write(const char *path, const ps_simulate_setup *setup, const ps_specimen *specimen, int64_t frame, ps_error *error);

/* path: "..._optics.json", what a reconstruction takes as per_frame optics. */
ps_code ps_truth_write_optics(const char *path, const ps_simulate_setup *setup, int64_t frame, ps_error *error);

#endif
