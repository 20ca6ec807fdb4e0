/* A histogram as a picture: counts on a logarithmic scale over the bins' edges. */
#ifndef PS_REPORT_PLOT_H
#define PS_REPORT_PLOT_H

#include "report/canvas.h"

/* edges: [n_bins + 1]; counts: [n_bins]; path lies in place. Where there are more bins than columns of the picture, a column shows its
 * fullest bin. */
ps_code ps_histogram_plot(const double *edges, const double *counts, int64_t n_bins, const char *title, const ps_place *place,
                          const char *path, ps_error *error);

#endif
