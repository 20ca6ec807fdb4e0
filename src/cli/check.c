/* ptyseries check: validates a job and prints its plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/check_report.h"
#include "cli/check_time.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "core/log.h"
#include "core/text.h"
#include "histogram/memory.h"
#include "input/screen.h"
#include "reconstruct/backend_choice.h"

typedef struct {
    const char *job_path;
    ps_option_list settings;
    bool json, time;
} check_arguments;

static ps_code parse(check_arguments *given, int n_arguments, char **arguments, bool *help, ps_error *error) {
    const ps_option options[] = {
        {"--set", PS_OPTION_LIST, &given->settings, "path.to.key=value overrides a job entry; repeatable"},
        {"--json", PS_OPTION_FLAG, &given->json, "print one JSON object"},
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
    ps_backend_options ignored;
    ps_error reason = {0};
    ps_code code = ps_backend_choose(job, 0, 1, &report->ops, &ignored, &reason);
    report->backend_note = strcmp(job->backend, "auto") == 0 ? "chosen automatically on this machine" : "";
    if (code == PS_OK) return PS_OK;
    report->ops = ps_backend_built(&named);
    if (code != PS_E_BACKEND || !report->ops) return PS_FAIL(error, code, "%s", reason.text);
    report->backend_note = "no such device is visible on this machine; the run needs one";
    return PS_OK;
}

static ps_code check_output(ps_check_report *report, ps_error *error) {
    struct stat found;
    const char *file = report->job.output_file;
    char *directory = ps_path_directory(file);
    if (!directory) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    bool is_directory = stat(directory, &found) == 0 && S_ISDIR(found.st_mode);
    report->output_exists = stat(file, &found) == 0;
    ps_code code = PS_OK;
    if (!is_directory)
        code = PS_FAIL(error, PS_E_JOB, "/output/file: found %s, but there is no directory %s; create it first", file, directory);
    else if (report->output_exists && S_ISDIR(found.st_mode))
        code = PS_FAIL(error, PS_E_JOB, "/output/file: %s is a directory, expected a file", file);
    free(directory);
    return code;
}

/* Images, and the few numbers that go with each. */
static int64_t reconstruct_bytes(const ps_check_report *report) {
    const ps_job *job = &report->job;
    int64_t images = job->ssb_enabled ? 1 : 0;
    if (job->phase.enabled) images += job->phase.n_strengths;
    if (job->complex_.enabled) images += 2 * job->complex_.n_strengths;
    return report->run.series.n_items * images * report->run.image_rows * report->run.image_columns * (int64_t)sizeof(float);
}

static ps_code check_reconstruct(ps_check_report *report, ps_error *error) {
    PS_TRY(check_output(report, error));
    PS_TRY(choose_backend(report, error));
    PS_TRY(ps_run_plan_build(&report->job, &report->run, error));
    PS_TRY(ps_run_plan_look(&report->job, &report->run, error));
    PS_TRY(ps_run_plan_memory(&report->job, &report->run, report->ops, &report->memory, error));
    report->output_bytes = reconstruct_bytes(report);
    return PS_OK;
}

static ps_code check_histogram(ps_check_report *report, ps_error *error) {
    ps_histogram_plan plan = {0};
    size_t budget = (size_t)(report->job.memory_budget_GiB * 1024.0 * 1024.0 * 1024.0);
    PS_TRY(check_output(report, error));
    PS_TRY(choose_backend(report, error));
    PS_TRY(ps_histogram_plan_build(&report->job, &plan, error));
    ps_code code = ps_histogram_memory_plan(&plan, report->ops->histogram, budget, &report->counting, error);
    report->counting_rows = plan.rows;
    report->output_bytes = plan.n_pixels * report->job.histogram.n_bins * (int64_t)sizeof(uint64_t);
    report->run = plan.run; /* moved */
    plan.run = (ps_run_plan){0};
    ps_histogram_plan_free(&plan);
    return code;
}

static ps_code check_simulate(ps_check_report *report, ps_error *error) {
    PS_TRY(ps_simulate_check(&report->job, &report->simulate, error));
    report->output_bytes = report->simulate.bytes_per_frame * report->job.simulate.n_frames;
    return PS_OK;
}

static ps_code check_task(ps_check_report *report, ps_error *error) {
    switch (report->job.task) {
    case PS_TASK_RECONSTRUCT: return check_reconstruct(report, error);
    case PS_TASK_SIMULATE: return check_simulate(report, error);
    case PS_TASK_HISTOGRAM: return check_histogram(report, error);
    }
    return PS_FAIL(error, PS_E_INTERNAL, "unknown task");
}

static ps_code check(const check_arguments *given, ps_error *error) {
    ps_code code = PS_OK;
    ps_check_report *report = calloc(1, sizeof *report);
    PS_GO_ALLOC(error, report);
    PS_GO(ps_job_load(given->job_path, given->settings.texts, given->settings.n, &report->job, error));
    PS_GO(check_task(report, error));
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
        ps_screen_begin();
        code = check(&given, &error);
    }
    if (code != PS_OK) ps_log(PS_LOG_ERROR, "%s", error.text);
    free(given.settings.texts);
    return code == PS_E_INPUT ? ps_code_exit_status(PS_E_JOB) : ps_code_exit_status(code);
}
