#include "tasks/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/backend_choice.h"
#include "store/guard.h"

ps_code ps_check_output(ps_check_report *report, ps_error *error) {
    struct stat found;
    ps_reader_options options = ps_job_reader_options(&report->job);
    report->output_exists = stat(report->job.output_file, &found) == 0;
    return ps_guard_output(&report->job, &options, error);
}

ps_code ps_check_backend(ps_check_report *report, ps_error *error) {
    const ps_job *job = &report->job;
    const ps_backend_request named = {.name = job->backend, .needs_histograms = job->needs_histograms};
    ps_error reason = {0};
    ps_code code = ps_backend_choose(job, 0, 1, &report->ops, &report->backend_options, &reason);
    report->backend_note = strcmp(job->backend, "auto") == 0 ? "chosen automatically on this machine" : "";
    report->device_is_here = code == PS_OK;
    if (code == PS_OK) return PS_OK;
    report->ops = ps_backend_built(&named);
    if (code != PS_E_BACKEND || !report->ops) return PS_FAIL(error, code, "%s", reason.text);
    report->backend_note = "no such device is visible on this machine; the run needs one";
    return PS_OK;
}

static bool is_on_path(const char *program) {
    const char *path = getenv("PATH");
    char full[4096];
    for (const char *at = path; at && *at; at += strcspn(at, ":"), at += *at == ':') {
        int length = snprintf(full, sizeof full, "%.*s/%s", (int)strcspn(at, ":"), at, program);
        if (length < (int)sizeof full && access(full, X_OK) == 0) return true;
    }
    return false;
}

/* A batch system's commands outside of any of its jobs: the job will run on other machines than this one. */
static bool is_login_node(void) {
    if (getenv("SLURM_JOB_ID") || getenv("PBS_JOBID") || getenv("LSB_JOBID") || getenv("JOB_ID")) return false;
    return is_on_path("sbatch") || is_on_path("qsub") || is_on_path("bsub");
}

void ps_check_look_at_machine(ps_check_report *report) {
    ps_memory_share_alone(&report->share);
    report->may_run_elsewhere = is_login_node() || (report->ops && !report->device_is_here);
}

ps_code ps_check_judge_machine(ps_check_report *report, ps_code code, const ps_error *reason, ps_error *error) {
    if (code != PS_OK && (code != PS_E_JOB || !report->may_run_elsewhere)) return PS_FAIL(error, code, "%s", reason->text);
    snprintf(report->does_not_fit, sizeof report->does_not_fit, "%s", reason->text);
    return PS_OK;
}
