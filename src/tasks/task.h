/* A task: what a job can ask for. Each has a folder here and one struct ps_task, which says everything that the parser of jobs and the
 * commands need to know of it; they go over the table (tasks/tasks.h) and know no task by name. docs/architecture.md, "Add a task". */
#ifndef PS_TASKS_TASK_H
#define PS_TASKS_TASK_H

#include <stdbool.h>

#include <cJSON.h>

#include "cluster/cluster.h"
#include "job/job.h"
#include "report/preview.h"
#include "tasks/task_list.h"

typedef struct {
    bool resume, overwrite, retry_failed;
    const char *command_line; /* as given, for the record */
} ps_run_options;

typedef struct {
    bool every_recording; /* look at all recordings, not at some of them */
} ps_check_options;

typedef struct {
    ps_preview_options pictures;
    int64_t n_pixels;
    const char *const *pixels; /* [n_pixels] "ROW,COLUMN" as given; for outputs that have something to show of a pixel */
} ps_task_preview;

struct ps_check_report; /* tasks/check.h */

typedef struct {
    const ps_job_kind *job; /* its name, and how its entries are read */
    bool needs_backend;     /* computes with a backend's kernels: ranks are placed near the devices */

    /* Collective: every rank returns the same code. PS_OK: all is done; PS_E_PARTIAL: some frames failed; PS_E_INPUT: none could be read;
     * PS_E_INTERRUPTED: stopped. docs/jobs.md tells what each leaves behind. */
    ps_code (*run)(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error);

    /* `ptyseries check`. Rank-local; nothing is written. check: finds out whether the job can run and what it would take, into *report,
     * whose job is loaded already; what only this task knows goes to report->own. print and add_json: the two forms of what it found,
     * without what every report begins and ends with. estimate_time: optional. Fills the report's seconds, from a sample computed here. */
    ps_code (*check)(struct ps_check_report *report, const ps_check_options *options, ps_error *error);
    ps_code (*estimate_time)(struct ps_check_report *report, ps_error *error);
    void (*print)(const struct ps_check_report *report);
    void (*add_json)(cJSON *root, const struct ps_check_report *report);

    /* Its output file, where it writes one that this program can show: output_mark is an object below the file's root that no other task's
     * outputs have; NULL for the one task whose outputs are those without a mark. info prints what the file at path holds; preview draws
     * it. All NULL: it writes none. */
    const char *output_mark;
    ps_code (*info)(const char *path, ps_error *error);
    ps_code (*preview)(const char *path, const ps_task_preview *options, int64_t *n_written, ps_error *error);
} ps_task;

#define X(name) extern const ps_task ps_task_##name;
PS_TASK_LIST(X)
#undef X

#endif
