/* A histogram output open for looking at. Rank-local; no locks. */
#ifndef PS_TASKS_HISTOGRAM_VIEW_H
#define PS_TASKS_HISTOGRAM_VIEW_H

#include "store/view.h"

typedef struct {
    ps_view file;
    int64_t rows, columns, n_bins; /* of the region */
    int64_t first_row, first_column;
    int64_t detector_rows, detector_columns;
    double *edges; /* [n_bins + 1] */
} ps_histogram_view;

ps_code ps_histogram_view_open(const char *path, ps_histogram_view *view, ps_error *error);
void ps_histogram_view_close(ps_histogram_view *view);

/* One map of the region, [rows, columns]: "mean", "variance", ... */
ps_code ps_histogram_view_map(const ps_histogram_view *view, const char *name, double *values, ps_error *error);
/* The mask's bits of the region, [rows, columns]. */
ps_code ps_histogram_view_mask(const ps_histogram_view *view, uint32_t *mask, ps_error *error);
/* counts: [n_bins] of one pixel of the region. */
ps_code ps_histogram_view_pixel(const ps_histogram_view *view, int64_t row, int64_t column, double *counts, ps_error *error);

/* To standard output, for `ptyseries info`. */
ps_code ps_histogram_print_info(const char *path, ps_error *error);

#endif
