/* What a reconstruct job will do and take, for `ptyseries check`: see ps_task. */
#ifndef PS_TASKS_RECONSTRUCT_CHECK_H
#define PS_TASKS_RECONSTRUCT_CHECK_H

#include "plan/memory.h"
#include "tasks/check.h"

/* The report's own part. */
typedef struct {
    ps_run_memory memory;
    size_t unbounded_host_bytes; /* of the host, were there no limit but the job's */
} ps_reconstruct_found;

const ps_reconstruct_found *ps_reconstruct_found_of(const ps_check_report *report);

ps_code ps_reconstruct_check(ps_check_report *report, const ps_check_options *options, ps_error *error);
void ps_reconstruct_print_check(const ps_check_report *report);
void ps_reconstruct_add_check(cJSON *root, const ps_check_report *report);

#endif
