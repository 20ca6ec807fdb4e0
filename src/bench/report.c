#include "bench/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cJSON.h>

void ps_bench_add_ceiling(ps_bench_report *report, const char *name, double value, const char *unit) {
    if (report->n_ceilings >= (int)(sizeof report->ceiling / sizeof *report->ceiling)) return;
    snprintf(report->ceiling[report->n_ceilings].name, sizeof report->ceiling[0].name, "%s", name);
    snprintf(report->ceiling[report->n_ceilings].unit, sizeof report->ceiling[0].unit, "%s", unit);
    report->ceiling[report->n_ceilings++].value = value;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

ps_bench_row *ps_bench_add_row(ps_bench_report *report, const char *number, const char *name, const ps_bench_times *times, double target_ms,
                               double floor_ms) {
    if (report->n_rows >= PS_BENCH_MOST_ROWS || times->n < 1) return NULL;
    ps_bench_row *row = &report->rows[report->n_rows++];
    double sorted[PS_BENCH_MOST_REPEATS];
    memcpy(sorted, times->seconds, (size_t)times->n * sizeof *sorted);
    qsort(sorted, (size_t)times->n, sizeof *sorted, compare_doubles);
    snprintf(row->number, sizeof row->number, "%s", number);
    snprintf(row->name, sizeof row->name, "%s", name);
    row->n_repeats = times->n;
    row->median_s = 0.5 * (sorted[(times->n - 1) / 2] + sorted[times->n / 2]);
    row->lowest_s = sorted[0];
    row->highest_s = sorted[times->n - 1];
    row->target_s = target_ms * 1e-3;
    row->floor_s = floor_ms * 1e-3;
    return row;
}

ps_code ps_bench_add_check(ps_bench_report *report, const char *name, double difference, double tolerance, ps_error *error) {
    if (report->n_checks < PS_BENCH_MOST_ROWS) {
        ps_bench_check *check = &report->checks[report->n_checks++];
        snprintf(check->name, sizeof check->name, "%s", name);
        check->difference = difference;
        check->tolerance = tolerance;
    }
    if (difference <= tolerance) return PS_OK;
    return PS_FAIL(error, PS_E_NUMERIC, "nothing is timed: %s differs by %.3g, allowed %.3g", name, difference, tolerance);
}

static void print_milliseconds(FILE *stream, double seconds) {
    if (seconds > 0.0)
        fprintf(stream, " %10.3f", seconds * 1e3);
    else
        fprintf(stream, " %10s", "");
}

void ps_bench_print(const ps_bench_report *report, FILE *stream) {
    fprintf(stream, "backend %s on %s\n  %s\n  precision: %s\n", report->backend, report->device, report->versions, report->precision);
    if (report->driver[0]) fprintf(stream, "  %s\n", report->driver);
    for (int i = 0; i < report->n_ceilings; i++)
        fprintf(stream, "  ceiling %-28s %10.4g %s\n", report->ceiling[i].name, report->ceiling[i].value, report->ceiling[i].unit);
    for (int i = 0; i < report->n_checks; i++)
        fprintf(stream, "  checked %-44s %9.2e (allowed %.0e)\n", report->checks[i].name, report->checks[i].difference,
                report->checks[i].tolerance);
    fprintf(stream, "\n%-4s %-52s %10s %10s %10s %10s %10s  %s\n", "#", "milliseconds", "median", "lowest", "highest", "target", "floor",
            "rate");
    for (int i = 0; i < report->n_rows; i++) {
        const ps_bench_row *row = &report->rows[i];
        fprintf(stream, "%-4s %-52s", row->number, row->name);
        print_milliseconds(stream, row->median_s);
        print_milliseconds(stream, row->lowest_s);
        print_milliseconds(stream, row->highest_s);
        print_milliseconds(stream, row->target_s);
        print_milliseconds(stream, row->floor_s);
        fprintf(stream, "  %s\n", row->rate);
    }
}

static void add_rows(const ps_bench_report *report, cJSON *rows) {
    for (int i = 0; i < report->n_rows; i++) {
        const ps_bench_row *row = &report->rows[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "number", row->number);
        cJSON_AddStringToObject(item, "name", row->name);
        cJSON_AddNumberToObject(item, "repeats", row->n_repeats);
        cJSON_AddNumberToObject(item, "median_s", row->median_s);
        cJSON_AddNumberToObject(item, "lowest_s", row->lowest_s);
        cJSON_AddNumberToObject(item, "highest_s", row->highest_s);
        if (row->target_s > 0.0) cJSON_AddNumberToObject(item, "target_s", row->target_s);
        if (row->floor_s > 0.0) cJSON_AddNumberToObject(item, "floor_s", row->floor_s);
        if (row->rate[0]) cJSON_AddStringToObject(item, "rate", row->rate);
        cJSON_AddItemToArray(rows, item);
    }
}

static void add_checks(const ps_bench_report *report, cJSON *checks) {
    for (int i = 0; i < report->n_checks; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", report->checks[i].name);
        cJSON_AddNumberToObject(item, "difference", report->checks[i].difference);
        cJSON_AddNumberToObject(item, "tolerance", report->checks[i].tolerance);
        cJSON_AddItemToArray(checks, item);
    }
}

static cJSON *to_json(const ps_bench_report *report) {
    cJSON *root = cJSON_CreateObject(), *ceilings = cJSON_AddObjectToObject(root, "ceilings");
    cJSON_AddStringToObject(root, "backend", report->backend);
    cJSON_AddStringToObject(root, "device", report->device);
    cJSON_AddStringToObject(root, "precision", report->precision);
    cJSON_AddStringToObject(root, "versions", report->versions);
    if (report->driver[0]) cJSON_AddStringToObject(root, "driver", report->driver);
    for (int i = 0; i < report->n_ceilings; i++) {
        cJSON *item = cJSON_AddObjectToObject(ceilings, report->ceiling[i].name);
        cJSON_AddNumberToObject(item, "value", report->ceiling[i].value);
        cJSON_AddStringToObject(item, "unit", report->ceiling[i].unit);
    }
    add_checks(report, cJSON_AddArrayToObject(root, "checks"));
    add_rows(report, cJSON_AddArrayToObject(root, "rows"));
    return root;
}

ps_code ps_bench_write_json(const ps_bench_report *report, const char *path, ps_error *error) {
    ps_code code = PS_OK;
    FILE *file = NULL;
    cJSON *root = to_json(report);
    char *text = cJSON_Print(root);
    PS_GO_ALLOC(error, text);
    file = fopen(path, "w");
    bool written = file && fputs(text, file) >= 0 && fputc('\n', file) != EOF;
    if (file && fclose(file) != 0) written = false;
    if (!written) code = PS_FAIL(error, PS_E_IO, "%s: cannot write: %s", path, strerror(errno));
done:
    free(text);
    cJSON_Delete(root);
    return code;
}
