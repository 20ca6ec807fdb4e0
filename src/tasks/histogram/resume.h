/* What --resume finds: a histogram file is complete when it exists. */
#ifndef PS_TASKS_HISTOGRAM_RESUME_H
#define PS_TASKS_HISTOGRAM_RESUME_H

#include "tasks/histogram/plan.h"
#include "tasks/task.h"

typedef struct {
    int complete;         /* made by the same job, and to be kept */
    int64_t n_failed;     /* of its frames */
    int64_t first_failed; /* where n_failed > 0 */
} ps_histogram_existing;

/* Rank-local, with the plan's checks made. *found stays as it is where there is no file to go on with. PS_E_ARGUMENT when the file was made
 * by another job, or from other recordings: the text names those that differ. */
ps_code ps_histogram_look_at_existing(const ps_histogram_plan *plan, const ps_run_options *options, ps_histogram_existing *found,
                                      ps_error *error);

#endif
