/* Commands that are being written; each stand-in goes when the command comes (weak: the real one wins). */
#include <stdio.h>

#include "cli/cli.h"
#include "histogram/histogram.h"

__attribute__((weak)) int ps_command_bench(int n_arguments, char **arguments) {
    (void)n_arguments;
    (void)arguments;
    fprintf(stderr, "ptyseries bench: not in this build\n");
    return 2;
}

__attribute__((weak)) ps_code ps_histogram(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error) {
    (void)cluster;
    (void)job;
    (void)options;
    return PS_FAIL(error, PS_E_JOB, "/task: histogram is not in this build");
}
