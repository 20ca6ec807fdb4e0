/* From a reduced frame to everything that is written of it: what every method of the job leaves. */
#ifndef PS_TASKS_RECONSTRUCT_FRAME_SOLVE_H
#define PS_TASKS_RECONSTRUCT_FRAME_SOLVE_H

#include "tasks/reconstruct/writer.h"

/* frame: reduced. n_data: see ps_method_solve. Sends images to the writer, fills the numbers and the data norm of to->result, and adds to
 * its seconds, waiting for the writer not counted. On an error some images were sent. */
ps_code ps_frame_solve(const ps_method_set *methods, ps_frame *frame, double n_data, ps_writer_frame *to, ps_error *error);

#endif
