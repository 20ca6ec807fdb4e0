/* The output file of a histogram task. Written under a temporary name, by all ranks through MPI-IO, and given its name when it is complete:
 * it is either whole or not there. docs/histogram.md is its reference. */
#ifndef PS_TASKS_HISTOGRAM_FILE_H
#define PS_TASKS_HISTOGRAM_FILE_H

#include <hdf5.h>

#include "store/new_file.h"
#include "tasks/histogram/file_parts.h"

typedef struct {
    const ps_cluster *cluster;
    const ps_histogram_file_spec *spec;
    char *path, *temporary; /* temporary: its name until it is published */
    hid_t file, entry, counts;
    ps_new_file new_file; /* rank 0's */
} ps_histogram_file;

/* Collective. PS_E_ARGUMENT when the output exists and is not to be replaced, or is written by another run. */
ps_code ps_histogram_file_begin(const ps_cluster *cluster, const ps_histogram_file_spec *spec, ps_histogram_file *file, ps_error *error);
/* Rank-local, a ps_counts_sink whose context is the file: counts [n_pixels, n_bins] of pixels first_pixel ... of the region. */
ps_code ps_histogram_file_write_counts(void *file, int64_t first_pixel, int64_t n_pixels, const uint64_t *counts, ps_error *error);
/* Collective: writes the results, closes, gives the file its name. The file is gone after an error. */
ps_code ps_histogram_file_finish(ps_histogram_file *file, const ps_histogram_results *results, ps_error *error);
/* Collective: removes what was begun; nothing happens when it is finished. */
void ps_histogram_file_discard(ps_histogram_file *file);

#endif
