/* What `ptyseries check` found out of a job, the parts of finding out that tasks share, and the parts of its two forms: text for people,
 * JSON for programs. */
#ifndef PS_TASKS_CHECK_H
#define PS_TASKS_CHECK_H

#include "cluster/memory_bounds.h"
#include "core/busy.h"
#include "job/job.h"
#include "kernels/backend.h"
#include "plan/plan.h"
#include "tasks/task.h"

typedef struct ps_check_report {
    ps_job job;
    ps_run_plan run;           /* of tasks that read a series: all of it, or its recordings only; else empty */
    const ps_backend_ops *ops; /* NULL: the task needs none */
    ps_backend_options backend_options;
    bool device_is_here;      /* this machine has what the backend needs */
    const char *backend_note; /* why this backend; "" when the job says so */
    ps_memory_share share;    /* of this machine, for one rank */
    bool may_run_elsewhere;   /* this machine's memory is not what the job will have */
    char does_not_fit[1024];  /* why it would not run on this machine; "": it would */
    int64_t output_bytes;     /* about; raw counts of all frames for recordings */
    bool output_exists;
    double prepare_seconds, frame_seconds; /* estimates of computing here; 0: not measured */
    double busy_s[PS_N_RESOURCES];         /* estimates for a frame after the first; 0: not measured, or not used */
    double period_s;                       /* from frame to frame of one rank, as they overlap; 0: not measured */
    void *own;                             /* malloc'd: what only the job's task knows; NULL: nothing */
} ps_check_report;

/* ---- finding out; rank-local ---- */

/* That /output/file can be written and is nothing that the job reads; whether it is there. */
ps_code ps_check_output(ps_check_report *report, ps_error *error);
/* A plan needs no device: where none is visible, the backend can still say what it would take. */
ps_code ps_check_backend(ps_check_report *report, ps_error *error);
/* The share of this machine, and whether the job may run on another. */
void ps_check_look_at_machine(ps_check_report *report);
/* A plan for this machine came to code, with its reason: that is the end, but where the job will run elsewhere a warning. */
ps_code ps_check_judge_machine(ps_check_report *report, ps_code code, const ps_error *reason, ps_error *error);

/* ---- text: lines of standard output, each with a label ---- */

enum { PS_CHECK_MOST_LISTED = 8, PS_CHECK_LABEL_WIDTH = 12 };

void ps_check_print_label(const char *text); /* begins a line */
void ps_check_print_bytes(double bytes);     /* "1.2 GiB" */
void ps_check_print_frames(const ps_run_plan *run, const ps_job_series *series);
void ps_check_print_looked(const ps_run_plan *run);
void ps_check_print_backend(const ps_check_report *report);
void ps_check_print_budget(const ps_job *job); /* ends a line */
void ps_check_print_output(const ps_check_report *report);
void ps_check_print_machine(const ps_check_report *report);
void ps_check_print_warnings(const ps_run_plan *run);

/* ---- JSON: what cannot be allocated is left out; the end is checked once, by printing ---- */

void ps_check_add_number(cJSON *object, const char *key, double value);
void ps_check_add_shape(cJSON *object, const char *key, int64_t rows, int64_t columns);
void ps_check_add_frames(cJSON *root, const ps_run_plan *run);
void ps_check_add_output(cJSON *root, const ps_check_report *report);
void ps_check_add_machine(cJSON *root, const ps_check_report *report);
void ps_check_add_backend(cJSON *root, const ps_check_report *report);
void ps_check_add_budget(cJSON *memory, const ps_job *job); /* where the job has one */
/* How g of a frame is held. */
void ps_check_add_g(cJSON *memory, const ps_job *job, const ps_memory_plan *plan);

#endif
