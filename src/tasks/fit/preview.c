#include "tasks/fit/preview.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "hdf5/write.h"
#include "report/canvas.h"
#include "report/report.h"
#include "report/runs.h"
#include "report/svg.h"
#include "tasks/fit/record.h"

enum { SMALLEST_SIDE = 384, CAPTION = 14, MOST_TITLE = 192 };

typedef struct {
    ps_view view;
    const ps_preview_options *options;
    ps_place place;
    char *page; /* report.html */
    int64_t n_fits;
    ps_fit_record *records; /* [n_fits] */
    ps_report_pictures pictures;
} session;

/* ---- pictures ---- */

static ps_code draw(session *s, const char *name, const char *title, const float *image, int64_t rows, int64_t columns, ps_range range,
                    ps_error *error) {
    ps_canvas canvas = {0};
    int64_t longest = rows > columns ? rows : columns, factor = (SMALLEST_SIDE + longest - 1) / longest;
    int64_t width = columns * factor, height = rows * factor;
    char *path = ps_text_format("%s/%s.png", s->place.directory, name), *copy = path ? strdup(path) : NULL;
    ps_code code = ps_report_add(&s->pictures, copy, title, error);
    if (code == PS_OK) code = ps_canvas_create(width, height + CAPTION, 255, &canvas, error);
    if (code == PS_OK) {
        ps_canvas_image(&canvas, 0, 0, width, height, image, rows, columns, range);
        ps_canvas_text(&canvas, 2, height + 4, 1, 0, title);
        code = ps_canvas_save_png(&canvas, &s->place, path, title, error);
    }
    ps_canvas_free(&canvas);
    free(path);
    return code;
}

/* A two-dimensional dataset of a fit; *image NULL: it is not there. */
static ps_code read_image(const session *s, int64_t index, const char *part, float **image, int64_t dims[2], ps_error *error) {
    char name[64];
    hsize_t size[2] = {0};
    snprintf(name, sizeof name, "fit/fit_%lld/%s", (long long)index, part);
    *image = NULL;
    if (!ps_view_has(&s->view, name)) return PS_OK;
    ps_code code = PS_OK;
    hid_t dataset = H5Dopen2(s->view.entry, name, H5P_DEFAULT), space = dataset < 0 ? H5I_INVALID_HID : H5Dget_space(dataset);
    bool is_image = space >= 0 && H5Sget_simple_extent_ndims(space) == 2 && H5Sget_simple_extent_dims(space, size, NULL) == 2;
    *image = is_image ? malloc((size_t)(size[0] * size[1]) * sizeof **image) : NULL;
    if (!is_image)
        code = PS_FAIL(error, PS_E_HDF5, "%s: /entry/%s is no image", s->view.path, name);
    else if (!*image)
        code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for an image");
    else if (H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, *image) < 0)
        code = ps_h5_fail(error, "%s: cannot read /entry/%s", s->view.path, name);
    dims[0] = (int64_t)size[0], dims[1] = (int64_t)size[1];
    ps_h5_close(&space);
    ps_h5_close(&dataset);
    return code;
}

/* full: the grey scale from -pi to pi instead of the image's own range. */
static ps_code draw_part(session *s, int64_t index, const char *part, const char *what, bool full, ps_error *error) {
    float *image;
    int64_t dims[2];
    char name[64], title[MOST_TITLE];
    PS_TRY(read_image(s, index, part, &image, dims, error));
    if (!image) return PS_OK;
    ps_range range = full ? (ps_range){-M_PI, M_PI} : ps_range_of(image, dims[0] * dims[1], s->options->clip_percent);
    snprintf(name, sizeof name, "fit_%lld_%s", (long long)index, part);
    snprintf(title, sizeof title, "fit %lld: %s, grey from %.4g to %.4g", (long long)index, what, range.low, range.high);
    ps_code code = draw(s, name, title, image, dims[0], dims[1], range, error);
    free(image);
    return code;
}

static ps_code draw_landscape(session *s, int64_t index, ps_error *error) {
    double rotations[2] = {0}, defoci[2] = {0};
    char name[64], what[128];
    for (int i = 0; i < 2; i++) {
        double *values, *ends = i ? defoci : rotations;
        snprintf(name, sizeof name, "fit/fit_%lld/%s", (long long)index, i ? "landscape_C10" : "landscape_rotation");
        int64_t n = ps_fit_record_elements(&s->view, name);
        if (n < 1) return PS_OK;
        values = malloc((size_t)n * sizeof *values);
        if (!values) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for an axis");
        ps_code code = ps_view_numbers(&s->view, name, n, values, error);
        ends[0] = values[0], ends[1] = values[n - 1];
        free(values);
        PS_TRY(code);
    }
    snprintf(what, sizeof what, "explained, rotation %.4g to %.4g deg down, C10 %.5g to %.5g A across", rotations[0], rotations[1],
             defoci[0], defoci[1]);
    return draw_part(s, index, "landscape", what, false, error);
}

static ps_code draw_fit(session *s, int64_t index, ps_error *error) {
    PS_TRY(draw_landscape(s, index, error));
    PS_TRY(draw_part(s, index, "phase_before", "phase before", false, error));
    PS_TRY(draw_part(s, index, "phase_after", "phase after", false, error));
    return draw_part(s, index, "residual_phase", "phase that is left over the aperture", true, error);
}

/* ---- report ---- */

static void print_parameters(FILE *out, const ps_fit_record *r) {
    fprintf(out, "<table><tr><th>parameter</th><th class=\"n\">value</th><th class=\"n\">standard error</th><th>unit</th>");
    for (int64_t i = 0; i < r->n; i++) {
        fprintf(out, "<th class=\"n\">");
        ps_html_text(out, r->names[i]);
        fprintf(out, "</th>");
    }
    fprintf(out, "</tr>\n");
    for (int64_t i = 0; i < r->n; i++) {
        fprintf(out, "<tr><td>");
        ps_html_text(out, r->names[i]);
        fprintf(out, "</td><td class=\"n\">%.6g</td><td class=\"n\">%.3g</td><td>", r->values[i], r->errors[i]);
        ps_html_text(out, r->units[i]);
        fprintf(out, "</td>");
        for (int64_t j = 0; j < r->n; j++) fprintf(out, "<td class=\"n\">%.2f</td>", r->correlation[i * r->n + j]);
        fprintf(out, "</tr>\n");
    }
    fprintf(out, "</table>\n");
}

static void print_fit(FILE *out, const ps_fit_record *r, int64_t index) {
    fprintf(out, "<h2>Fit %lld, frame %.0f</h2>\n", (long long)index, r->frame);
    if (r->n == 0) {
        fprintf(out, "<p>failed: ");
        ps_html_text(out, r->failure);
        fprintf(out, "</p>\n");
        return;
    }
    fprintf(out,
            "<p>Explained power %.5g before, %.5g after (the twin: %.5g), of %.0f frequencies at %.0f pixels; %.0f trials in %.2f s.</p>\n",
            r->before, r->after, r->twin, r->n_frequencies, r->n_pixels, r->evaluations, r->seconds);
    print_parameters(out, r);
    for (int64_t i = 0; i < r->n_notes; i++) {
        fprintf(out, "<p>");
        ps_html_text(out, r->notes[i]);
        fprintf(out, "</p>\n");
    }
    fprintf(out, "<pre>");
    ps_html_text(out, r->optics);
    fprintf(out, "</pre>\n");
}

/* What changes over the series. */
static ps_code print_curves(FILE *out, const session *s, ps_error *error) {
    static const char *const names[] = {"C10", "C12_cos", "C12_sin", "rotation", "explained"};
    static const char *const labels[] = {"C10 / A", "C12 cos / A", "C12 sin / A", "rotation / degree", "explained power"};
    ps_code code = PS_OK;
    double *frames = malloc(2 * (size_t)(s->n_fits + 1) * sizeof *frames), *values = frames + s->n_fits + 1;
    PS_GO_ALLOC(error, frames);
    PS_GO(ps_view_numbers(&s->view, "fit/frame", s->n_fits, frames, error));
    fprintf(out, "<h2>Over the series</h2>\n");
    for (size_t c = 0; c < sizeof names / sizeof *names; c++) {
        char name[32];
        snprintf(name, sizeof name, "fit/%s", names[c]);
        PS_GO(ps_view_numbers(&s->view, name, s->n_fits, values, error));
        for (int64_t i = 0; i < s->n_fits; i++)
            if (s->records[i].n == 0) values[i] = NAN;
        const ps_plot plot = {
            .title = names[c], .x_label = "frame", .y_label = labels[c], .n_curves = 1, .n = s->n_fits, .x = frames, .y = values};
        ps_svg_plot(out, &plot);
    }
done:
    free(frames);
    return code;
}

static ps_code print_page(FILE *out, const session *s, ps_error *error) {
    ps_report_begin(out, &s->view);
    for (int64_t i = 0; i < s->n_fits; i++) print_fit(out, &s->records[i], i);
    if (s->n_fits > 1) PS_TRY(print_curves(out, s, error));
    fprintf(out, "<h2>Pictures</h2>\n");
    for (int64_t i = 0; i < s->pictures.n; i++) PS_TRY(ps_report_print_picture(out, &s->pictures.pictures[i], error));
    PS_TRY(ps_report_processes(out, &s->view, error));
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
    PS_TRY(ps_view_open(path, &s->view, error));
    PS_TRY(ps_fit_record_count(&s->view, &s->n_fits, error));
    s->records = calloc((size_t)s->n_fits + 1, sizeof *s->records);
    if (!s->records) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld fits", (long long)s->n_fits);
    for (int64_t i = 0; i < s->n_fits; i++) PS_TRY(ps_fit_record_read(&s->view, i, &s->records[i], error));
    PS_TRY(ps_place_open(s->options->directory, path, &s->place, error));
    s->page = ps_text_format("%s/report.html", s->place.directory);
    if (!s->page) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a file name");
    return ps_place_check(&s->place, s->page, error); /* it comes last */
}

ps_code ps_fit_preview(const char *path, const ps_task_preview *options, int64_t *n_written, ps_error *error) {
    session s = {.view = {.file = H5I_INVALID_HID, .entry = H5I_INVALID_HID}, .options = &options->pictures};
    ps_code code = PS_OK;
    if (options->n_pixels > 0)
        return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries preview: --pixel: %s is a fit, which has nothing to show of a single pixel", path);
    PS_GO(load(&s, path, error));
    for (int64_t i = 0; i < s.n_fits; i++) PS_GO(draw_fit(&s, i, error));
    PS_GO(write_report(&s, error));
    *n_written = s.pictures.n;
done:
    ps_view_close(&s.view);
    ps_report_pictures_free(&s.pictures);
    for (int64_t i = 0; s.records && i < s.n_fits; i++) ps_fit_record_free(&s.records[i]);
    free(s.records);
    free(s.page);
    ps_place_free(&s.place);
    return code;
}
