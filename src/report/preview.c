#include "report/preview.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "report/canvas.h"
#include "report/report.h"
#include "report/sheet.h"
#include "store/output.h"
#include "store/view.h"

enum { SMALLEST_SIDE = 256, MOST_SWEEP_FRAMES = 12, MOST_RANGE_FRAMES = 32 };

/* One kind of image in the file. */
typedef struct {
    char dataset[64]; /* below /entry */
    const char *label, *unit;
    const ps_view_method *method;
} layer;

typedef struct {
    ps_view view;
    const ps_preview_options *options;
    ps_place place;
    int64_t n_frames;
    int64_t *frames;       /* [n_frames] done frames to show */
    float *image;          /* [rows, columns] */
    int64_t width, height; /* of a picture's image part: square pixels */
    ps_report_pictures pictures;
    int64_t n_written;
} session;

/* ---- what to show ---- */

static ps_code choose_frames(session *s, ps_error *error) {
    int64_t wanted = s->options->frame;
    if (wanted >= s->view.n_frames)
        return PS_FAIL(error, PS_E_ARGUMENT, "%s: frame %lld asked for, but there are %lld (0 to %lld)", s->view.path, (long long)wanted,
                       (long long)s->view.n_frames, (long long)s->view.n_frames - 1);
    if (wanted >= 0 && s->view.states[wanted] != PS_FRAME_DONE)
        return PS_FAIL(error, PS_E_ARGUMENT, "%s: frame %lld is %s, there is nothing to show", s->view.path, (long long)wanted,
                       s->view.states[wanted] == PS_FRAME_FAILED ? "failed" : "pending");
    s->frames = malloc((size_t)s->view.n_frames * sizeof *s->frames);
    if (!s->frames) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the list of frames");
    for (int64_t i = 0; i < s->view.n_frames; i++)
        if (s->view.states[i] == PS_FRAME_DONE && (wanted < 0 || wanted == i)) s->frames[s->n_frames++] = i;
    return PS_OK;
}

/* Square pixels as small as the finer step; small images are enlarged by a whole number. */
static void choose_size(session *s) {
    const ps_view *view = &s->view;
    double finest = fmin(view->step_A[0], view->step_A[1]);
    double height = (double)view->rows * (finest > 0 ? view->step_A[0] / finest : 1),
           width = (double)view->columns * (finest > 0 ? view->step_A[1] / finest : 1);
    double factor = fmax(1, ceil(SMALLEST_SIDE / fmax(width, height)));
    s->height = (int64_t)fmax(1, round(height * factor));
    s->width = (int64_t)fmax(1, round(width * factor));
}

/* "strength 0.1", "strength 0.1 (amplitude 0.3)", "automatic strength" or "". */
static void strength_label(const ps_view_method *method, int64_t strength, char label[96]) {
    label[0] = '\0';
    if (!method->strengths) return;
    if (method->automatic)
        snprintf(label, 96, "automatic strength");
    else if (method->amplitudes && method->amplitudes[strength] != method->strengths[strength])
        snprintf(label, 96, "strength %g (amplitude %g)", method->strengths[strength], method->amplitudes[strength]);
    else
        snprintf(label, 96, "strength %g", method->strengths[strength]);
}

/* The same for a file name: "_strength0.1", "_strength0.1-amplitude0.3", "" */
static void strength_suffix(const ps_view_method *method, int64_t strength, char suffix[96]) {
    suffix[0] = '\0';
    if (!method->strengths || method->automatic) return;
    int used = snprintf(suffix, 96, "_strength%g", method->strengths[strength]);
    if (method->amplitudes && method->amplitudes[strength] != method->strengths[strength])
        snprintf(suffix + used, 96 - (size_t)used, "-amplitude%g", method->amplitudes[strength]);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One grey scale for all frames, so that they can be compared: medians over some frames of each one's percentiles. */
static ps_code common_range(session *s, const layer *l, int64_t strength, ps_range *range, ps_error *error) {
    double low[MOST_RANGE_FRAMES], high[MOST_RANGE_FRAMES];
    int64_t n = s->n_frames < MOST_RANGE_FRAMES ? s->n_frames : MOST_RANGE_FRAMES;
    for (int64_t i = 0; i < n; i++) {
        PS_TRY(ps_view_image(&s->view, l->dataset, s->frames[i * s->n_frames / n], strength, s->image, error));
        ps_range one = ps_range_of(s->image, s->view.rows * s->view.columns, s->options->clip_percent);
        low[i] = one.low;
        high[i] = one.high;
    }
    qsort(low, (size_t)n, sizeof *low, compare_doubles);
    qsort(high, (size_t)n, sizeof *high, compare_doubles);
    *range = (ps_range){low[n / 2], high[n / 2]};
    return PS_OK;
}

/* ---- single pictures ---- */

/* The image, and below it what it is, a scale bar and the grey scale. */
static ps_code draw_picture(const session *s, const layer *l, ps_range range, const char *name, const char *label, const char *path,
                            ps_error *error) {
    ps_canvas canvas = {0};
    char limits[96], what[256];
    int64_t scale = s->width >= 640 ? 2 : 1, line = 11 * scale, edge = 2 * scale, y = s->height + 3 * scale;
    snprintf(limits, sizeof limits, "%.3g to %.3g %s", range.low, range.high, l->unit);
    snprintf(what, sizeof what, "%s%s%s", name, *label ? ", " : "", label);
    bool one_line = ps_canvas_text_width(what, scale) + edge <= s->width;
    PS_TRY(ps_canvas_create(s->width, y + (one_line ? 2 : 3) * line, 255, &canvas, error));
    ps_canvas_image(&canvas, 0, 0, s->width, s->height, s->image, s->view.rows, s->view.columns, range);
    ps_canvas_text(&canvas, edge, y, scale, 0, one_line ? what : name);
    if (!one_line) ps_canvas_text(&canvas, edge, y += line, scale, 0, label);
    y += line;
    int64_t x = ps_canvas_scale_bar(&canvas, edge, y, scale, s->width, s->view.step_A[1] * (double)s->view.columns);
    int64_t right = s->width - ps_canvas_text_width(limits, scale) - edge;
    if (right > x + 6 * scale) ps_canvas_text(&canvas, right, y, scale, 0, limits);
    ps_code code = ps_canvas_save_png(&canvas, &s->place, path, what, error);
    ps_canvas_free(&canvas);
    return code;
}

static ps_code show_frame(session *s, const layer *l, int64_t frame, int64_t strength, ps_range range, ps_error *error) {
    char label[96], suffix[96], name[96];
    strength_label(l->method, strength, label);
    strength_suffix(l->method, strength, suffix);
    snprintf(name, sizeof name, "%s, frame %lld", l->label, (long long)frame);
    char *path = ps_text_format("%s/%s%s_frame%04lld.png", s->place.directory, l->label, suffix, (long long)frame);
    if (!path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a file name");
    ps_code code = draw_picture(s, l, range, name, label, path, error);
    s->n_written += code == PS_OK;
    free(path);
    return code;
}

/* ---- sheets ---- */

static ps_code save_sheet(session *s, const ps_sheet *sheet, const char *name, const char *title, ps_error *error) {
    char *path = ps_text_format("%s/%s.png", s->place.directory, name);
    if (!path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a file name");
    ps_code code = ps_canvas_save_png(&sheet->canvas, &s->place, path, title, error);
    s->n_written += code == PS_OK;
    if (code == PS_OK) return ps_report_add(&s->pictures, path, title, error);
    free(path);
    return code;
}

/* All frames of the file in order at one strength; those without an image say why. */
static ps_code draw_series(session *s, const layer *l, int64_t strength, ps_range range, ps_error *error) {
    static const char *const states[] = {"pending", "done", "failed"};
    ps_sheet sheet = {0};
    char label[96], name[96], title[256];
    ps_code code = PS_OK;
    int64_t n = s->options->frame >= 0 ? 1 : s->view.n_frames;
    strength_label(l->method, strength, label);
    snprintf(title, sizeof title, "%s, %s%sgrey from %.3g to %.3g %s", l->label, label, *label ? ", " : "", range.low, range.high, l->unit);
    PS_GO(ps_sheet_create(title, n, s->options->sheet_columns, s->width, s->height, &sheet, error));
    for (int64_t i = 0; i < n; i++) {
        int64_t frame = s->options->frame >= 0 ? s->options->frame : i;
        int state = s->view.states[frame];
        snprintf(name, sizeof name, "%lld", (long long)frame);
        if (state == PS_FRAME_DONE) {
            PS_GO(ps_view_image(&s->view, l->dataset, frame, strength, s->image, error));
            ps_sheet_image(&sheet, i, s->image, s->view.rows, s->view.columns, range, name);
        } else {
            ps_sheet_blank(&sheet, i, state < 3 ? states[state] : "?", name);
        }
    }
    snprintf(name, sizeof name, "series_%s", l->label);
    PS_GO(save_sheet(s, &sheet, name, title, error));
done:
    ps_sheet_free(&sheet);
    return code;
}

/* Frames down, strengths across. */
static ps_code draw_sweep(session *s, const layer *l, const ps_range *ranges, ps_error *error) {
    const ps_view_method *method = l->method;
    ps_sheet sheet = {0};
    char name[96], title[160];
    ps_code code = PS_OK;
    int64_t n = s->n_frames < MOST_SWEEP_FRAMES ? s->n_frames : MOST_SWEEP_FRAMES;
    snprintf(title, sizeof title, "%s, frames down, strengths across; a grey scale for each strength", l->label);
    PS_GO(ps_sheet_create(title, n * method->n_strengths, method->n_strengths, s->width, s->height, &sheet, error));
    for (int64_t i = 0; i < n; i++)
        for (int64_t strength = 0; strength < method->n_strengths; strength++) {
            int64_t frame = s->frames[i * s->n_frames / n];
            snprintf(name, sizeof name, "%lld: %g", (long long)frame, method->strengths[strength]);
            PS_GO(ps_view_image(&s->view, l->dataset, frame, strength, s->image, error));
            ps_sheet_image(&sheet, i * method->n_strengths + strength, s->image, s->view.rows, s->view.columns, ranges[strength], name);
        }
    snprintf(name, sizeof name, "sweep_%s", l->label);
    PS_GO(save_sheet(s, &sheet, name, title, error));
done:
    ps_sheet_free(&sheet);
    return code;
}

/* The strength shown for the series: the one nearest to what generalized cross-validation chose in most frames' middle. */
static ps_code representative(session *s, const layer *l, int64_t *strength, ps_error *error) {
    const ps_view_method *method = l->method;
    char name[64];
    *strength = 0;
    if (method->n_strengths < 2) return PS_OK;
    double *chosen = malloc((size_t)s->view.n_frames * sizeof *chosen);
    if (!chosen) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for chosen strengths");
    snprintf(name, sizeof name, "%s/chosen_strength", method->method->name);
    ps_code code = ps_view_numbers(&s->view, name, s->view.n_frames, chosen, error);
    for (int64_t i = 0; i < s->n_frames; i++) chosen[i] = chosen[s->frames[i]];
    qsort(chosen, (size_t)s->n_frames, sizeof *chosen, compare_doubles);
    for (int64_t i = 1; code == PS_OK && i < method->n_strengths; i++)
        if (fabs(method->strengths[i] - chosen[s->n_frames / 2]) < fabs(method->strengths[*strength] - chosen[s->n_frames / 2]))
            *strength = i;
    free(chosen);
    return code;
}

static ps_code show_layer(session *s, const layer *l, ps_error *error) {
    const ps_view_method *method = l->method;
    ps_code code = PS_OK;
    int64_t shown;
    ps_range *ranges = calloc((size_t)method->n_strengths, sizeof *ranges);
    PS_GO_ALLOC(error, ranges);
    PS_GO(representative(s, l, &shown, error));
    for (int64_t strength = 0; strength < method->n_strengths; strength++) {
        PS_GO(common_range(s, l, strength, &ranges[strength], error));
        for (int64_t i = 0; i < s->n_frames; i++) {
            PS_GO(ps_view_image(&s->view, l->dataset, s->frames[i], strength, s->image, error));
            PS_GO(show_frame(s, l, s->frames[i], strength, ranges[strength], error));
        }
    }
    PS_GO(draw_series(s, l, shown, ranges[shown], error));
    if (method->n_strengths > 1) PS_GO(draw_sweep(s, l, ranges, error));
done:
    free(ranges);
    return code;
}

/* Every image that the file holds of a method. */
static ps_code show_method(session *s, const ps_view_method *method, ps_error *error) {
    for (int r = 0; r < method->method->n_results; r++) {
        const ps_result_desc *result = &method->method->results[r];
        layer shown = {.label = result->shown_as, .unit = result->unit ? result->unit : "", .method = method};
        if (!ps_result_is_image(result) || !result->shown_as || !ps_view_result(&s->view, method->method, result, shown.dataset)) continue;
        PS_TRY(show_layer(s, &shown, error));
    }
    return PS_OK;
}

/* ---- the whole ---- */

static ps_code show_all(session *s, const char *page, ps_error *error) {
    s->image = malloc((size_t)(s->view.rows * s->view.columns) * sizeof *s->image);
    if (!s->image) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for an image");
    choose_size(s);
    for (int i = 0; i < ps_n_methods && s->n_frames > 0; i++)
        if (s->view.methods[i].present) PS_TRY(show_method(s, &s->view.methods[i], error));
    return ps_report_write(&s->view, &s->pictures, &s->place, page, error);
}

ps_code ps_preview(const char *path, const ps_preview_options *options, int64_t *n_written, ps_error *error) {
    session s = {.options = options};
    ps_code code = PS_OK;
    char *page = NULL;
    *n_written = 0;
    PS_TRY(ps_view_open(path, &s.view, error));
    PS_GO(choose_frames(&s, error));
    PS_GO(ps_place_open(options->directory, path, &s.place, error));
    page = ps_text_format("%s/report.html", s.place.directory);
    PS_GO_ALLOC(error, page);
    PS_GO(ps_place_check(&s.place, page, error)); /* it comes last */
    PS_GO(show_all(&s, page, error));
    *n_written = s.n_written;
done:
    ps_report_pictures_free(&s.pictures);
    free(s.image);
    free(s.frames);
    free(page);
    ps_place_free(&s.place);
    ps_view_close(&s.view);
    return code;
}
