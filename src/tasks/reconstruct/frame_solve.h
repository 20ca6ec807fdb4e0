/* From a reduced frame to everything that is written of it: what every method of the job leaves. */
#ifndef PS_TASKS_RECONSTRUCT_FRAME_SOLVE_H
#define PS_TASKS_RECONSTRUCT_FRAME_SOLVE_H

#include "method/method.h"
#include "store/output.h"

/* methods: filled; result refers to it until its next use. frame: reduced. n_data: see ps_method_solve. Sets the result's methods and data
 * norm, and adds to its seconds. */
ps_code ps_frame_solve(const ps_method_results *methods, ps_frame *frame, double n_data, ps_frame_result *result, ps_error *error);

#endif
