#include "report/plot.h"

#include <math.h>
#include <stdio.h>

enum { LEFT = 56, RIGHT = 16, TOP = 24, BOTTOM = 34, WIDTH = 640, HEIGHT = 320, N_TICKS = 5, TEXT = 0, AXIS = 60, GRID = 220, BAR = 90 };

typedef struct {
    ps_canvas canvas;
    double low, high, most; /* of the axes; most >= 1 */
} plot;

static int64_t plot_width(void) {
    return WIDTH - LEFT - RIGHT;
}
static int64_t plot_height(void) {
    return HEIGHT - TOP - BOTTOM;
}

/* Rows of the plot that a count takes: one count is visible, none is not. */
static int64_t height_of(const plot *p, double count) {
    return count > 0 ? 1 + (int64_t)lround(log10(count) / fmax(1, ceil(log10(p->most + 0.5))) * (double)(plot_height() - 1)) : 0;
}

static void draw_text_centred(plot *p, int64_t x, int64_t y, const char *text) {
    ps_canvas_text(&p->canvas, x - ps_canvas_text_width(text, 1) / 2, y, 1, TEXT, text);
}

static void draw_axes(plot *p) {
    char label[32];
    int64_t bottom = TOP + plot_height();
    for (double decade = 1; decade <= pow(10, fmax(1, ceil(log10(p->most + 0.5)))); decade *= 10) {
        int64_t y = bottom - height_of(p, decade);
        ps_canvas_box(&p->canvas, LEFT, y, plot_width(), 1, GRID);
        snprintf(label, sizeof label, "%.0e", decade);
        ps_canvas_text(&p->canvas, LEFT - 6 - ps_canvas_text_width(label, 1), y - 3, 1, TEXT, label);
    }
    for (int i = 0; i <= N_TICKS; i++) {
        int64_t x = LEFT + plot_width() * i / N_TICKS;
        ps_canvas_box(&p->canvas, x, bottom, 1, 4, AXIS);
        snprintf(label, sizeof label, "%.5g", p->low + (p->high - p->low) * i / N_TICKS);
        draw_text_centred(p, x, bottom + 8, label);
    }
    draw_text_centred(p, LEFT + plot_width() / 2, bottom + 20, "value");
    ps_canvas_box(&p->canvas, LEFT, bottom, plot_width(), 1, AXIS);
    ps_canvas_box(&p->canvas, LEFT - 1, TOP, 1, plot_height() + 1, AXIS);
}

static void draw_bars(plot *p, const double *counts, int64_t n_bins) {
    for (int64_t x = 0; x < plot_width(); x++) {
        int64_t first = x * n_bins / plot_width(), last = ((x + 1) * n_bins - 1) / plot_width();
        double fullest = 0;
        for (int64_t i = first; i <= last && i < n_bins; i++) fullest = fmax(fullest, counts[i]);
        int64_t height = height_of(p, fullest);
        ps_canvas_box(&p->canvas, LEFT + x, TOP + plot_height() - height, 1, height, BAR);
    }
}

ps_code ps_histogram_plot(const double *edges, const double *counts, int64_t n_bins, const char *title, const ps_place *place,
                          const char *path, ps_error *error) {
    plot p = {.low = edges[0], .high = edges[n_bins], .most = 1};
    for (int64_t i = 0; i < n_bins; i++) p.most = fmax(p.most, counts[i]);
    PS_TRY(ps_canvas_create(WIDTH, HEIGHT, 255, &p.canvas, error));
    draw_axes(&p);
    draw_bars(&p, counts, n_bins);
    ps_canvas_text(&p.canvas, LEFT, 8, 1, TEXT, title);
    ps_code code = ps_canvas_save_png(&p.canvas, place, path, title, error);
    ps_canvas_free(&p.canvas);
    return code;
}
