#include "report/runs.h"

#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"
#include "report/svg.h"
#include "store/layout.h"
#include "store/usage.h"

enum { MOST_BARS = 400 };

/* ---- timings ---- */

static void print_stage_table(FILE *out, const ps_view *view, const double *seconds) {
    fprintf(out, "<table><tr><th>stage</th><th class=\"n\">mean s</th><th class=\"n\">largest s</th><th class=\"n\">sum s</th></tr>\n");
    for (int stage = 0; stage < PS_N_STAGES; stage++) {
        double sum = 0, most = 0;
        for (int64_t frame = 0; frame < view->n_frames; frame++) {
            double value = view->states[frame] == PS_FRAME_DONE ? seconds[frame * PS_N_STAGES + stage] : 0;
            sum += value;
            if (value > most) most = value;
        }
        fprintf(out, "<tr><td>%s</td><td class=\"n\">%.4g</td><td class=\"n\">%.4g</td><td class=\"n\">%.4g</td></tr>\n",
                ps_stage_name((ps_stage)stage), sum / (double)view->n_by_state[PS_FRAME_DONE], most, sum);
    }
    fprintf(out, "</table>\n");
}

static ps_code print_stage_bars(FILE *out, const ps_view *view, const double *seconds, ps_error *error) {
    const char *names[PS_N_STAGES];
    int64_t n = view->n_frames < MOST_BARS ? view->n_frames : MOST_BARS;
    double *x = calloc((size_t)n, sizeof *x), *y = calloc((size_t)n * PS_N_STAGES, sizeof *y);
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, x);
    PS_GO_ALLOC(error, y);
    for (int stage = 0; stage < PS_N_STAGES; stage++) {
        names[stage] = ps_stage_name((ps_stage)stage);
        for (int64_t i = 0; i < n; i++)
            if (view->states[i] == PS_FRAME_DONE) y[stage * n + i] = seconds[i * PS_N_STAGES + stage];
    }
    ps_svg_bars(out, &(ps_plot){.title = n < view->n_frames ? "seconds per frame, the first ones" : "seconds per frame",
                                .x_label = "frame",
                                .y_label = "s",
                                .n_curves = PS_N_STAGES,
                                .n = n,
                                .x = x,
                                .y = y,
                                .names = names});
done:
    free(x);
    free(y);
    return code;
}

/* What bounded a run: a line of the table, with a bar, for each resource that was used. */
static void print_usage(FILE *out, const ps_view *view, int64_t index) {
    char text[PS_USAGE_TEXT];
    ps_usage usage;
    bool present = false;
    if (ps_usage_read(view, index, &usage, &present, NULL) != PS_OK || !present) return;
    ps_usage_describe(&usage, text);
    fprintf(out, "<p>Run %lld: ", (long long)index);
    ps_html_text(out, text);
    fprintf(out, "</p>\n<table><tr><th>resource</th><th class=\"n\">busy, %%</th><th class=\"n\">least</th><th class=\"n\">most</th>"
                 "<th class=\"n\">sum s</th><th></th></tr>\n");
    for (int r = 0; r < PS_N_RESOURCES; r++) {
        const ps_usage_share *share = &usage.share[r];
        if (share->most <= 0) continue;
        fprintf(out,
                "<tr><td>%s</td><td class=\"n\">%.1f</td><td class=\"n\">%.1f</td><td class=\"n\">%.1f (rank %d)</td><td "
                "class=\"n\">%.4g</td><td><div style=\"background:#4477aa;height:10px;width:%.0fpx\"></div></td></tr>\n",
                ps_resource_name((ps_resource)r), 100 * share->mean, 100 * share->least, 100 * share->most, share->most_rank,
                usage.busy_s[r], 200 * share->mean);
    }
    fprintf(out, "</table>\n");
}

ps_code ps_report_timings(FILE *out, const ps_view *view, ps_error *error) {
    ps_code code = PS_OK;
    double *seconds = malloc((size_t)view->n_frames * PS_N_STAGES * sizeof *seconds);
    PS_GO_ALLOC(error, seconds);
    PS_GO(ps_view_numbers(view, "frames/seconds", view->n_frames * PS_N_STAGES, seconds, error));
    fprintf(out, "<h2>Timings</h2>\n");
    for (int64_t run = 1; run <= view->n_processes; run++) print_usage(out, view, run);
    print_stage_table(out, view, seconds);
    PS_GO(print_stage_bars(out, view, seconds, error));
done:
    free(seconds);
    return code;
}

/* ---- frames ---- */

typedef struct {
    char head[96];
    double *values; /* [n_frames] */
} table_column;

typedef struct {
    char **source, **error, **device, **host, **note;
    double *dose, *process, *rank, *memory;
    int n_results;
    table_column results[PS_MOST_METHODS * PS_MOST_METHOD_RESULTS]; /* [n_results] numbers that methods leave of a frame */
} frame_table;

static ps_code load_column(const ps_view *view, const char *name, double **values, ps_error *error) {
    *values = malloc((size_t)view->n_frames * sizeof **values);
    if (!*values) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for frames/%s", name);
    return ps_view_numbers(view, name, view->n_frames, *values, error);
}

/* The numbers that tables show. */
static ps_code load_results(const ps_view *view, const ps_view_method *method, frame_table *table, ps_error *error) {
    for (int r = 0; r < method->method->n_results; r++) {
        const ps_result_desc *result = &method->method->results[r];
        char name[64];
        if (result->axes != PS_RESULT_NUMBER || !result->shown_as || !ps_view_result(view, method->method, result, name)) continue;
        table_column *column = &table->results[table->n_results++];
        snprintf(column->head, sizeof column->head, "%s %s", method->method->name, result->shown_as);
        PS_TRY(load_column(view, name, &column->values, error));
    }
    return PS_OK;
}

static ps_code load_table(const ps_view *view, frame_table *table, ps_error *error) {
    int64_t n = view->n_frames;
    PS_TRY(ps_view_texts(view, "frames/source", n, &table->source, error));
    PS_TRY(ps_view_texts(view, "frames/error", n, &table->error, error));
    PS_TRY(ps_view_texts(view, "frames/device", n, &table->device, error));
    PS_TRY(ps_view_texts(view, "frames/host", n, &table->host, error));
    PS_TRY(ps_view_texts(view, "frames/note", n, &table->note, error));
    PS_TRY(load_column(view, "frames/dose", &table->dose, error));
    PS_TRY(load_column(view, "frames/process", &table->process, error));
    PS_TRY(load_column(view, "frames/rank", &table->rank, error));
    PS_TRY(load_column(view, "frames/peak_memory_bytes", &table->memory, error));
    for (int i = 0; i < ps_n_methods; i++)
        if (view->methods[i].present) PS_TRY(load_results(view, &view->methods[i], table, error));
    return PS_OK;
}

static void free_table(frame_table *table, int64_t n) {
    ps_view_free_texts(table->source, n);
    ps_view_free_texts(table->error, n);
    ps_view_free_texts(table->device, n);
    ps_view_free_texts(table->host, n);
    ps_view_free_texts(table->note, n);
    free(table->dose);
    free(table->process);
    free(table->rank);
    free(table->memory);
    for (int i = 0; i < table->n_results; i++) free(table->results[i].values);
}

static void print_cell(FILE *out, const char *text) {
    fprintf(out, "<td>");
    ps_html_text(out, text);
    fprintf(out, "</td>");
}

static void print_number(FILE *out, bool shown, int digits, double value) {
    fprintf(out, "<td class=\"n\">");
    if (shown) fprintf(out, "%.*g", digits, value);
    fprintf(out, "</td>");
}

static void print_frame(FILE *out, const ps_view *view, const frame_table *table, int64_t i) {
    static const char *const states[] = {"pending", "done", "failed"};
    const char *state = view->states[i] < 3 ? states[view->states[i]] : "unknown", *slash = strrchr(table->source[i], '/');
    bool done = view->states[i] == PS_FRAME_DONE, written = view->states[i] != PS_FRAME_PENDING;
    fprintf(out, "<tr class=\"%s\">", state);
    print_number(out, true, 15, (double)i);
    print_cell(out, slash ? slash + 1 : table->source[i]);
    print_cell(out, state);
    print_number(out, done, 5, table->dose[i]);
    for (int r = 0; r < table->n_results; r++) print_number(out, done, 3, table->results[r].values[i]);
    print_number(out, written, 15, table->process[i]);
    print_number(out, written, 15, table->rank[i]);
    print_cell(out, table->host[i]);
    print_cell(out, table->device[i]);
    print_number(out, done, 3, table->memory[i] / 1073741824.0);
    print_cell(out, *table->error[i] ? table->error[i] : table->note[i]);
    fprintf(out, "</tr>\n");
}

ps_code ps_report_frames(FILE *out, const ps_view *view, ps_error *error) {
    frame_table table = {0};
    ps_code code = PS_OK;
    PS_GO(load_table(view, &table, error));
    fprintf(
        out,
        "<h2>Frames</h2>\n<div class=\"scroll\"><table><tr><th class=\"n\">frame</th><th>file</th><th>state</th><th class=\"n\">dose</th>");
    for (int r = 0; r < table.n_results; r++) fprintf(out, "<th class=\"n\">%s</th>", table.results[r].head);
    fprintf(
        out,
        "<th class=\"n\">run</th><th class=\"n\">rank</th><th>host</th><th>device</th><th class=\"n\">peak GiB</th><th>remark</th></tr>\n");
    for (int64_t i = 0; i < view->n_frames; i++) print_frame(out, view, &table, i);
    fprintf(out, "</table></div>\n");
done:
    free_table(&table, view->n_frames);
    return code;
}

/* ---- optics and runs ---- */

static void print_text_at(FILE *out, const ps_view *view, const char *group, int64_t index, const char *name) {
    char path[96];
    snprintf(path, sizeof path, "%s_%lld/%s", group, (long long)index, name);
    char *text = ps_view_text(view, path);
    if (text) ps_html_text(out, text);
    free(text);
}

void ps_report_optics(FILE *out, const ps_view *view) {
    fprintf(out, "<h2>Optics</h2>\n");
    for (int64_t i = 0; i < view->n_optics; i++) {
        fprintf(out, "<details%s><summary>optics %lld</summary><p>As used:</p><pre>", view->n_optics == 1 ? " open" : "", (long long)i);
        print_text_at(out, view, "optics", i, "used");
        fprintf(out, "</pre><p>");
        print_text_at(out, view, "optics", i, "doubt");
        fprintf(out, "</p><p>As given:</p><pre>");
        print_text_at(out, view, "optics", i, "given");
        fprintf(out, "</pre></details>\n");
    }
}

typedef struct {
    FILE *out;
    const ps_view *view;
    int64_t index;
} process_visit;

/* Prints one text or number of a process group. */
static herr_t print_member(hid_t group, const char *name, const H5L_info_t *info, void *context) {
    process_visit *visit = context;
    char path[160];
    (void)info;
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT), type = dataset < 0 ? H5I_INVALID_HID : H5Dget_type(dataset);
    bool is_text = type >= 0 && H5Tget_class(type) == H5T_STRING;
    ps_h5_close(&type);
    ps_h5_close(&dataset);
    snprintf(path, sizeof path, "process_%lld/%s", (long long)visit->index, name);
    char *text = is_text ? ps_view_text(visit->view, path) : NULL;
    double number = 0;
    if (is_text && text && *text) {
        fprintf(visit->out, "<tr><th>");
        ps_html_text(visit->out, name);
        fprintf(visit->out, "</th><td><pre>");
        ps_html_text(visit->out, text);
        fprintf(visit->out, "</pre></td></tr>\n");
    } else if (!is_text && ps_view_numbers(visit->view, path, 1, &number, NULL) == PS_OK) {
        fprintf(visit->out, "<tr><th>%s</th><td>%.15g</td></tr>\n", name, number);
    }
    free(text);
    return 0;
}

static ps_code print_process(FILE *out, const ps_view *view, int64_t index, ps_error *error) {
    char name[32];
    process_visit visit = {out, view, index};
    snprintf(name, sizeof name, "process_%lld", (long long)index);
    fprintf(out, "<details><summary>run %lld: ", (long long)index);
    print_text_at(out, view, "process", index, "start_time");
    fprintf(out, ", ");
    print_text_at(out, view, "process", index, "state");
    fprintf(out, "</summary><table>\n");
    herr_t status = H5Literate_by_name(view->entry, name, H5_INDEX_NAME, H5_ITER_INC, NULL, print_member, &visit, H5P_DEFAULT);
    fprintf(out, "</table></details>\n");
    return status < 0 ? ps_h5_fail(error, "%s: cannot read /entry/%s", view->path, name) : PS_OK;
}

ps_code ps_report_processes(FILE *out, const ps_view *view, ps_error *error) {
    fprintf(out, "<h2>Runs</h2>\n");
    for (int64_t i = 1; i <= view->n_processes; i++) {
        char name[48];
        snprintf(name, sizeof name, "process_%lld/state", (long long)i);
        char *state = ps_view_text(view, name);
        bool used = state && strcmp(state, "unused") != 0;
        free(state);
        if (used) PS_TRY(print_process(out, view, i, error));
    }
    return PS_OK;
}
