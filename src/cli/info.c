/* ptyseries info: says what a recording or an output file holds. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/options.h"
#include "input/look.h"
#include "input/open.h"
#include "input/preflight.h"
#include "input/reader.h"
#include "input/scan_shape.h"
#include "tasks/tasks.h"

static void print_line(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print_line(const char *name, const char *format, ...) {
    va_list arguments;
    printf("  %-18s", name);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

/* "18.1 MB" */
static const char *format_bytes(double bytes, char text[32]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 5; unit++) bytes /= 1000;
    snprintf(text, 32, unit ? "%.3g %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

/* " (place)", or "" where a file's shape itself says so */
static const char *bracket(const char *place, char text[100]) {
    snprintf(text, 100, *place ? " (%s)" : "%s", place);
    return text;
}

static void print_scan(const ps_reader *reader) {
    char place[100];
    int64_t rows = 0, columns = 0;
    const ps_recording *info = &reader->info;
    print_line("patterns", "%" PRId64, info->n_positions);
    if (info->n_missing > 0) print_line("missing", "%" PRId64 " patterns", info->n_missing);
    if (ps_reader_scan_shape(reader, NULL, &rows, &columns, NULL) == PS_OK)
        print_line("scan", "%" PRId64 " x %" PRId64 "%s", rows, columns,
                   bracket(info->scan_rows ? info->scan_place : "square root of the number of patterns", place));
    else if (info->scan_rows)
        print_line("scan", "%" PRId64 " x %" PRId64 " in the file, which does not fit: give series.scan_shape", info->scan_rows,
                   info->scan_columns);
    else if (info->scan_doubt[0])
        print_line("scan", "not known, %s: give series.scan_shape", info->scan_doubt);
    else
        print_line("scan", "not said, and the number of patterns is no square: give series.scan_shape");
}

static void print_counts(const ps_recording *info) {
    char on_disk[32], unpacked[32];
    double bytes =
        (double)info->n_positions * (double)info->detector_rows * (double)info->detector_columns * (double)ps_dtype_bytes(info->dtype);
    print_line("detector", "%" PRId64 " x %" PRId64 " pixels", info->detector_rows, info->detector_columns);
    print_line("counts", "%s%s, compression: %s", ps_dtype_name(info->dtype), info->big_endian ? " (big endian)" : "", info->compression);
    print_line("data", "%s in %" PRId64 " file%s, %s unpacked", format_bytes((double)info->data_bytes, on_disk), info->n_files,
               info->n_files == 1 ? "" : "s", format_bytes(bytes, unpacked));
}

static void print_instrument(const ps_recording *info) {
    char place[100];
    if (info->voltage_V > 0) print_line("voltage", "%g kV%s", info->voltage_V / 1000, bracket(info->voltage_place, place));
    if (info->scan_step_A[0] > 0)
        print_line("scan step", "%g x %g Angstrom%s", info->scan_step_A[0], info->scan_step_A[1], bracket(info->step_place, place));
    if (info->detector_pitch_mrad[0] > 0)
        print_line("detector pitch", "%g x %g mrad%s", info->detector_pitch_mrad[0], info->detector_pitch_mrad[1],
                   bracket(info->pitch_place, place));
    else if (info->detector_pitch_inv_A[0] > 0)
        print_line("detector pitch", "%g x %g 1/Angstrom%s: an angle with the optics' voltage", info->detector_pitch_inv_A[0],
                   info->detector_pitch_inv_A[1], bracket(info->pitch_place, place));
    if (info->saturation > 0) print_line("saturation", "%g counts", info->saturation);
    if (info->acquisition_time[0]) print_line("acquired", "%s", info->acquisition_time);
}

/* What the file does not say; the semiangle no file does. */
static void print_untold(const ps_recording *info) {
    const char *const names[] = {"voltage", "scan step", "detector pitch"};
    const bool told[] = {info->voltage_V > 0, info->scan_step_A[0] > 0,
                         info->detector_pitch_mrad[0] > 0 || info->detector_pitch_inv_A[0] > 0};
    char list[64] = "semiangle";
    for (int i = 0; i < 3; i++)
        if (!told[i]) snprintf(list + strlen(list), sizeof list - strlen(list), ", %s", names[i]);
    print_line("not in the file", "%s: give what is needed in the optics", list);
}

static ps_code print_mask(ps_reader *reader, ps_error *error) {
    ps_code code = PS_OK;
    bool present = false;
    int64_t n = reader->info.detector_rows * reader->info.detector_columns, n_bad = 0;
    uint8_t *bad = malloc((size_t)n);
    PS_GO_ALLOC(error, bad);
    PS_GO(ps_reader_mask(reader, bad, &present, error));
    for (int64_t i = 0; i < n; i++) n_bad += bad[i];
    if (present)
        print_line("pixel mask", "%" PRId64 " of %" PRId64 " pixels not to be used", n_bad, n);
    else
        print_line("pixel mask", "none in the file");
done:
    free(bad);
    return code;
}

/* What the reader had to say, one line each. */
static void print_notes(const ps_reader *reader) {
    for (const char *line = ps_reader_notes(reader); *line;) {
        int n = (int)strcspn(line, "\n");
        print_line("note", "%.*s", n, line);
        line += n + (line[n] == '\n');
    }
}

static ps_code print_recording(const char *source, const ps_reader_options *options, ps_error *error) {
    ps_code code = PS_OK;
    ps_reader *reader = NULL;
    PS_GO(ps_reader_open(source, options, &reader, error));
    printf("%s\n", source);
    print_line("format", "%s", reader->info.format);
    print_scan(reader);
    PS_GO(ps_reader_data_bytes(reader, &reader->info.data_bytes, error));
    print_counts(&reader->info);
    print_instrument(&reader->info);
    print_untold(&reader->info);
    PS_GO(print_mask(reader, error));
    print_notes(reader);
done:
    ps_reader_close(reader);
    return code;
}

static ps_code print_file(const char *source, const ps_reader_options *options, ps_error *error) {
    ps_preflight_begin(ps_recording_look);
    PS_TRY(ps_preflight_inspect(source, options, error));
    const ps_task *task = ps_task_of_output(source);
    return task ? task->info(source, error) : print_recording(source, options, error);
}

int ps_command_info(int n_arguments, char **arguments) {
    const char *source = NULL;
    bool help = false;
    ps_error error = {0};
    ps_reader_options reading = {0};
    const ps_option options[] = {
        {"--allow-partial", PS_OPTION_FLAG, &reading.allow_partial, "count missing data files instead of refusing them"},
        {"--channel", PS_OPTION_INTEGER, &reading.channel, "of [image, channel, row, column] data, from 1"},
    };
    ps_command_line line = {.command = "info",
                            .synopsis = "FILE [OPTIONS]",
                            .description = "Says what a recording (path or path:/dataset) or an output file of ptyseries holds.",
                            .options = options,
                            .n_options = sizeof options / sizeof *options,
                            .min_operands = 1,
                            .max_operands = 1,
                            .operands = &source};
    ps_code code = ps_options_parse(&line, n_arguments, arguments, &help, &error);
    if (code == PS_OK && !help) code = print_file(source, &reading, &error);
    if (code != PS_OK) fprintf(stderr, "ptyseries info: %s\n", error.text);
    return ps_code_exit_status(code);
}
