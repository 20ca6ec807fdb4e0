/* ptyseries run: does a job's task on all ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cluster/cluster.h"
#include "cluster/placement.h"
#include "cluster/stop.h"
#include "cluster/waiting.h"
#include "cluster/watchdog.h"
#include "core/log.h"
#include "core/options.h"
#include "core/text.h"
#include "input/look.h"
#include "input/preflight.h"
#include "plan/backend_choice.h"
#include "tasks/tasks.h"

typedef struct {
    const char *job_path;
    ps_option_list settings;
    bool resume, overwrite, retry_failed, log_json, quiet;
    double max_hours, watchdog_s;
} run_arguments;

static ps_code parse(run_arguments *given, int n_arguments, char **arguments, bool *help, ps_error *error) {
    const ps_option options[] = {
        {"--resume", PS_OPTION_FLAG, &given->resume, "go on with an existing output; start it when there is none"},
        {"--retry-failed", PS_OPTION_FLAG, &given->retry_failed, "with --resume: try failed frames again"},
        {"--overwrite", PS_OPTION_FLAG, &given->overwrite, "replace an existing output; the old one stays until the new one is complete"},
        {"--set", PS_OPTION_LIST, &given->settings, "path.to.key=value overrides a job entry; repeatable"},
        {"--max-hours", PS_OPTION_NUMBER, &given->max_hours, "stop cleanly (exit 75) after so many hours"},
        {"--watchdog-s", PS_OPTION_NUMBER, &given->watchdog_s, "warn after so many seconds without progress; 0: never (600)"},
        {"--log-json", PS_OPTION_FLAG, &given->log_json, "one JSON object a log line"},
        {"--quiet", PS_OPTION_FLAG, &given->quiet, "warnings and errors only"},
    };
    ps_command_line line = {.command = "run",
                            .synopsis = "JOB.json [OPTIONS]",
                            .description = "Does the task of a job; under mpirun or srun its frames are spread over the ranks.\n"
                                           "Exit status: 0 all done, 1 internal error, 2 bad job or arguments, 3 some frames failed,\n"
                                           "4 nothing could be read, 75 interrupted (run again with --resume).",
                            .options = options,
                            .n_options = sizeof options / sizeof *options,
                            .min_operands = 1,
                            .max_operands = 1,
                            .operands = &given->job_path};
    PS_TRY(ps_options_parse(&line, n_arguments, arguments, help, error));
    if (*help) return PS_OK;
    if (given->resume && given->overwrite)
        return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries run: --resume keeps an output and --overwrite replaces it; give one of them");
    if (given->retry_failed && !given->resume) return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries run: --retry-failed needs --resume");
    return PS_OK;
}

static char *join_command_line(int n_arguments, char **arguments) {
    char *joined = strdup("ptyseries run");
    for (int i = 0; joined && i < n_arguments; i++) {
        char *longer = ps_text_format("%s %s", joined, arguments[i]);
        free(joined);
        joined = longer;
    }
    return joined;
}

static ps_code do_task(const ps_cluster *cluster, const ps_job *job, const run_arguments *given, const char *command_line,
                       ps_error *error) {
    ps_run_options options = {
        .resume = given->resume, .overwrite = given->overwrite, .retry_failed = given->retry_failed, .command_line = command_line};
    return ps_task_of_job(job)->run(cluster, job, &options, error);
}

/* Before any task starts threads. */
static ps_code place(ps_cluster *cluster, const ps_job *job, ps_error *error) {
    char pci_device[32] = "";
    const ps_backend_ops *ops;
    ps_backend_options options;
    bool has_backend = ps_task_of_job(job)->needs_backend &&
                       ps_backend_choose(job, cluster->node_rank, cluster->n_node_ranks, &ops, &options, NULL) == PS_OK;
    if (has_backend && ops->device_bus) ops->device_bus(options.device, pci_device, sizeof pci_device); /* else the task says what lacks */
    return ps_place_ranks(cluster, pci_device[0] ? pci_device : NULL, (int)job->n_threads, error);
}

static ps_code run_job(ps_cluster *cluster, const run_arguments *given, const char *command_line, ps_error *error) {
    ps_job job;
    ps_code code = ps_preflight_reach(given->job_path, error);
    if (code == PS_OK) code = ps_job_load(ps_task_job_kinds(), given->job_path, given->settings.texts, given->settings.n, &job, error);
    bool loaded = code == PS_OK;
    code = ps_cluster_agree(cluster, code, error);
    if (code == PS_OK) code = place(cluster, &job, error);
    if (code == PS_OK) code = do_task(cluster, &job, given, command_line, error);
    if (loaded) ps_job_free(&job);
    return code;
}

int ps_command_run(int n_arguments, char **arguments) {
    run_arguments given = {.watchdog_s = 600};
    ps_cluster cluster;
    ps_error error = {0};
    bool help = false;
    char *command_line = join_command_line(n_arguments, arguments);
    ps_code code = parse(&given, n_arguments, arguments, &help, &error);
    if (code == PS_OK && !help) {
        ps_preflight_begin(ps_recording_look); /* while there are neither MPI nor threads */
        ps_stop_install(given.max_hours);
        code = ps_cluster_begin(&cluster, &error);
        ps_log_configure(&(ps_log_options){
            .level = given.quiet ? PS_LOG_WARNING : PS_LOG_INFO, .json = given.log_json, .rank = cluster.rank, .n_ranks = cluster.n_ranks});
        if (ps_waiting_note() && cluster.node_rank == 0) ps_log(PS_LOG_INFO, "%s: %s", cluster.host, ps_waiting_note());
        ps_watchdog_start(given.watchdog_s);
        if (code == PS_OK) code = run_job(&cluster, &given, command_line, &error);
        ps_watchdog_stop();
        if (code != PS_OK && cluster.rank == 0) ps_log(code == PS_E_INTERRUPTED ? PS_LOG_WARNING : PS_LOG_ERROR, "%s", error.text);
        ps_cluster_end(&cluster, ps_code_exit_status(code));
    } else if (code != PS_OK) {
        ps_log(PS_LOG_ERROR, "%s", error.text);
    }
    free(given.settings.texts);
    free(command_line);
    return ps_code_exit_status(code);
}
