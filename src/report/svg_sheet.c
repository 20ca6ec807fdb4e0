#include "report/svg_sheet.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { PLOT_WIDTH = 570, PLOT_HEIGHT = 330, N_COLUMNS = 2 };

static const char style[] =
    "text{font:11px system-ui,sans-serif;fill:#333}.title{font-weight:600;font-size:13px}.grid{stroke:#e4e4e4;fill:none}"
    ".axis{stroke:#333;fill:none}.curve{fill:none;stroke-width:1.6}";

static bool has_values(const ps_plot *plot) {
    bool has = false;
    for (int64_t i = 0; i < plot->n_curves * plot->n; i++) has |= isfinite(plot->y[i]) && (!plot->log_y || plot->y[i] > 0);
    return has;
}

ps_code ps_svg_sheet_write(const char *path, const ps_plot *plots, int n, ps_error *error) {
    FILE *file = fopen(path, "w");
    if (!file) return PS_FAIL(error, PS_E_IO, "%s: cannot write: %s", path, strerror(errno));
    int width = N_COLUMNS * PLOT_WIDTH, height = (n + N_COLUMNS - 1) / N_COLUMNS * PLOT_HEIGHT;
    fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n<style>%s</style>\n", width,
            height, width, height, style);
    fprintf(file, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
    for (int i = 0; i < n; i++) {
        if (!has_values(&plots[i])) continue;
        fprintf(file, "<g transform=\"translate(%d %d)\">\n", i % N_COLUMNS * PLOT_WIDTH, i / N_COLUMNS * PLOT_HEIGHT);
        ps_svg_plot(file, &plots[i]);
        fprintf(file, "</g>\n");
    }
    fprintf(file, "</svg>\n");
    bool written = !ferror(file);
    if (fclose(file) != 0) written = false;
    return written ? PS_OK : PS_FAIL(error, PS_E_IO, "%s: cannot write: %s", path, strerror(errno));
}
