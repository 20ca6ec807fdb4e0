#include "tasks/simulate/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tasks/simulate/setup.h"

ps_code ps_simulate_check(ps_check_report *report, const ps_check_options *options, ps_error *error) {
    (void)options; /* there is no recording to look at */
    ps_error reason = {0};
    ps_simulate_plan *plan = report->own = calloc(1, sizeof *plan);
    if (!plan) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the report");
    ps_check_look_at_machine(report);
    ps_code code = ps_simulate_plan_build(&report->job, report->share.bytes, plan, &reason);
    if (code != PS_OK || report->may_run_elsewhere) {
        PS_TRY(ps_check_judge_machine(report, code, &reason, error));
        PS_TRY(ps_simulate_plan_build(&report->job, UINT64_MAX, plan, error));
    }
    report->output_bytes = plan->bytes_per_frame * ps_simulate_entry(&report->job)->n_frames;
    return PS_OK;
}

void ps_simulate_print_check(const ps_check_report *report) {
    const ps_job_simulate *job = ps_simulate_entry(&report->job);
    const ps_simulate_plan *plan = report->own;
    ps_check_print_label("frames");
    printf("%" PRId64 ": scan %" PRId64 " x %" PRId64 ", detector %" PRId64 " x %" PRId64 ", %s, ", job->n_frames, job->scan_rows,
           job->scan_columns, job->detector_rows, job->detector_columns, ps_dtype_name(job->dtype));
    ps_check_print_bytes((double)plan->bytes_per_frame);
    printf(" each before compression\n");
    ps_check_print_label("object");
    printf("%s, %" PRId64 " x %" PRId64 ", step %.4g x %.4g A (%" PRId64 " times finer than the scan)", job->object, plan->object_rows,
           plan->object_columns, plan->object_step_A[0], plan->object_step_A[1], plan->upsampling);
    if (plan->n_atoms > 0) printf(", %" PRId64 " atoms", plan->n_atoms);
    printf("\n");
    ps_check_print_label("memory");
    ps_check_print_bytes((double)plan->memory_bytes);
    printf(" per rank");
    if (plan->scratch_bytes > 0) {
        printf(", and a temporary file of ");
        ps_check_print_bytes((double)plan->scratch_bytes);
    }
    printf("\n");
    ps_check_print_label("output");
    printf("%s\n", job->output_master);
}

void ps_simulate_add_check(cJSON *root, const ps_check_report *report) {
    const ps_job_simulate *job = ps_simulate_entry(&report->job);
    const ps_simulate_plan *plan = report->own;
    ps_check_add_number(root, "n_frames", (double)job->n_frames);
    ps_check_add_shape(root, "scan_shape", job->scan_rows, job->scan_columns);
    ps_check_add_shape(root, "detector_shape", job->detector_rows, job->detector_columns);
    cJSON_AddStringToObject(root, "dtype", ps_dtype_name(job->dtype));
    ps_check_add_shape(root, "object_shape", plan->object_rows, plan->object_columns);
    cJSON_AddItemToObject(root, "object_step_A", cJSON_CreateDoubleArray(plan->object_step_A, 2));
    ps_check_add_number(root, "object_upsampling", (double)plan->upsampling);
    ps_check_add_number(root, "n_atoms", (double)plan->n_atoms);
    ps_check_add_number(root, "memory_bytes", (double)plan->memory_bytes);
    ps_check_add_number(root, "scratch_bytes", (double)plan->scratch_bytes);
    cJSON_AddStringToObject(root, "output_master", job->output_master);
    ps_check_add_machine(root, report);
}
