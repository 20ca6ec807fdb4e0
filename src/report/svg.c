#include "report/svg.h"

#include <math.h>

enum { WIDTH = 560, HEIGHT = 320, LEFT = 80, RIGHT = 16, LEGEND = 80, TOP = 30, BOTTOM = 46, TICKS = 5, MOST_LOG_TICKS = 8 };

static const char *const palette[] = {"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999999", "#000000"};
enum { N_COLOURS = sizeof palette / sizeof *palette };

typedef struct {
    double low, high;
    double from, to; /* pixels of low and high */
    bool log, whole; /* whole: ticks at whole numbers only */
} axis;

void ps_html_text(FILE *out, const char *text) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '&')
            fputs("&amp;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else if (c >= 0x20 || c == '\n' || c == '\t')
            fputc(c, out);
    }
}

static bool is_shown(double value, bool log) {
    return isfinite(value) && (!log || value > 0);
}

static void include(axis *a, double value) {
    if (!is_shown(value, a->log)) return;
    if (!(value >= a->low)) a->low = value;
    if (!(value <= a->high)) a->high = value;
}

/* Position on the axis, 0 to 1. */
static double place(const axis *a, double value) {
    return a->log ? (log10(value) - log10(a->low)) / (log10(a->high) - log10(a->low)) : (value - a->low) / (a->high - a->low);
}

static void widen(axis *a) {
    if (a->high > a->low) return;
    double room = a->low == 0 ? 1 : 0.1 * fabs(a->low);
    a->low = a->log ? a->low / 2 : a->low - room;
    a->high = a->log ? a->high * 2 : a->high + room;
}

static double pixel(const axis *a, double value) {
    return a->from + place(a, value) * (a->to - a->from);
}

static axis x_axis(const ps_plot *plot) {
    return (axis){.low = NAN, .high = NAN, .from = LEFT, .to = WIDTH - RIGHT - (plot->names ? LEGEND : 0), .log = plot->log_x};
}

static axis y_axis(const ps_plot *plot) {
    return (axis){.low = NAN, .high = NAN, .from = HEIGHT - BOTTOM, .to = TOP, .log = plot->log_y};
}

static void print_tick(FILE *out, const axis *a, const axis *other, bool is_x, double value) {
    if (is_x)
        fprintf(out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g</text>\n",
                pixel(a, value), TOP, HEIGHT - BOTTOM, pixel(a, value), HEIGHT - BOTTOM + 16, value);
    else
        fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%.0f\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n", LEFT,
                pixel(a, value), other->to, LEFT - 6, pixel(a, value) + 4, value);
}

/* Powers of ten; false when the axis holds fewer than two. */
static bool print_log_ticks(FILE *out, const axis *a, const axis *other, bool is_x) {
    double first = ceil(log10(a->low) - 1e-9), last = floor(log10(a->high) + 1e-9);
    double step = ceil((last - first + 1) / MOST_LOG_TICKS);
    if (last - first < 1) return false;
    for (double power = first; power <= last; power += step) print_tick(out, a, other, is_x, pow(10, power));
    return true;
}

static void print_ticks(FILE *out, const axis *a, const axis *other, bool is_x) {
    if (a->log && print_log_ticks(out, a, other, is_x)) return;
    double rough = (a->high - a->low) / TICKS, power = pow(10, floor(log10(rough)));
    double step = rough <= power ? power : rough <= 2 * power ? 2 * power : rough <= 5 * power ? 5 * power : 10 * power;
    if (a->whole && step < 1) step = 1;
    for (double value = step * ceil(a->low / step - 1e-9); value <= a->high + 1e-9 * step; value += step)
        print_tick(out, a, other, is_x, fabs(value) < 1e-9 * step ? 0 : value);
}

static void open_svg(FILE *out, const ps_plot *plot, const axis *x, const axis *y) {
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n<text class=\"title\" x=\"%d\" y=\"18\">", WIDTH,
            HEIGHT, WIDTH, HEIGHT, LEFT);
    ps_html_text(out, plot->title);
    fprintf(out, "</text>\n");
    print_ticks(out, x, y, true);
    print_ticks(out, y, x, false);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + (int)x->to) / 2, HEIGHT - 10);
    ps_html_text(out, plot->x_label);
    fprintf(out, "</text>\n<text transform=\"translate(14 %d) rotate(-90)\" text-anchor=\"middle\">", (TOP + HEIGHT - BOTTOM) / 2);
    ps_html_text(out, plot->y_label);
    fprintf(out, "</text>\n<path class=\"axis\" d=\"M%d %dV%dH%.0f\"/>\n", LEFT, TOP, HEIGHT - BOTTOM, x->to);
}

static void print_legend(FILE *out, const ps_plot *plot) {
    for (int64_t i = 0; plot->names && i < plot->n_curves; i++) {
        int x = WIDTH - RIGHT - LEGEND + 8, y = TOP + 6 + 15 * (int)i;
        fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">", x, y,
                palette[i % N_COLOURS], x + 15, y + 9);
        ps_html_text(out, plot->names[i]);
        fprintf(out, "</text>\n");
    }
}

static void print_colour(FILE *out, const ps_plot *plot, int64_t curve) {
    double t = plot->n_curves > 1 ? (double)curve / (double)(plot->n_curves - 1) : 0;
    if (plot->names)
        fprintf(out, "%s", palette[curve % N_COLOURS]);
    else
        fprintf(out, "rgb(%d,%d,%d)", (int)(51 + 170 * t), (int)(102 - 50 * t), (int)(187 - 130 * t));
}

static void print_curve(FILE *out, const ps_plot *plot, int64_t curve, const axis *x, const axis *y) {
    const double *values = plot->y + curve * plot->n;
    bool drawing = false;
    fprintf(out, "<path class=\"curve\" stroke=\"");
    print_colour(out, plot, curve);
    fprintf(out, "\" d=\"");
    for (int64_t i = 0; i < plot->n; i++) {
        bool shown = is_shown(plot->x[i], plot->log_x) && is_shown(values[i], plot->log_y);
        if (shown) fprintf(out, "%c%.1f %.1f", drawing ? 'L' : 'M', pixel(x, plot->x[i]), pixel(y, values[i]));
        drawing = shown;
    }
    fprintf(out, "\"/>\n");
}

/* A dot on the curve at the point nearest to mark_x. */
static void print_mark(FILE *out, const ps_plot *plot, int64_t curve, const axis *x, const axis *y) {
    const double *values = plot->y + curve * plot->n;
    int64_t best = -1;
    if (!is_shown(plot->mark_x[curve], plot->log_x)) return;
    for (int64_t i = 0; i < plot->n; i++)
        if (is_shown(plot->x[i], plot->log_x) && is_shown(values[i], plot->log_y) &&
            (best < 0 ||
             fabs(place(x, plot->x[i]) - place(x, plot->mark_x[curve])) < fabs(place(x, plot->x[best]) - place(x, plot->mark_x[curve]))))
            best = i;
    if (best < 0) return;
    fprintf(out, "<circle r=\"3\" cx=\"%.1f\" cy=\"%.1f\" fill=\"", pixel(x, plot->x[best]), pixel(y, values[best]));
    print_colour(out, plot, curve);
    fprintf(out, "\"/>\n");
}

void ps_svg_plot(FILE *out, const ps_plot *plot) {
    axis x = x_axis(plot), y = y_axis(plot);
    for (int64_t i = 0; i < plot->n; i++) include(&x, plot->x[i]);
    for (int64_t i = 0; i < plot->n_curves * plot->n; i++) include(&y, plot->y[i]);
    if (isnan(x.low) || isnan(y.low)) {
        fprintf(out, "<p>%s: nothing to show yet</p>\n", plot->title);
        return;
    }
    widen(&x);
    widen(&y);
    open_svg(out, plot, &x, &y);
    for (int64_t curve = 0; curve < plot->n_curves; curve++) print_curve(out, plot, curve, &x, &y);
    for (int64_t curve = 0; plot->mark_x && curve < plot->n_curves; curve++) print_mark(out, plot, curve, &x, &y);
    print_legend(out, plot);
    fprintf(out, "</svg>\n");
}

void ps_svg_bars(FILE *out, const ps_plot *plot) {
    axis x = x_axis(plot), y = y_axis(plot);
    x.low = -0.5;
    x.high = (double)plot->n - 0.5;
    x.whole = true;
    y.low = y.high = 0;
    for (int64_t i = 0; i < plot->n; i++) {
        double sum = 0;
        for (int64_t part = 0; part < plot->n_curves; part++) sum += plot->y[part * plot->n + i];
        include(&y, sum);
    }
    widen(&y);
    open_svg(out, plot, &x, &y);
    for (int64_t i = 0; i < plot->n; i++) {
        double below = 0, left = pixel(&x, (double)i - 0.4), width = pixel(&x, (double)i + 0.4) - left;
        for (int64_t part = 0; part < plot->n_curves; part++) {
            double value = plot->y[part * plot->n + i];
            if (!(value > 0)) continue;
            fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n", left, pixel(&y, below + value),
                    width, pixel(&y, below) - pixel(&y, below + value), palette[part % N_COLOURS]);
            below += value;
        }
    }
    print_legend(out, plot);
    fprintf(out, "</svg>\n");
}
