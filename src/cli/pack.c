#include "store/pack.h"

#include <stdio.h>

#include "cli/cli.h"
#include "core/log.h"
#include "core/options.h"

static ps_code run(int n_arguments, char **arguments, ps_error *error) {
    ps_pack_options options = {.level = 4};
    ps_pack_report report;
    const char *path = NULL;
    bool help;
    const ps_option table[] = {{"--to", PS_OPTION_TEXT, &options.to, "name of the copy (default: OUT.packed.h5)"},
                               {"--level", PS_OPTION_INTEGER, &options.level, "of deflate, 1 (fast) to 9 (small); default 4"},
                               {"--threads", PS_OPTION_INTEGER, &options.n_threads, "default: all"}};
    ps_command_line line = {
        .command = "pack",
        .synopsis = "OUT.h5 [OPTIONS]",
        .description = "Writes a compressed copy of an output that is no longer being written. Every done frame is read back from the\n"
                       "copy and compared by CRC. The copy can be looked at, but not resumed; the original stays.",
        .options = table,
        .n_options = sizeof table / sizeof *table,
        .min_operands = 1,
        .max_operands = 1,
        .operands = &path};
    PS_TRY(ps_options_parse(&line, n_arguments, arguments, &help, error));
    if (help) return PS_OK;
    if (options.level < 1 || options.level > 9)
        return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries pack: --level: found %lld, expected 1 to 9", (long long)options.level);
    PS_TRY(ps_pack(path, &options, &report, error));
    printf("%.3f GiB to %.3f GiB (%.0f %%), %lld frames verified\n", (double)report.bytes_before / 1073741824.0,
           (double)report.bytes_after / 1073741824.0, 100.0 * (double)report.bytes_after / (double)report.bytes_before,
           (long long)report.n_verified);
    return PS_OK;
}

int ps_command_pack(int n_arguments, char **arguments) {
    ps_error error = {0};
    ps_code code = run(n_arguments, arguments, &error);
    if (code != PS_OK) ps_log(PS_LOG_ERROR, "%s", error.text);
    return ps_code_exit_status(code);
}
