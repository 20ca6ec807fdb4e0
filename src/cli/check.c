/* ptyseries check: validates a job and prints its plan. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "core/log.h"
#include "core/options.h"
#include "input/look.h"
#include "input/preflight.h"
#include "tasks/check.h"
#include "tasks/tasks.h"

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
        {"--time", PS_OPTION_FLAG, &given->time,
         "reconstruct: also estimate the time and what will bound the run, from samples taken here"},
    };
    ps_command_line line = {.command = "check",
                            .synopsis = "JOB.json [OPTIONS]",
                            .description =
                                "Checks a job and its inputs and prints the plan: frames, shapes, active pixels, upsampling, aliases,\n"
                                "memory per rank, output size. Needs neither GPU nor MPI, and writes nothing; --time\n"
                                "writes a sample of a frame to a file without a name, which is gone at once.\n"
                                "Exit status: 0 the job can run, 2 it cannot, with the reason.",
                            .options = options,
                            .n_options = sizeof options / sizeof *options,
                            .min_operands = 1,
                            .max_operands = 1,
                            .operands = &given->job_path};
    return ps_options_parse(&line, n_arguments, arguments, help, error);
}

static void print_text(const ps_task *task, const ps_check_report *report) {
    ps_check_print_label("job");
    printf("%s: %s\n", report->job.path, task->job->name);
    task->print(report);
}

static ps_code print_json(const ps_task *task, const ps_check_report *report, ps_error *error) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "job", report->job.path);
    cJSON_AddStringToObject(root, "task", task->job->name);
    task->add_json(root, report);
    ps_check_add_number(root, "output_bytes", (double)report->output_bytes);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the report");
    puts(text);
    cJSON_free(text);
    return PS_OK;
}

static ps_code check_task(const check_arguments *given, ps_check_report *report, ps_error *error) {
    const ps_task *task = ps_task_of_job(&report->job);
    const ps_check_options options = {.every_recording = given->data};
    PS_TRY(task->check(report, &options, error));
    PS_TRY(ps_run_plan_find_bytes(&report->job, &report->run, error));
    if (given->time && task->estimate_time) PS_TRY(task->estimate_time(report, error));
    if (given->json) return print_json(task, report, error);
    print_text(task, report);
    return PS_OK;
}

static ps_code check(const check_arguments *given, ps_error *error) {
    ps_code code = PS_OK;
    ps_check_report *report = calloc(1, sizeof *report);
    PS_GO_ALLOC(error, report);
    PS_GO(ps_preflight_reach(given->job_path, error));
    PS_GO(ps_job_load(ps_task_job_kinds(), given->job_path, given->settings.texts, given->settings.n, &report->job, error));
    code = check_task(given, report, error);
done:
    if (report) {
        ps_run_plan_free(&report->run);
        ps_job_free(&report->job);
        free(report->own);
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
        ps_preflight_begin(ps_recording_look);
        code = check(&given, &error);
    }
    if (code != PS_OK) ps_log(PS_LOG_ERROR, "%s", error.text);
    free(given.settings.texts);
    return code == PS_E_INPUT ? ps_code_exit_status(PS_E_JOB) : ps_code_exit_status(code);
}
