/* The parts of a histogram output; internal to file.c. */
#ifndef PS_TASKS_HISTOGRAM_FILE_PARTS_H
#define PS_TASKS_HISTOGRAM_FILE_PARTS_H

#include "tasks/histogram/file.h"

/* Rank-local, serial: /entry/histogram and /entry/frames at full size, with what is known already. */
ps_code ps_histogram_create_data(hid_t entry, const ps_histogram_file_spec *spec, ps_error *error);
ps_code ps_histogram_create_frames(hid_t entry, const ps_histogram_file_spec *spec, ps_error *error);
/* Rank-local, raw data only: everything but the histograms themselves. */
ps_code ps_histogram_write_results(const ps_histogram_file *file, const ps_histogram_results *results, ps_error *error);

#endif
