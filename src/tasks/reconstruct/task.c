/* The reconstruct task's line of the table. */
#include "store/info.h"
#include "tasks/reconstruct/check.h"
#include "tasks/reconstruct/check_time.h"
#include "tasks/reconstruct/run.h"

static ps_code preview(const char *path, const ps_task_preview *options, int64_t *n_written, ps_error *error) {
    return ps_preview(path, &options->pictures, n_written, error);
}

const ps_task ps_task_reconstruct = {
    .job = &ps_kind_reconstruct,
    .needs_backend = true,
    .run = ps_reconstruct,
    .check = ps_reconstruct_check,
    .estimate_time = ps_check_estimate_time,
    .print = ps_reconstruct_print_check,
    .add_json = ps_reconstruct_add_check,
    .info = ps_output_print_info,
    .preview = preview,
};
