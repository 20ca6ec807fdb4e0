/* The histogram task's line of the table. */
#include "tasks/histogram/check.h"
#include "tasks/histogram/preview.h"
#include "tasks/histogram/run.h"
#include "tasks/histogram/view.h"

const ps_task ps_task_histogram = {
    .job = &ps_kind_histogram,
    .needs_backend = true,
    .run = ps_histogram_run,
    .check = ps_histogram_check,
    .print = ps_histogram_print_check,
    .add_json = ps_histogram_add_check,
    .output_mark = "entry/histogram",
    .info = ps_histogram_print_info,
    .preview = ps_histogram_preview,
};
