#include "tasks/histogram/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tasks/histogram/counting.h"
#include "tasks/histogram/memory.h"
#include "tasks/histogram/pedestal.h"

/* The report's own part. */
typedef struct {
    ps_histogram_memory memory;
    int64_t rows; /* of the region */
} histogram_check;

static ps_code plan_counting(ps_check_report *report, const ps_histogram_plan *plan, ps_error *error) {
    histogram_check *own = report->own;
    const ps_histogram_ops *ops = report->ops->histogram;
    const ps_memory_share unlimited = {.bytes = UINT64_MAX};
    ps_error reason = {0};
    ps_check_look_at_machine(report);
    size_t here = ps_counting_host_budget(&report->job, !ops->on_device ? &report->share : &unlimited);
    ps_code code = ps_histogram_memory_plan(plan, ops, here, &own->memory, &reason);
    if (code == PS_OK && !report->may_run_elsewhere) return PS_OK;
    PS_TRY(ps_check_judge_machine(report, code, &reason, error));
    return ps_histogram_memory_plan(plan, ops, ps_counting_host_budget(&report->job, &unlimited), &own->memory, error);
}

/* The file that a run would subtract can be read, and is of the detector's shape. */
static ps_code check_centre(const ps_histogram_plan *plan, ps_error *error) {
    const ps_run_plan *run = &plan->run;
    if (!plan->wanted->centre_file) return PS_OK;
    double *values = malloc((size_t)(run->detector_rows * run->detector_columns) * sizeof *values);
    if (!values) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the centre file");
    ps_code code = ps_pedestal_load(plan->wanted->centre_file, run->detector_rows, run->detector_columns, values, error);
    free(values);
    return code;
}

ps_code ps_histogram_check(ps_check_report *report, const ps_check_options *options, ps_error *error) {
    (void)options; /* headers are all that it looks at */
    ps_histogram_plan plan = {0};
    histogram_check *own = calloc(1, sizeof *own);
    if (!own) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the report");
    report->own = own;
    PS_TRY(ps_check_output(report, error));
    PS_TRY(ps_check_backend(report, error));
    PS_TRY(ps_histogram_plan_build(&report->job, &plan, error));
    ps_code code = check_centre(&plan, error);
    if (code == PS_OK) code = plan_counting(report, &plan, error);
    own->rows = plan.rows;
    report->output_bytes = plan.n_pixels * ps_histogram_entry(&report->job)->n_bins * (int64_t)sizeof(uint64_t);
    report->run = plan.run; /* moved */
    plan.run = (ps_run_plan){0};
    ps_histogram_plan_free(&plan);
    return code;
}

/* ---- text ---- */

static void print_histogram(const ps_check_report *report) {
    const ps_job_histogram *histogram = ps_histogram_entry(&report->job);
    ps_check_print_label("bins");
    printf("%" PRId64 ", ", histogram->n_bins);
    if (histogram->automatic_range)
        printf("range from the data\n");
    else
        printf("from %g to %g\n", histogram->range[0], histogram->range[1]);
}

static void print_counting(const ps_check_report *report) {
    const histogram_check *own = report->own;
    const ps_histogram_memory *memory = &own->memory;
    ps_check_print_backend(report);
    ps_check_print_label("memory");
    ps_check_print_bytes((double)memory->counter_bytes);
    printf(" %s for counters", memory->on_device ? "on the device" : "per rank");
    if (memory->frame_bytes > 0) {
        printf(", up to ");
        ps_check_print_bytes((double)memory->frame_bytes);
        printf(" for patterns");
    } else if (memory->on_device)
        printf(", more for patterns");
    printf(", ");
    ps_check_print_bytes((double)memory->host_bytes);
    printf(" %s; %" PRId64 " of %" PRId64 " rows at once; ", memory->on_device ? "per rank in the process" : "beside them",
           memory->rows_at_once, own->rows);
    ps_check_print_budget(&report->job);
}

void ps_histogram_print_check(const ps_check_report *report) {
    ps_check_print_frames(&report->run, &report->job.series);
    print_histogram(report);
    print_counting(report);
    ps_check_print_looked(&report->run);
    ps_check_print_output(report);
    ps_check_print_machine(report);
    ps_check_print_warnings(&report->run);
}

/* ---- JSON ---- */

void ps_histogram_add_check(cJSON *root, const ps_check_report *report) {
    const histogram_check *own = report->own;
    const ps_histogram_memory *counting = &own->memory;
    ps_check_add_frames(root, &report->run);
    ps_check_add_output(root, report);
    ps_check_add_machine(root, report);
    ps_check_add_number(root, "bins", (double)ps_histogram_entry(&report->job)->n_bins);
    ps_check_add_backend(root, report);
    cJSON *memory = cJSON_AddObjectToObject(root, "memory_per_rank");
    cJSON_AddBoolToObject(memory, "on_device", counting->on_device);
    ps_check_add_number(memory, "counter_bytes", (double)counting->counter_bytes);
    ps_check_add_number(memory, "frame_bytes", (double)counting->frame_bytes);
    ps_check_add_number(memory, "host_bytes", (double)counting->host_bytes);
    ps_check_add_number(memory, "rows_at_once", (double)counting->rows_at_once);
    ps_check_add_number(memory, "rows", (double)own->rows);
    ps_check_add_budget(memory, &report->job);
}
