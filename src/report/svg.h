/* Line plots and stacked bars as inline SVG. */
#ifndef PS_REPORT_SVG_H
#define PS_REPORT_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    const char *title, *x_label, *y_label;
    bool log_x, log_y;        /* values <= 0 are left out then */
    int64_t n_curves, n;      /* curves of n points each */
    const double *x;          /* [n] */
    const double *y;          /* [n_curves, n]; what is not finite is left out */
    const char *const *names; /* [n_curves] legend; NULL: none, colours run from blue to red over the curves */
    const double *mark_x;     /* [n_curves] x of a dot on each curve, at the nearest point; NULL: none */
} ps_plot;

/* Nothing but a line of text when no value can be shown. */
void ps_svg_plot(FILE *out, const ps_plot *plot);
/* One bar per x, its parts y[curve] on top of each other; names needed, log_x and log_y ignored. */
void ps_svg_bars(FILE *out, const ps_plot *plot);

void ps_html_text(FILE *out, const char *text); /* escaped */

#endif
