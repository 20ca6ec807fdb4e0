/* Pictures of a histogram output: maps, masks, plots, and one self-contained HTML report. */
#ifndef PS_TASKS_HISTOGRAM_PREVIEW_H
#define PS_TASKS_HISTOGRAM_PREVIEW_H

#include "tasks/task.h"

/* See ps_task. Of the pictures' options, directory and clip_percent matter. pixels are those of the detector whose histograms are plotted;
 * none: a typical one, the extremes, and the first of each masked kind. */
ps_code ps_histogram_preview(const char *path, const ps_task_preview *options, int64_t *n_written, ps_error *error);

#endif
