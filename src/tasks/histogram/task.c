/* The histogram task's line of the table. */
#include "tasks/histogram/check.h"
#include "tasks/histogram/entry.h"
#include "tasks/histogram/preview.h"
#include "tasks/histogram/run.h"
#include "tasks/histogram/view.h"
#include "tasks/task_list.h"

static const char *const entries[] = {"series", "output", "compute", "histogram"};

const ps_task ps_task_histogram = {
    .job = {.name = "histogram",
            .entries = entries,
            .n_entries = sizeof entries / sizeof *entries,
            .read = ps_histogram_read_entry,
            .free_own = ps_histogram_free_entry},
    .needs_backend = true,
    .run = ps_histogram_run,
    .check = ps_histogram_check,
    .print = ps_histogram_print_check,
    .add_json = ps_histogram_add_check,
    .output_mark = "entry/histogram",
    .info = ps_histogram_print_info,
    .preview = ps_histogram_preview,
};
