/* The output file of a histogram task. Written under a temporary name, by all ranks through MPI-IO, and given its name when it is complete:
 * it is either whole or not there. docs/histogram.md is its reference. */
#ifndef PS_TASKS_HISTOGRAM_FILE_H
#define PS_TASKS_HISTOGRAM_FILE_H

#include <hdf5.h>

#include "kernels/histogram.h"
#include "store/lock.h"
#include "store/output.h"
#include "tasks/histogram/maps.h"
#include "tasks/histogram/masks.h"
#include "tasks/histogram/plan.h"
#include "tasks/histogram/sample.h"

/* What is known before counting; borrowed. */
typedef struct {
    const ps_histogram_plan *plan;
    const ps_histogram_map *map;
    const ps_sample *sample;
    int64_t n_notes;
    const ps_output_note *notes;
    bool overwrite;
} ps_histogram_file_spec;

/* What is known after it; maps of the region, mask of the whole detector, [n_frames] of the series. */
typedef struct {
    const ps_histogram_maps *maps;
    const uint32_t *mask;
    const int64_t *n_masked; /* [PS_MASK_KINDS] */
    const uint8_t *states;   /* ps_frame_state */
    char (*errors)[512];
    const int64_t *n_positions;
    const double *total; /* sum of all finite values of the region */
    const char *device;
} ps_histogram_results;

typedef struct {
    const ps_cluster *cluster;
    const ps_histogram_file_spec *spec;
    char *path, *temporary; /* temporary: rank 0 owns the file of that name until it is published */
    hid_t file, entry, counts;
    ps_lock lock; /* rank 0 */
} ps_histogram_file;

/* Collective. PS_E_ARGUMENT when the output exists and is not to be replaced, or is written by another run. */
ps_code ps_histogram_file_begin(const ps_cluster *cluster, const ps_histogram_file_spec *spec, ps_histogram_file *file, ps_error *error);
/* Rank-local, a ps_counts_sink whose context is the file: counts [n_pixels, n_bins] of pixels first_pixel ... of the region. */
ps_code ps_histogram_file_write_counts(void *file, int64_t first_pixel, int64_t n_pixels, const uint64_t *counts, ps_error *error);
/* Collective: writes the results, closes, gives the file its name. The file is gone after an error. */
ps_code ps_histogram_file_finish(ps_histogram_file *file, const ps_histogram_results *results, ps_error *error);
/* Collective: removes what was begun; nothing happens when it is finished. */
void ps_histogram_file_discard(ps_histogram_file *file);

/* Rank-local: what makes two histogram jobs the same, as lines "key=value"; malloc'd. */
ps_code ps_histogram_fingerprint(const ps_histogram_plan *plan, char **text, ps_error *error);
/* As earlier versions wrote it, with the named files' places and times in the place of everybody's content. */
ps_code ps_histogram_fingerprint_of_names(const ps_histogram_plan *plan, char **text, ps_error *error);
/* The line of a frame whose recording cannot be read is PS_HISTOGRAM_UNREADABLE behind the "=". */
#define PS_HISTOGRAM_UNREADABLE "unreadable"

#endif
