/* ptyseries preview: draws what an output file holds. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "core/log.h"
#include "core/options.h"
#include "store/view.h"
#include "tasks/tasks.h"

static ps_code draw(const char *path, const ps_task_preview *options, int64_t *n_written, ps_error *error) {
    ps_view view;
    const ps_task *task = ps_task_of_output(path);
    if (task) return task->preview(path, options, n_written, error);
    PS_TRY(ps_view_open(path, &view, error)); /* it says what is wrong with the file */
    ps_view_close(&view);
    return PS_FAIL(error, PS_E_INPUT, "%s: no output of ptyseries", path);
}

static ps_code run(int n_arguments, char **arguments, ps_error *error) {
    ps_preview_options options = {.frame = -1, .clip_percent = 0.5};
    const char *path = NULL;
    bool help;
    ps_option_list pixels = {0};
    int64_t n_written = 0;
    const ps_option table[] = {{"--to", PS_OPTION_TEXT, &options.directory, "directory for the pictures (default: OUT.h5.preview)"},
                               {"--frame", PS_OPTION_INTEGER, &options.frame, "only this frame, counted from 0"},
                               {"--clip", PS_OPTION_NUMBER, &options.clip_percent, "percent of pixels clipped at each end (default 0.5)"},
                               {"--columns", PS_OPTION_INTEGER, &options.sheet_columns, "of the contact sheet (default: about square)"},
                               {"--pixel", PS_OPTION_LIST, &pixels, "ROW,COLUMN to plot, of a histogram output; repeatable"}};
    ps_command_line line = {
        .command = "preview",
        .synopsis = "OUT.h5 [OPTIONS]",
        .description = "Writes PNG images of every frame, method and strength, contact sheets, and report.html, from an output file, also\n"
                       "while it is being written; of a histogram output its maps, mask and plots.",
        .options = table,
        .n_options = sizeof table / sizeof *table,
        .min_operands = 1,
        .max_operands = 1,
        .operands = &path};
    PS_TRY(ps_options_parse(&line, n_arguments, arguments, &help, error));
    if (help) return PS_OK;
    if (!(options.clip_percent >= 0 && options.clip_percent < 50))
        return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries preview: --clip: found %g, expected 0 to below 50 (percent)", options.clip_percent);
    ps_task_preview wanted = {.pictures = options, .n_pixels = pixels.n, .pixels = (const char *const *)pixels.texts};
    ps_code code = draw(path, &wanted, &n_written, error);
    free(pixels.texts);
    PS_TRY(code);
    printf("%lld pictures and report.html in %s%s\n", (long long)n_written, options.directory ? options.directory : path,
           options.directory ? "" : ".preview");
    return PS_OK;
}

int ps_command_preview(int n_arguments, char **arguments) {
    ps_error error = {0};
    ps_code code = run(n_arguments, arguments, &error);
    if (code != PS_OK) ps_log(PS_LOG_ERROR, "%s", error.text);
    return ps_code_exit_status(code);
}
