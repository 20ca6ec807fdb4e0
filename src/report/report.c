#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "report/runs.h"
#include "report/svg.h"
#include "store/layout.h"

static const char style[] =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;color:#222;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2em;border-bottom:1px solid #ccc}"
    "table{border-collapse:collapse;font-size:13px}td,th{padding:2px 10px 2px 0;text-align:left;vertical-align:top}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}tr.failed{color:#a00}tr.pending{color:#888}"
    "img{max-width:100%;image-rendering:auto}figure{margin:1em 0}figcaption{font-size:13px;color:#555}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f5f5f5;padding:.6em;font-size:12px}.scroll{overflow-x:auto}"
    "svg{max-width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:#333}svg .title{font-weight:600;font-size:13px}"
    "svg .grid{stroke:#e4e4e4;fill:none}svg .axis{stroke:#333;fill:none}svg .curve{fill:none;stroke-width:1.3}";

ps_code ps_report_add(ps_report_pictures *pictures, char *path, const char *title, ps_error *error) {
    ps_report_picture *larger = realloc(pictures->pictures, (size_t)(pictures->n + 1) * sizeof *larger);
    char *copy = larger ? strdup(title) : NULL;
    if (larger) pictures->pictures = larger;
    if (!copy || !path) {
        free(copy);
        free(path);
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the list of pictures");
    }
    larger[pictures->n].path = path;
    larger[pictures->n].title = copy;
    pictures->n++;
    return PS_OK;
}

void ps_report_pictures_free(ps_report_pictures *pictures) {
    for (int64_t i = 0; i < pictures->n; i++) {
        free(pictures->pictures[i].path);
        free(pictures->pictures[i].title);
    }
    free(pictures->pictures);
    *pictures = (ps_report_pictures){0};
}

/* ---- pictures ---- */

static void print_base64(FILE *out, const unsigned char *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned triple = (unsigned)bytes[i] << 16 | (i + 1 < n ? (unsigned)bytes[i + 1] << 8 : 0) | (i + 2 < n ? bytes[i + 2] : 0);
        fputc(digits[triple >> 18], out);
        fputc(digits[triple >> 12 & 63], out);
        fputc(i + 1 < n ? digits[triple >> 6 & 63] : '=', out);
        fputc(i + 2 < n ? digits[triple & 63] : '=', out);
    }
}

ps_code ps_report_print_picture(FILE *out, const ps_report_picture *picture, ps_error *error) {
    char *bytes = NULL;
    size_t n = 0;
    PS_TRY(ps_text_read_file(picture->path, &bytes, &n, error));
    fprintf(out, "<figure><img alt=\"\" src=\"data:image/png;base64,");
    print_base64(out, (const unsigned char *)bytes, n);
    fprintf(out, "\"><figcaption>");
    ps_html_text(out, picture->title);
    fprintf(out, "</figcaption></figure>\n");
    free(bytes);
    return PS_OK;
}

/* ---- curves ---- */

/* The done frames' rows of a [n_frames, n] dataset, packed; *n_done rows. */
static ps_code load_done_rows(const ps_view *view, const char *name, int64_t n, double **rows, ps_error *error) {
    int64_t done = 0;
    *rows = malloc((size_t)(view->n_frames * n) * sizeof **rows);
    if (!*rows) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for curves");
    PS_TRY(ps_view_numbers(view, name, view->n_frames * n, *rows, error));
    for (int64_t frame = 0; frame < view->n_frames; frame++)
        if (view->states[frame] == PS_FRAME_DONE) memmove(*rows + done++ * n, *rows + frame * n, (size_t)n * sizeof **rows);
    return PS_OK;
}

static ps_code print_curve_plot(FILE *out, const ps_view *view, const ps_view_method *method, const ps_result_desc *curve,
                                const double *chosen, ps_error *error) {
    char name[64], title[96];
    double *rows = NULL;
    if (!ps_view_result(view, method->method, curve, name)) return PS_OK;
    snprintf(title, sizeof title, "%s: %s, one line a frame%s", method->method->name, curve->shown_as,
             method->automatic ? ", dots: chosen" : "");
    ps_code code = load_done_rows(view, name, method->n_curve, &rows, error);
    ps_plot plot = {.title = title,
                    .x_label = "strength",
                    .y_label = curve->shown_as,
                    .log_x = true,
                    .log_y = true,
                    .n_curves = view->n_by_state[PS_FRAME_DONE],
                    .n = method->n_curve,
                    .x = method->curve_strengths,
                    .y = rows,
                    .mark_x = method->automatic ? chosen : NULL};
    if (code == PS_OK) ps_svg_plot(out, &plot);
    free(rows);
    return code;
}

static ps_code print_curves_of(FILE *out, const ps_view *view, const ps_view_method *method, ps_error *error) {
    ps_code code = PS_OK;
    double *chosen = NULL;
    char name[64];
    snprintf(name, sizeof name, "%s/chosen_strength", method->method->name);
    PS_GO(load_done_rows(view, name, 1, &chosen, error));
    for (int r = 0; r < method->method->n_results; r++) {
        const ps_result_desc *result = &method->method->results[r];
        if (result->axes == PS_RESULT_CURVE && result->shown_as) PS_GO(print_curve_plot(out, view, method, result, chosen, error));
    }
done:
    free(chosen);
    return code;
}

static ps_code print_curves(FILE *out, const ps_view *view, ps_error *error) {
    for (int i = 0; i < ps_n_methods; i++)
        if (view->methods[i].present && view->methods[i].n_curve > 1) PS_TRY(print_curves_of(out, view, &view->methods[i], error));
    return PS_OK;
}

/* ---- drift ---- */

/* What is not known is not drawn. */
static void print_drift_plots(FILE *out, int64_t n, const double *shift, const double *known, double *room) {
    static const char *const names[] = {"row", "column"};
    double *frames = room, *curves = room + n;
    for (int64_t i = 0; i < n; i++) {
        frames[i] = (double)i;
        for (int axis = 0; axis < 2; axis++) curves[axis * n + i] = known[i] == 1.0 ? shift[2 * i + axis] : NAN;
    }
    const ps_plot plot = {.title = "drift of the sample",
                          .x_label = "frame",
                          .y_label = "shift / A",
                          .n_curves = 2,
                          .n = n,
                          .x = frames,
                          .y = curves,
                          .names = names};
    ps_svg_plot(out, &plot);
}

static ps_code print_drift(FILE *out, const ps_view *view, ps_error *error) {
    int64_t n = view->n_frames;
    double complete = 0.0, *numbers = NULL;
    ps_code code = PS_OK;
    if (!ps_view_has(view, "drift")) return PS_OK;
    PS_TRY(ps_view_numbers(view, "drift/complete", 1, &complete, error));
    if (complete != 1.0) return PS_OK;
    numbers = malloc(8 * (size_t)n * sizeof *numbers);
    PS_GO_ALLOC(error, numbers);
    double *shift = numbers, *known = numbers + 2 * n, *trust = numbers + 3 * n, *reference = numbers + 4 * n, *room = numbers + 5 * n;
    PS_GO(ps_view_numbers(view, "drift/shift", 2 * n, shift, error));
    PS_GO(ps_view_numbers(view, "drift/known", n, known, error));
    PS_GO(ps_view_numbers(view, "drift/trust", n, trust, error));
    PS_GO(ps_view_numbers(view, "drift/reference", n, reference, error));
    fprintf(out, "<h2>Drift</h2>\n");
    print_drift_plots(out, n, shift, known, room);
    int64_t n_steps = 0;
    for (int64_t i = 0; i < n; i++) n_steps += known[i] == 1.0 && reference[i] >= 0.0;
    for (int64_t i = 0; i < n; i++) trust[i] = known[i] == 1.0 && reference[i] >= 0.0 ? trust[i] : NAN; /* the first has no step */
    const ps_plot plot = {.title = "trust in each step; below 0.5 another shift does nearly as well",
                          .x_label = "frame",
                          .y_label = "trust",
                          .n_curves = 1,
                          .n = n,
                          .x = room,
                          .y = trust};
    if (n_steps > 1) ps_svg_plot(out, &plot);
done:
    free(numbers);
    return code;
}

/* ---- the page ---- */

void ps_report_begin(FILE *out, const ps_view *view) {
    const char *slash = strrchr(view->path, '/');
    fprintf(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>");
    ps_html_text(out, slash ? slash + 1 : view->path);
    fprintf(out, "</title><style>%s</style></head><body>\n<h1>", style);
    ps_html_text(out, slash ? slash + 1 : view->path);
    fprintf(out, "</h1>\n<p>%lld frames: %lld done, %lld failed, %lld pending.</p>\n", (long long)view->n_frames,
            (long long)view->n_by_state[PS_FRAME_DONE], (long long)view->n_by_state[PS_FRAME_FAILED],
            (long long)view->n_by_state[PS_FRAME_PENDING]);
}

static void print_image_size(FILE *out, const ps_view *view) {
    fprintf(out, "<p>Images of %lld &times; %lld pixels of %.4g &times; %.4g &Aring;, %.4g &times; %.4g nm.</p>\n", (long long)view->rows,
            (long long)view->columns, view->step_A[0], view->step_A[1], 0.1 * view->step_A[0] * (double)view->rows,
            0.1 * view->step_A[1] * (double)view->columns);
}

static ps_code print_page(FILE *out, const ps_view *view, const ps_report_pictures *pictures, ps_error *error) {
    ps_report_begin(out, view);
    print_image_size(out, view);
    if (pictures->n > 0) fprintf(out, "<h2>Images</h2>\n");
    for (int64_t i = 0; i < pictures->n; i++) PS_TRY(ps_report_print_picture(out, &pictures->pictures[i], error));
    if (view->n_by_state[PS_FRAME_DONE] > 0) {
        fprintf(out, "<h2>Curves</h2>\n");
        PS_TRY(print_curves(out, view, error));
        PS_TRY(print_drift(out, view, error));
        PS_TRY(ps_report_timings(out, view, error));
    }
    PS_TRY(ps_report_frames(out, view, error));
    ps_report_optics(out, view);
    PS_TRY(ps_report_processes(out, view, error));
    fprintf(out, "</body></html>\n");
    return PS_OK;
}

ps_code ps_report_write(const ps_view *view, const ps_report_pictures *pictures, const ps_place *place, const char *path, ps_error *error) {
    ps_place_file file;
    PS_TRY(ps_place_create(place, path, &file, error));
    return ps_place_finish(&file, print_page(file.stream, view, pictures, error), error);
}
