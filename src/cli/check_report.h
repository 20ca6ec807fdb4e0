/* What `ptyseries check` found out, and its two forms: text for people, JSON for programs. Internal to the command. */
#ifndef PS_CLI_CHECK_REPORT_H
#define PS_CLI_CHECK_REPORT_H

#include "job/job.h"
#include "kernels/backend.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "tasks/histogram/memory.h"
#include "tasks/simulate/simulate.h"

typedef struct {
    ps_job job;
    ps_run_plan run;           /* reconstruct: all of it; histogram: recordings only; simulate: empty */
    const ps_backend_ops *ops; /* NULL for simulate */
    ps_backend_options backend_options;
    bool device_is_here;          /* this machine has what the backend needs */
    const char *backend_note;     /* why this backend; "" when the job says so */
    ps_run_memory memory;         /* reconstruct only */
    size_t unbounded_host_bytes;  /* reconstruct: of the host, were there no limit but the job's */
    ps_memory_share share;        /* of this machine, for one rank */
    bool may_run_elsewhere;       /* this machine's memory is not what the job will have */
    char does_not_fit[1024];      /* reconstruct, histogram: why it would not run on this machine; "": it would */
    ps_histogram_memory counting; /* histogram only */
    int64_t counting_rows;        /* histogram only: of the region */
    ps_simulate_plan simulate;    /* simulate only */
    int64_t output_bytes;         /* about; raw counts of all frames for simulate */
    bool output_exists;
    double prepare_seconds, frame_seconds; /* reconstruct: estimates of computing here; 0: not measured */
} ps_check_report;

void ps_check_print_text(const ps_check_report *report);
ps_code ps_check_print_json(const ps_check_report *report, ps_error *error);

const char *ps_check_task_name(ps_task task);

#endif
