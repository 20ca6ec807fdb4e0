/* Pictures of a fit's output: the landscape over rotation and C10, the phase before and after, what is left over the aperture, and one
 * self-contained HTML report. */
#ifndef PS_TASKS_FIT_PREVIEW_H
#define PS_TASKS_FIT_PREVIEW_H

#include "tasks/task.h"

/* See ps_task. Of the pictures' options, directory and clip_percent matter; single pixels are nothing that a fit could show. */
ps_code ps_fit_preview(const char *path, const ps_task_preview *options, int64_t *n_written, ps_error *error);

#endif
