/* ptyseries check: validates a job and prints its plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/check_report.h"
#include "cli/check_time.h"
#include "cli/cli.h"
#include "core/log.h"
#include "core/options.h"
#include "core/text.h"
#include "input/preflight.h"
#include "plan/backend_choice.h"
#include "store/guard.h"
#include "tasks/histogram/counting.h"

typedef struct {
    const char *job_path;
    ps_option_list settings;
    bool json, time, data;
} check_arguments;

static ps_code parse(check_arguments *given, int n_arguments, char **arguments, bool *help, ps_error *error) {
    const ps_option options[] = {
        {"--set", PS_OPTION_LIST, &given->settings, "path.to.key=value overrides a job entry; repeatable"},
        {"--json", PS_OPTION_FLAG, &given->json, "print one JSON object"},
        {"--data", PS_OPTION_FLAG, &given->data, "reconstruct: look at some patterns of every recording, not of 32 of them"},
        {"--time", PS_OPTION_FLAG, &given->time, "reconstruct: also estimate the time, from a sample computed here"},
    };
    ps_command_line line = {.command = "check",
                            .synopsis = "JOB.json [OPTIONS]",
                            .description =
                                "Checks a job and its inputs and prints the plan: frames, shapes, active pixels, upsampling, aliases,\n"
                                "memory per rank, output size. Needs neither GPU nor MPI, and writes nothing.\n"
                                "Exit status: 0 the job can run, 2 it cannot, with the reason.",
                            .options = options,
                            .n_options = sizeof options / sizeof *options,
                            .min_operands = 1,
                            .max_operands = 1,
                            .operands = &given->job_path};
    return ps_options_parse(&line, n_arguments, arguments, help, error);
}

const char *ps_check_task_name(ps_task task) {
    switch (task) {
    case PS_TASK_RECONSTRUCT: return "reconstruct";
    case PS_TASK_SIMULATE: return "simulate";
    case PS_TASK_HISTOGRAM: return "histogram";
    }
    return "";
}

/* A plan needs no device: where none is visible, the backend can still say what it would take. */
static ps_code choose_backend(ps_check_report *report, ps_error *error) {
    const ps_job *job = &report->job;
    const ps_backend_request named = {.name = job->backend};
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

/* ---- memory ------------------------------------------------------------------------------------------------------------------- */

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

/* What the backend may take of a device that is here; 0: of none. */
static size_t device_bytes(const ps_check_report *report) {
    ps_backend *backend = NULL;
    ps_device_info info = {0};
    if (!report->device_is_here || !report->ops->device_count) return 0;
    if (ps_backend_open(report->ops, &report->backend_options, &backend, NULL) != PS_OK) return 0;
    ps_backend_info(backend, &info);
    ps_backend_close(backend);
    return info.budget_bytes;
}

static ps_code plan_memory(ps_check_report *report, const ps_memory_share *share, size_t device, ps_error *error) {
    PS_TRY(ps_run_memory_begin(&report->job, &report->run, report->ops, share, &report->memory, error));
    return ps_run_memory_finish(&report->job, &report->run, report->ops, share, device, &report->memory, error);
}

static void look_at_machine(ps_check_report *report) {
    ps_memory_share_alone(&report->share);
    report->may_run_elsewhere = is_login_node() || (report->ops && !report->device_is_here);
}

/* A plan for this machine failed: that is the end, but where the job will run elsewhere a warning. */
static ps_code judge_machine(ps_check_report *report, ps_code code, const ps_error *reason, ps_error *error) {
    if (code != PS_OK && (code != PS_E_JOB || !report->may_run_elsewhere)) return PS_FAIL(error, code, "%s", reason->text);
    snprintf(report->does_not_fit, sizeof report->does_not_fit, "%s", reason->text);
    return PS_OK;
}

/* Planned into this machine's memory, for one rank. Where the job will run elsewhere this machine's memory is worth a warning only. */
static ps_code check_memory(ps_check_report *report, ps_error *error) {
    ps_error reason = {0};
    look_at_machine(report);
    PS_TRY(plan_memory(report, NULL, 0, error));
    report->unbounded_host_bytes = report->memory.host_bytes;
    const ps_run_memory unbounded = report->memory;
    ps_code code = plan_memory(report, &report->share, device_bytes(report), &reason);
    if (code == PS_OK) return PS_OK;
    report->memory = unbounded;
    return judge_machine(report, code, &reason, error);
}

/* ---- tasks -------------------------------------------------------------------------------------------------------------------- */

static ps_code check_output(ps_check_report *report, ps_error *error) {
    struct stat found;
    ps_reader_options options = ps_job_reader_options(&report->job);
    report->output_exists = stat(report->job.output_file, &found) == 0;
    return ps_guard_output(&report->job, &options, error);
}

/* Images, and the few numbers that go with each. */
static int64_t reconstruct_bytes(const ps_check_report *report) {
    const ps_job *job = &report->job;
    int64_t images = job->ssb_enabled ? 1 : 0;
    if (job->phase.enabled) images += job->phase.n_strengths;
    if (job->complex_.enabled) images += 2 * job->complex_.n_strengths;
    return report->run.series.n_items * images * report->run.image_rows * report->run.image_columns * (int64_t)sizeof(float);
}

static ps_code check_reconstruct(ps_check_report *report, bool every_recording, ps_error *error) {
    enum { MOST_LOOKED_AT = 32 };
    PS_TRY(check_output(report, error));
    PS_TRY(choose_backend(report, error));
    PS_TRY(ps_run_plan_build(&report->job, &report->run, error));
    PS_TRY(ps_run_plan_survey(NULL, &report->job, NULL, &report->run, every_recording ? 0 : MOST_LOOKED_AT, error));
    PS_TRY(ps_run_plan_inspect(&report->job, &report->run, error));
    PS_TRY(check_memory(report, error));
    report->output_bytes = reconstruct_bytes(report);
    return PS_OK;
}

static ps_code plan_counting(ps_check_report *report, const ps_histogram_plan *plan, ps_error *error) {
    const ps_histogram_ops *ops = report->ops->histogram;
    const ps_memory_share unlimited = {.bytes = UINT64_MAX};
    ps_error reason = {0};
    look_at_machine(report);
    size_t here = ps_counting_host_budget(&report->job, !ops->on_device ? &report->share : &unlimited);
    ps_code code = ps_histogram_memory_plan(plan, ops, here, &report->counting, &reason);
    if (code == PS_OK && !report->may_run_elsewhere) return PS_OK;
    PS_TRY(judge_machine(report, code, &reason, error));
    return ps_histogram_memory_plan(plan, ops, ps_counting_host_budget(&report->job, &unlimited), &report->counting, error);
}

static ps_code check_histogram(ps_check_report *report, ps_error *error) {
    ps_histogram_plan plan = {0};
    PS_TRY(check_output(report, error));
    PS_TRY(choose_backend(report, error));
    PS_TRY(ps_histogram_plan_build(&report->job, &plan, error));
    ps_code code = plan_counting(report, &plan, error);
    report->counting_rows = plan.rows;
    report->output_bytes = plan.n_pixels * report->job.histogram.n_bins * (int64_t)sizeof(uint64_t);
    report->run = plan.run; /* moved */
    plan.run = (ps_run_plan){0};
    ps_histogram_plan_free(&plan);
    return code;
}

static ps_code check_simulate(ps_check_report *report, ps_error *error) {
    ps_error reason = {0};
    look_at_machine(report);
    ps_code code = ps_simulate_check(&report->job, report->share.bytes, &report->simulate, &reason);
    if (code != PS_OK || report->may_run_elsewhere) {
        PS_TRY(judge_machine(report, code, &reason, error));
        PS_TRY(ps_simulate_check(&report->job, UINT64_MAX, &report->simulate, error));
    }
    report->output_bytes = report->simulate.bytes_per_frame * report->job.simulate.n_frames;
    return PS_OK;
}

static ps_code check_task(ps_check_report *report, bool every_recording, ps_error *error) {
    switch (report->job.task) {
    case PS_TASK_RECONSTRUCT: return check_reconstruct(report, every_recording, error);
    case PS_TASK_SIMULATE: return check_simulate(report, error);
    case PS_TASK_HISTOGRAM: return check_histogram(report, error);
    }
    return PS_FAIL(error, PS_E_INTERNAL, "unknown task");
}

static ps_code check(const check_arguments *given, ps_error *error) {
    ps_code code = PS_OK;
    ps_check_report *report = calloc(1, sizeof *report);
    PS_GO_ALLOC(error, report);
    PS_GO(ps_preflight_reach(given->job_path, error));
    PS_GO(ps_job_load(given->job_path, given->settings.texts, given->settings.n, &report->job, error));
    PS_GO(check_task(report, given->data, error));
    if (given->time && report->job.task == PS_TASK_RECONSTRUCT) PS_GO(ps_check_estimate_time(report, error));
    if (given->json)
        PS_GO(ps_check_print_json(report, error));
    else
        ps_check_print_text(report);
done:
    if (report) {
        ps_run_plan_free(&report->run);
        ps_job_free(&report->job);
    }
    free(report);
    return code;
}

int ps_command_check(int n_arguments, char **arguments) {
    check_arguments given = {0};
    ps_error error = {0};
    bool help = false;
    ps_code code = parse(&given, n_arguments, arguments, &help, &error);
    if (code == PS_OK && !help) {
        ps_preflight_begin();
        code = check(&given, &error);
    }
    if (code != PS_OK) ps_log(PS_LOG_ERROR, "%s", error.text);
    free(given.settings.texts);
    return code == PS_E_INPUT ? ps_code_exit_status(PS_E_JOB) : ps_code_exit_status(code);
}
