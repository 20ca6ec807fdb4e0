/* ptyseries bench: measures the kernels on this machine, as a table and as JSON. */
#include <stdio.h>
#include <string.h>

#include "bench/histogram.h"
#include "bench/measure.h"
#include "bench/measure_decode.h"
#include "bench/scale.h"
#include "cli/cli.h"
#include "core/options.h"

typedef struct {
    const char *backend, *json, *rows;
    int64_t repeats, threads;
    double budget_GiB;
    bool quick;
} bench_arguments;

static ps_code parse(bench_arguments *given, int n_arguments, char **arguments, bool *help, ps_error *error) {
    const ps_option options[] = {
        {"--backend", PS_OPTION_TEXT, &given->backend, "cpu, cuda or cuda:N (a device); without it cuda where there is a device, else cpu"},
        {"--repeats", PS_OPTION_INTEGER, &given->repeats, "timed repeats of every row (7)"},
        {"--quick", PS_OPTION_FLAG, &given->quick, "cuda: a small problem instead of the published one"},
        {"--rows", PS_OPTION_TEXT, &given->rows,
         "cuda: some of prepare,frames,ssb,memory,storage,fit,unpack; cpu: some of operations,storage,fit; without it all"},
        {"--memory-GiB", PS_OPTION_NUMBER, &given->budget_GiB, "cuda: budget of device memory; without it what is free"},
        {"--threads", PS_OPTION_INTEGER, &given->threads, "cpu: threads; without it all"},
        {"--json", PS_OPTION_TEXT, &given->json, "file for the same as JSON"},
    };
    ps_command_line line = {
        .command = "bench",
        .synopsis = "[OPTIONS]",
        .description = "Measures the kernels on this machine: the rows of the table in docs/performance.md, each as\n"
                       "median, lowest and highest of its repeats. Answers are checked first; a kernel whose answer\n"
                       "is wrong is not timed (exit status 1).\n"
                       "ptyseries bench histogram times per-pixel histograms, ptyseries bench scale how cost grows; see their --help.",
        .options = options,
        .n_options = sizeof options / sizeof *options};
    PS_TRY(ps_options_parse(&line, n_arguments, arguments, help, error));
    if (!*help && (given->repeats < 1 || given->repeats > PS_BENCH_MOST_REPEATS))
        return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries bench: --repeats: found %lld, expected 1 to %d", (long long)given->repeats,
                       PS_BENCH_MOST_REPEATS);
    if (!*help && (given->threads < 0 || given->budget_GiB < 0.0))
        return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries bench: --threads and --memory-GiB must not be negative");
    return PS_OK;
}

static ps_code bench(const bench_arguments *given, ps_error *error) {
    static ps_bench_report report;
    const ps_backend_request request = {.name = given->backend, .where_name = "ptyseries bench: --backend"};
    ps_backend_options chosen;
    ps_bench_options options = {.repeats = (int)given->repeats,
                                .budget_GiB = given->budget_GiB,
                                .quick = given->quick,
                                .rows = given->rows,
                                .n_threads = (int)given->threads};
    PS_TRY(ps_backend_select(&request, &options.ops, &chosen, error));
    options.device = chosen.device;
    ps_code code = options.ops->bench ? ps_bench_device(&options, &report, error) : ps_bench_cpu(&options, &report, error);
    if (code == PS_OK) code = ps_bench_decode(&options, &report, error);
    if (report.n_checks > 0 || report.n_rows > 0) ps_bench_print(&report, stdout);
    PS_TRY(code);
    return given->json ? ps_bench_write_json(&report, given->json, error) : PS_OK;
}

int ps_command_bench(int n_arguments, char **arguments) {
    if (n_arguments > 0 && strcmp(arguments[0], "histogram") == 0) return ps_bench_histogram(n_arguments - 1, arguments + 1);
    if (n_arguments > 0 && strcmp(arguments[0], "scale") == 0) return ps_bench_scale(n_arguments - 1, arguments + 1);
    bench_arguments given = {.repeats = 7};
    ps_error error = {0};
    bool help = false;
    ps_code code = parse(&given, n_arguments, arguments, &help, &error);
    if (code == PS_OK && !help) code = bench(&given, &error);
    if (code != PS_OK) fprintf(stderr, "ptyseries: %s\n", error.text);
    return ps_code_exit_status(code);
}
