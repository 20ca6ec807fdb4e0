#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/text.h"
#include "tasks/check.h"

void ps_check_print_label(const char *text) {
    printf("%-*s ", PS_CHECK_LABEL_WIDTH, text);
}

void ps_check_print_bytes(double bytes) {
    char text[PS_BYTES_TEXT];
    printf("%s", ps_text_bytes(bytes, text));
}

static int64_t first_readable(const ps_run_plan *run) {
    int64_t i = 0;
    while (run->frames[i].unreadable) i++;
    return i;
}

/* "1 flyback position a row left out" and the like; separator: what stands before it. */
static void print_count(int64_t n, const char *what, const char *after, const char **separator) {
    if (n == 0) return;
    printf("%s%" PRId64 " %s%s %s", *separator, n, what, n == 1 ? "" : "s", after);
    *separator = ", ";
}

/* How patterns become positions and what counts as a count, where that is not the usual. */
static void print_reading(const ps_job_series *series, int64_t n_missing) {
    const char *separator = "";
    bool is_usual = series->skip_leading + series->skip_trailing + series->flyback + n_missing == 0 && series->repeats == 1 &&
                    !series->serpentine && series->channel == 0 && series->saturation == 0.0;
    if (is_usual) return;
    ps_check_print_label("  reading");
    print_count(series->skip_leading, "leading pattern", "skipped", &separator);
    print_count(series->skip_trailing, "trailing pattern", "skipped", &separator);
    print_count(series->flyback, "flyback position", "a row left out", &separator);
    if (series->repeats > 1) print_count(series->repeats, "pattern", "a position summed", &separator);
    print_count(n_missing, "pattern", "of all recordings missing and filled", &separator);
    if (series->serpentine) printf("%severy second row turned", separator);
    separator = series->serpentine ? ", " : separator;
    if (series->channel > 0) printf("%schannel %" PRId64, separator, series->channel);
    separator = series->channel > 0 ? ", " : separator;
    if (isinf(series->saturation)) printf("%sno count taken for saturated", separator);
    if (isfinite(series->saturation) && series->saturation > 0.0) printf("%scounts from %.10g on saturated", separator, series->saturation);
    printf("\n");
}

static int64_t count_unusable(const ps_run_plan *run) {
    int64_t n = 0;
    for (int64_t i = 0; i < run->series.n_items; i++) n += run->frames[i].unreadable || run->frames[i].refused;
    return n;
}

static void print_unusable(const ps_run_plan *run) {
    int64_t listed = 0, n_unusable = count_unusable(run);
    for (int64_t i = 0; i < run->series.n_items && listed < PS_CHECK_MOST_LISTED; i++) {
        const ps_run_frame *frame = &run->frames[i];
        if (!frame->unreadable && !frame->refused) continue;
        listed++;
        ps_check_print_label("");
        if (frame->unreadable)
            printf("unusable: %s\n", frame->unreadable);
        else
            printf("unusable: %s: %s\n", run->series.items[i].stem, frame->refused);
    }
    if (n_unusable > listed) printf("%*s ... and %" PRId64 " more\n", PS_CHECK_LABEL_WIDTH, "", n_unusable - listed);
}

void ps_check_print_frames(const ps_run_plan *run, const ps_job_series *series) {
    const ps_recording *info = &run->frames[first_readable(run)].info;
    int64_t n = run->series.n_items, n_missing = 0, n_unusable = count_unusable(run);
    double bytes = 0.0;
    for (int64_t i = 0; i < n; i++) {
        bytes += (double)run->frames[i].info.data_bytes;
        n_missing += run->frames[i].info.n_missing;
    }
    ps_check_print_label("frames");
    printf("%" PRId64, n - n_unusable);
    if (n_unusable > 0) printf(" of %" PRId64 ", %" PRId64 " cannot be used", n, n_unusable);
    printf(": scan %" PRId64 " x %" PRId64 ", detector %" PRId64 " x %" PRId64 ", %s (%s, %s), ", run->scan_rows, run->scan_columns,
           run->detector_rows, run->detector_columns, ps_dtype_name(run->dtype), info->format,
           info->compression[0] ? info->compression : "none");
    ps_check_print_bytes(bytes);
    printf(" on disk%s\n", series->by_time ? ", in the order of their times" : "");
    print_reading(series, n_missing);
    print_unusable(run);
}

void ps_check_print_looked(const ps_run_plan *run) {
    int64_t looked = 0, readable = run->series.n_items - run->n_unreadable;
    for (int64_t i = 0; i < run->series.n_items; i++) looked += run->frames[i].seen.looked;
    if (looked == 0 || readable < 2) return;
    ps_check_print_label("  looked at");
    printf("some patterns of %" PRId64 " of %" PRId64 " recordings%s\n", looked, readable,
           looked < readable ? "; --data looks at all, as the run does" : "");
}

void ps_check_print_backend(const ps_check_report *report) {
    ps_check_print_label("backend");
    printf("%s%s%s%s\n", report->ops->name, *report->backend_note ? " (" : "", report->backend_note, *report->backend_note ? ")" : "");
}

void ps_check_print_budget(const ps_job *job) {
    if (job->memory_budget_GiB > 0.0)
        printf("budget %g GiB\n", job->memory_budget_GiB);
    else
        printf("budget not given\n");
}

void ps_check_print_output(const ps_check_report *report) {
    ps_check_print_label("output");
    printf("%s, ", report->job.output_file);
    ps_check_print_bytes((double)report->output_bytes);
    printf("%s\n", report->output_exists ? "; it exists: run needs --resume or --overwrite" : "");
}

void ps_check_print_machine(const ps_check_report *report) {
    if (report->does_not_fit[0])
        printf("%-*s on this machine, from which the job may be sent elsewhere: %s\n", PS_CHECK_LABEL_WIDTH, "warning",
               report->does_not_fit);
}

void ps_check_print_warnings(const ps_run_plan *run) {
    for (int64_t i = 0; i < run->n_warnings; i++) printf("%-*s %s\n", PS_CHECK_LABEL_WIDTH, "warning", run->warnings[i]);
}
