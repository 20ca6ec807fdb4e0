#include "report/preview.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "core/log.h"
#include "core/options.h"
#include "tasks/histogram/preview.h"
#include "tasks/histogram/view.h"

/* "--pixel ROW,COLUMN" as often as given. */
static ps_code read_pixels(const ps_option_list *given, int64_t (**pixels)[2], ps_error *error) {
    *pixels = malloc(((size_t)given->n + 1) * sizeof **pixels);
    if (!*pixels) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for pixels");
    for (int64_t i = 0; i < given->n; i++) {
        long long row, column;
        char behind;
        if (sscanf(given->texts[i], "%lld,%lld%c", &row, &column, &behind) != 2)
            return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries preview: --pixel: found '%s', expected ROW,COLUMN", given->texts[i]);
        (*pixels)[i][0] = row;
        (*pixels)[i][1] = column;
    }
    return PS_OK;
}

static ps_code draw(const char *path, const ps_preview_options *options, const ps_option_list *wanted, int64_t *n_written,
                    ps_error *error) {
    int64_t(*pixels)[2] = NULL;
    if (!ps_histogram_is_output(path)) return ps_preview(path, options, n_written, error);
    ps_code code = read_pixels(wanted, &pixels, error);
    if (code == PS_OK) code = ps_histogram_preview(path, options, wanted->n, (const int64_t(*)[2])pixels, n_written, error);
    free(pixels);
    return code;
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
    ps_code code = draw(path, &options, &pixels, &n_written, error);
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
