/* The fit task's line of the table. */
#include "tasks/fit/check.h"
#include "tasks/fit/preview.h"
#include "tasks/fit/run.h"
#include "tasks/fit/view.h"

const ps_task ps_task_fit = {
    .job = &ps_kind_fit,
    .needs_backend = true,
    .run = ps_fit_task_run,
    .check = ps_fit_check,
    .print = ps_fit_print_check,
    .add_json = ps_fit_add_check,
    .output_mark = "entry/fit",
    .info = ps_fit_print_info,
    .preview = ps_fit_preview,
};
