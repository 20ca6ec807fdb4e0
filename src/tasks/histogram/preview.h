/* Pictures of a histogram output: maps, masks, plots, and one self-contained HTML report. */
#ifndef PS_TASKS_HISTOGRAM_PREVIEW_H
#define PS_TASKS_HISTOGRAM_PREVIEW_H

#include "report/preview.h"

/* Of the options, directory and clip_percent matter. pixels: [n_pixels] (row, column) on the detector whose histograms are plotted; 0: a
 * typical one, the extremes, and the first of each masked kind. */
ps_code ps_histogram_preview(const char *path, const ps_preview_options *options, int64_t n_pixels, const int64_t (*pixels)[2],
                             int64_t *n_written, ps_error *error);

#endif
