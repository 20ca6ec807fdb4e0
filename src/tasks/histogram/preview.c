#include "tasks/histogram/preview.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "report/canvas.h"
#include "report/plot.h"
#include "report/report.h"
#include "report/runs.h"
#include "report/svg.h"
#include "store/output.h"
#include "tasks/histogram/masks.h"
#include "tasks/histogram/view.h"

enum { SMALLEST_SIDE = 384, MOST_PIXELS = 4 + PS_MASK_KINDS, CAPTION = 14 };

typedef struct {
    ps_histogram_view view;
    const ps_preview_options *options;
    ps_place place;
    char *page;              /* report.html */
    double *mean, *variance; /* [rows, columns] */
    uint32_t *mask;
    float *image;
    ps_report_pictures pictures;
} session;

/* ---- maps ---- */

/* Takes the picture's path from name; the report shows it. */
static ps_code keep(session *s, const char *name, const char *title, char **path, ps_error *error) {
    *path = ps_text_format("%s/%s.png", s->place.directory, name);
    char *copy = *path ? strdup(*path) : NULL;
    return ps_report_add(&s->pictures, copy, title, error);
}

static ps_code draw_image(session *s, const char *name, const char *title, ps_range range, ps_error *error) {
    ps_canvas canvas = {0};
    char *path = NULL;
    int64_t longest = s->view.rows > s->view.columns ? s->view.rows : s->view.columns, factor = (SMALLEST_SIDE + longest - 1) / longest;
    int64_t width = s->view.columns * factor, height = s->view.rows * factor;
    PS_TRY(keep(s, name, title, &path, error));
    ps_code code = ps_canvas_create(width, height + CAPTION, 255, &canvas, error);
    if (code == PS_OK) {
        ps_canvas_image(&canvas, 0, 0, width, height, s->image, s->view.rows, s->view.columns, range);
        ps_canvas_text(&canvas, 2, height + 4, 1, 0, title);
        code = ps_canvas_save_png(&canvas, &s->place, path, title, error);
    }
    ps_canvas_free(&canvas);
    free(path);
    return code;
}

static ps_code draw_map(session *s, const char *name, const double *values, ps_error *error) {
    char title[128];
    int64_t n = s->view.rows * s->view.columns;
    for (int64_t p = 0; p < n; p++) s->image[p] = (float)values[p];
    ps_range range = ps_range_of(s->image, n, s->options->clip_percent);
    snprintf(title, sizeof title, "%s, grey from %.4g to %.4g", name, range.low, range.high);
    return draw_image(s, name, title, range, error);
}

static ps_code draw_named_map(session *s, const char *name, ps_error *error) {
    double *values = malloc((size_t)(s->view.rows * s->view.columns) * sizeof *values);
    if (!values) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a map");
    ps_code code = ps_histogram_view_map(&s->view, name, values, error);
    if (code == PS_OK) code = draw_map(s, name, values, error);
    free(values);
    return code;
}

/* White: good; the darker the more the kind matters: hot, dead, noisy, saturated, given. */
static ps_code draw_mask(session *s, ps_error *error) {
    int64_t n = s->view.rows * s->view.columns, n_masked = 0;
    char title[96];
    for (int64_t p = 0; p < n; p++) {
        s->image[p] = s->mask[p] ? 0.0f : 1.0f;
        for (int kind = PS_MASK_KINDS - 1; s->mask[p] && kind >= 0; kind--)
            if (s->mask[p] >> kind & 1) s->image[p] = 0.15f * (float)kind;
        n_masked += s->mask[p] != 0;
    }
    snprintf(title, sizeof title, "mask: %lld of %lld pixels", (long long)n_masked, (long long)n);
    return draw_image(s, "mask", title, (ps_range){0, 1}, error);
}

/* ---- plots ---- */

static ps_code draw_total(session *s, ps_error *error) {
    ps_code code = PS_OK;
    char *path = NULL;
    double *counts = malloc((size_t)s->view.n_bins * sizeof *counts);
    PS_GO_ALLOC(error, counts);
    PS_GO(ps_view_numbers(&s->view.file, "histogram/total", s->view.n_bins, counts, error));
    PS_GO(keep(s, "total", "all pixels together", &path, error));
    code = ps_histogram_plot(s->view.edges, counts, s->view.n_bins, "all pixels together", &s->place, path, error);
done:
    free(counts);
    free(path);
    return code;
}

static ps_code draw_pixel(session *s, int64_t p, const char *why, ps_error *error) {
    ps_code code = PS_OK;
    char name[64], title[160], *path = NULL;
    int64_t row = p / s->view.columns, column = p % s->view.columns;
    double *counts = malloc((size_t)s->view.n_bins * sizeof *counts);
    PS_GO_ALLOC(error, counts);
    PS_GO(ps_histogram_view_pixel(&s->view, row, column, counts, error));
    snprintf(name, sizeof name, "pixel_%lld_%lld", (long long)(s->view.first_row + row), (long long)(s->view.first_column + column));
    snprintf(title, sizeof title, "pixel (%lld, %lld): %s; mean %.5g, variance %.5g", (long long)(s->view.first_row + row),
             (long long)(s->view.first_column + column), why, s->mean[p], s->variance[p]);
    PS_GO(keep(s, name, title, &path, error));
    code = ps_histogram_plot(s->view.edges, counts, s->view.n_bins, title, &s->place, path, error);
done:
    free(counts);
    free(path);
    return code;
}

typedef struct {
    int64_t n, pixels[MOST_PIXELS];
    const char *why[MOST_PIXELS];
} choice;

static void choose(choice *chosen, int64_t pixel, const char *why) {
    if (pixel < 0) return;
    for (int64_t i = 0; i < chosen->n; i++)
        if (chosen->pixels[i] == pixel) return;
    chosen->pixels[chosen->n] = pixel;
    chosen->why[chosen->n++] = why;
}

/* The pixel that is not masked and has the largest, or smallest, value. */
static int64_t extreme_pixel(const session *s, const double *values, double sign) {
    int64_t best = -1;
    for (int64_t p = 0; p < s->view.rows * s->view.columns; p++)
        if (!s->mask[p] && (best < 0 || sign * values[p] > sign * values[best])) best = p;
    return best;
}

static int64_t typical_pixel(const session *s) {
    int64_t n = 0, best = -1;
    double sum = 0;
    for (int64_t p = 0; p < s->view.rows * s->view.columns; p++)
        if (!s->mask[p]) sum += s->mean[p], n++;
    for (int64_t p = 0; p < s->view.rows * s->view.columns; p++)
        if (!s->mask[p] && (best < 0 || fabs(s->mean[p] - sum / (double)n) < fabs(s->mean[best] - sum / (double)n))) best = p;
    return best;
}

static void choose_pixels(const session *s, choice *chosen) {
    choose(chosen, typical_pixel(s), "typical");
    choose(chosen, extreme_pixel(s, s->mean, 1), "highest mean of the good ones");
    choose(chosen, extreme_pixel(s, s->mean, -1), "lowest mean of the good ones");
    choose(chosen, extreme_pixel(s, s->variance, 1), "largest variance of the good ones");
    for (int kind = 0; kind < PS_MASK_KINDS; kind++) {
        int64_t first = -1;
        for (int64_t p = 0; first < 0 && p < s->view.rows * s->view.columns; p++)
            if (s->mask[p] >> kind & 1) first = p;
        choose(chosen, first, ps_mask_names[kind]);
    }
}

static ps_code draw_pixels(session *s, int64_t n_pixels, const int64_t (*pixels)[2], ps_error *error) {
    choice chosen = {0};
    if (n_pixels == 0) choose_pixels(s, &chosen);
    for (int64_t i = 0; i < chosen.n; i++) PS_TRY(draw_pixel(s, chosen.pixels[i], chosen.why[i], error));
    for (int64_t i = 0; i < n_pixels; i++) {
        int64_t row = pixels[i][0] - s->view.first_row, column = pixels[i][1] - s->view.first_column;
        if (row < 0 || row >= s->view.rows || column < 0 || column >= s->view.columns)
            return PS_FAIL(error, PS_E_ARGUMENT, "%s: pixel %lld,%lld is not among its %lld x %lld pixels from %lld,%lld",
                           s->view.file.path, (long long)pixels[i][0], (long long)pixels[i][1], (long long)s->view.rows,
                           (long long)s->view.columns, (long long)s->view.first_row, (long long)s->view.first_column);
        PS_TRY(draw_pixel(s, row * s->view.columns + column, "as asked for", error));
    }
    return PS_OK;
}

/* ---- report ---- */

static ps_code print_frames(FILE *out, const session *s, ps_error *error) {
    ps_code code = PS_OK;
    int64_t n = s->view.file.n_frames;
    char **sources = NULL, **errors = NULL;
    double *dose = malloc((size_t)n * sizeof *dose), *positions = malloc((size_t)n * sizeof *positions);
    PS_GO_ALLOC(error, dose);
    PS_GO_ALLOC(error, positions);
    PS_GO(ps_view_texts(&s->view.file, "frames/source", n, &sources, error));
    PS_GO(ps_view_texts(&s->view.file, "frames/error", n, &errors, error));
    PS_GO(ps_view_numbers(&s->view.file, "frames/dose", n, dose, error));
    PS_GO(ps_view_numbers(&s->view.file, "frames/n_positions", n, positions, error));
    fprintf(out,
            "<h2>Frames</h2>\n<table><tr><th>recording</th><th class=\"n\">patterns</th><th class=\"n\">dose</th><th>error</th></tr>\n");
    for (int64_t i = 0; i < n; i++) {
        fprintf(out, "<tr%s><td>", s->view.file.states[i] == PS_FRAME_FAILED ? " class=\"failed\"" : "");
        ps_html_text(out, sources[i]);
        fprintf(out, "</td><td class=\"n\">%.0f</td><td class=\"n\">%.6g</td><td>", positions[i], dose[i]);
        ps_html_text(out, errors[i]);
        fprintf(out, "</td></tr>\n");
    }
    fprintf(out, "</table>\n");
done:
    ps_view_free_texts(sources, n);
    ps_view_free_texts(errors, n);
    free(dose);
    free(positions);
    return code;
}

static ps_code print_page(FILE *out, const session *s, ps_error *error) {
    ps_report_begin(out, &s->view.file);
    fprintf(out, "<p>%lld &times; %lld pixels, %lld bins from %.9g to %.9g.</p>\n<h2>Pictures</h2>\n", (long long)s->view.rows,
            (long long)s->view.columns, (long long)s->view.n_bins, s->view.edges[0], s->view.edges[s->view.n_bins]);
    for (int64_t i = 0; i < s->pictures.n; i++) PS_TRY(ps_report_print_picture(out, &s->pictures.pictures[i], error));
    PS_TRY(print_frames(out, s, error));
    PS_TRY(ps_report_processes(out, &s->view.file, error));
    fprintf(out, "</body></html>\n");
    return PS_OK;
}

static ps_code write_report(const session *s, ps_error *error) {
    ps_place_file file;
    PS_TRY(ps_place_create(&s->place, s->page, &file, error));
    return ps_place_finish(&file, print_page(file.stream, s, error), error);
}

/* ---- all of it ---- */

static ps_code load(session *s, const char *path, ps_error *error) {
    PS_TRY(ps_histogram_view_open(path, &s->view, error));
    size_t n = (size_t)(s->view.rows * s->view.columns);
    s->mean = malloc(n * sizeof *s->mean);
    s->variance = malloc(n * sizeof *s->variance);
    s->mask = malloc(n * sizeof *s->mask);
    s->image = malloc(n * sizeof *s->image);
    if (!s->mean || !s->variance || !s->mask || !s->image) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for maps");
    PS_TRY(ps_histogram_view_map(&s->view, "mean", s->mean, error));
    PS_TRY(ps_histogram_view_map(&s->view, "variance", s->variance, error));
    PS_TRY(ps_histogram_view_mask(&s->view, s->mask, error));
    PS_TRY(ps_place_open(s->options->directory, path, &s->place, error));
    s->page = ps_text_format("%s/report.html", s->place.directory);
    if (!s->page) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a file name");
    return ps_place_check(&s->place, s->page, error); /* it comes last */
}

/* "ROW,COLUMN" as often as given. */
static ps_code read_pixels(const ps_task_preview *given, int64_t (**pixels)[2], ps_error *error) {
    *pixels = malloc(((size_t)given->n_pixels + 1) * sizeof **pixels);
    if (!*pixels) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for pixels");
    for (int64_t i = 0; i < given->n_pixels; i++) {
        long long row, column;
        char behind;
        if (sscanf(given->pixels[i], "%lld,%lld%c", &row, &column, &behind) != 2)
            return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries preview: --pixel: found '%s', expected ROW,COLUMN", given->pixels[i]);
        (*pixels)[i][0] = row;
        (*pixels)[i][1] = column;
    }
    return PS_OK;
}

ps_code ps_histogram_preview(const char *path, const ps_task_preview *options, int64_t *n_written, ps_error *error) {
    session s = {.view.file = {.file = H5I_INVALID_HID, .entry = H5I_INVALID_HID}, .options = &options->pictures};
    int64_t(*pixels)[2] = NULL;
    ps_code code = PS_OK;
    PS_GO(read_pixels(options, &pixels, error));
    PS_GO(load(&s, path, error));
    PS_GO(draw_map(&s, "mean", s.mean, error));
    PS_GO(draw_map(&s, "variance", s.variance, error));
    PS_GO(draw_named_map(&s, "median", error));
    PS_GO(draw_mask(&s, error));
    PS_GO(draw_total(&s, error));
    PS_GO(draw_pixels(&s, options->n_pixels, (const int64_t(*)[2])pixels, error));
    PS_GO(write_report(&s, error));
    *n_written = s.pictures.n;
done:
    ps_histogram_view_close(&s.view);
    ps_report_pictures_free(&s.pictures);
    free(s.page);
    ps_place_free(&s.place);
    free(s.mean);
    free(s.variance);
    free(s.mask);
    free(s.image);
    free(pixels);
    return code;
}
