#include "bench/scale_print.h"

#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/svg_sheet.h"

static const double cliff = 1.5;

static const char *unit_of(const ps_scale_table *table) {
    return table->on_device ? "seconds" : "processor seconds";
}

/* ---- text ---- */

static void print_point(const ps_scale_table *table, int at, FILE *stream) {
    const ps_scale_point *point = &table->points[at];
    fprintf(stream, "%8.4g %8lld %4lld", point->x, (long long)point->n_active, (long long)point->upsampling);
    if (point->skipped[0]) {
        fprintf(stream, "   left out: %s\n", point->skipped);
        return;
    }
    for (int stage = 0; stage < PS_SCALE_N_STAGES; stage++) {
        double relative = ps_scale_relative_cost(table->points, table->n, at, (ps_scale_stage)stage);
        fprintf(stream, "  %9.3g %8.3g%c", point->seconds[stage], point->work[stage] / point->seconds[stage] / 1e9,
                relative > cliff ? '*' : ' ');
    }
    fprintf(stream, "\n");
}

void ps_scale_print(const ps_scale_table *table, FILE *stream) {
    fprintf(stream, "backend %s on %s, %d threads\n  %s\n", table->backend, table->device.name, table->device.n_threads,
            table->device.versions);
    fprintf(stream, "%s a frame, and beside them 1e9 a second: bytes of counts (put), operations (the others);\n", unit_of(table));
    fprintf(stream, "*: more than %g times the median time of its axis for the same work\n", cliff);
    for (int i = 0; i < table->n; i++) {
        if (i == 0 || table->points[i].axis != table->points[i - 1].axis) {
            fprintf(stream, "\n%s\n%8s %8s %4s", ps_scale_axis_name(table->points[i].axis), "", "pixels", "U");
            for (int stage = 0; stage < PS_SCALE_N_STAGES; stage++)
                fprintf(stream, "  %9s %8s ", ps_scale_stage_name((ps_scale_stage)stage), "1e9/s");
            fprintf(stream, "\n");
        }
        print_point(table, i, stream);
    }
}

/* ---- JSON ---- */

static cJSON *point_to_json(const ps_scale_table *table, int at) {
    const ps_scale_point *point = &table->points[at];
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "axis", ps_scale_axis_name(point->axis));
    cJSON_AddNumberToObject(item, "x", point->x);
    cJSON_AddNumberToObject(item, "scan", (double)point->problem.scan);
    cJSON_AddNumberToObject(item, "detector", (double)point->problem.detector);
    cJSON_AddNumberToObject(item, "scan_step_A", point->step_A);
    cJSON_AddNumberToObject(item, "frames", (double)point->n_frames);
    cJSON_AddNumberToObject(item, "active_pixels", (double)point->n_active);
    cJSON_AddNumberToObject(item, "upsampling", (double)point->upsampling);
    cJSON_AddNumberToObject(item, "peak_bytes", (double)point->peak_bytes);
    if (point->skipped[0]) cJSON_AddStringToObject(item, "left_out", point->skipped);
    for (int stage = 0; stage < PS_SCALE_N_STAGES && !point->skipped[0]; stage++) {
        cJSON *one = cJSON_AddObjectToObject(item, ps_scale_stage_name((ps_scale_stage)stage));
        cJSON_AddNumberToObject(one, "seconds", point->seconds[stage]);
        cJSON_AddNumberToObject(one, stage == PS_SCALE_PUT ? "bytes" : "operations", point->work[stage]);
        cJSON_AddNumberToObject(one, "relative_cost", ps_scale_relative_cost(table->points, table->n, at, (ps_scale_stage)stage));
    }
    return item;
}

ps_code ps_scale_write_json(const ps_scale_table *table, const char *path, ps_error *error) {
    ps_code code = PS_OK;
    cJSON *root = cJSON_CreateObject(), *points = cJSON_AddArrayToObject(root, "points");
    cJSON_AddStringToObject(root, "backend", table->backend);
    cJSON_AddStringToObject(root, "device", table->device.name);
    cJSON_AddStringToObject(root, "versions", table->device.versions);
    cJSON_AddStringToObject(root, "seconds_are", unit_of(table));
    cJSON_AddNumberToObject(root, "threads", table->device.n_threads);
    for (int i = 0; i < table->n; i++) cJSON_AddItemToArray(points, point_to_json(table, i));
    char *text = cJSON_Print(root);
    FILE *file = text ? fopen(path, "w") : NULL;
    bool written = file && fputs(text, file) >= 0 && fputc('\n', file) != EOF;
    if (file && fclose(file) != 0) written = false;
    if (!written) code = PS_FAIL(error, PS_E_IO, "%s: cannot write: %s", path, strerror(errno));
    cJSON_free(text);
    cJSON_Delete(root);
    return code;
}

/* ---- plots ---- */

/* Points of an axis by their x. */
static int gather(const ps_scale_table *table, ps_scale_axis axis, int *order) {
    int n = 0;
    for (int i = 0; i < table->n; i++) {
        if (table->points[i].axis != axis || table->points[i].skipped[0]) continue;
        int at = n++;
        for (; at > 0 && table->points[order[at - 1]].x > table->points[i].x; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    return n;
}

typedef struct {
    double x[PS_SCALE_MOST_POINTS], y[PS_SCALE_N_STAGES * PS_SCALE_MOST_POINTS];
} plot_values;

static ps_plot plot_axis(const ps_scale_table *table, ps_scale_axis axis, plot_values *values, const char *const *names) {
    static const char *const titles[] = {"Scans with a 96 x 96 detector", "Detectors with a scan of 128 x 128",
                                         "Longer scan steps, 128 x 128 positions", "Frames reduced together"};
    int order[PS_SCALE_MOST_POINTS], n = gather(table, axis, order);
    for (int i = 0; i < n; i++) {
        values->x[i] = table->points[order[i]].x;
        for (int stage = 0; stage < PS_SCALE_N_STAGES; stage++) values->y[stage * n + i] = table->points[order[i]].seconds[stage];
    }
    return (ps_plot){.title = titles[axis],
                     .x_label = ps_scale_axis_name(axis),
                     .y_label = table->on_device ? "seconds a frame" : "processor seconds a frame",
                     .log_x = true,
                     .log_y = true,
                     .n_curves = PS_SCALE_N_STAGES,
                     .n = n,
                     .x = values->x,
                     .y = values->y,
                     .names = names};
}

ps_code ps_scale_write_svg(const ps_scale_table *table, const char *path, ps_error *error) {
    static plot_values values[PS_SCALE_N_AXES];
    const char *names[PS_SCALE_N_STAGES];
    ps_plot plots[PS_SCALE_N_AXES];
    for (int stage = 0; stage < PS_SCALE_N_STAGES; stage++) names[stage] = ps_scale_stage_name((ps_scale_stage)stage);
    for (int axis = 0; axis < PS_SCALE_N_AXES; axis++) plots[axis] = plot_axis(table, (ps_scale_axis)axis, &values[axis], names);
    return ps_svg_sheet_write(path, plots, PS_SCALE_N_AXES, error);
}
