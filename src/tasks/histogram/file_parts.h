/* What a histogram output is made from, and its parts below /entry. */
#ifndef PS_TASKS_HISTOGRAM_FILE_PARTS_H
#define PS_TASKS_HISTOGRAM_FILE_PARTS_H

#include <hdf5.h>

#include "kernels/histogram.h"
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

/* Rank-local, serial: /entry/histogram and /entry/frames at full size, with what is known already. */
ps_code ps_histogram_create_data(hid_t entry, const ps_histogram_file_spec *spec, ps_error *error);
ps_code ps_histogram_create_frames(hid_t entry, const ps_histogram_file_spec *spec, ps_error *error);
/* Rank-local, raw data only: everything but the histograms themselves. */
ps_code ps_histogram_write_results(hid_t entry, const ps_histogram_file_spec *spec, const ps_histogram_results *results, ps_error *error);

#endif
