/* One fit: a frame's optics, by one rank or by several together. */
#ifndef PS_TASKS_FIT_ITEM_H
#define PS_TASKS_FIT_ITEM_H

#include "tasks/fit/entry.h"
#include "tasks/fit/load.h"

/* How the fit was told from its twin. */
typedef enum {
    PS_TWIN_SKEWNESS,  /* the phase's few bright (or dark) places */
    PS_TWIN_GIVEN,     /* rotation or C10 are given, bounded or not free */
    PS_TWIN_CONVENTION /* not at all: of the two, the one with the defocus positive (C10 < 0) */
} ps_twin_rule;

/* Plain data: ranks send it as bytes. */
typedef struct {
    int64_t group, frame;
    ps_code code; /* PS_OK: fitted */
    char reason[PS_ERROR_TEXT];
    ps_fit_result result;
    ps_twin_rule rule;
    double skewness, skewness_error;
    double seconds, load_seconds;
    int64_t n_frequencies, n_pixels;
    double dose;
    bool was_refitted, is_outlier;
} ps_fit_item;

/* What is drawn of a fit. Owned. */
typedef struct {
    float *before, *after; /* [scan_rows, scan_columns] rad */
    float *residual;       /* [detector_rows, detector_columns] rad, 0 outside the aperture */
} ps_fit_pictures;
void ps_fit_pictures_free(ps_fit_pictures *pictures);

/* Collective over `cluster`, which may be a part of all ranks; source and the frame's recording matter on its rank 0, which alone gets
 * item. options: with what is given. start: complete. pictures: NULL: none are wanted; filled on rank 0. A frame that cannot be fitted is
 * recorded in item and no error; errors are those that end the run, everyone's. */
ps_code ps_fit_item_run(const ps_cluster *cluster, const ps_fit_source *source, const ps_job_fit *fit, const ps_fit_options *options,
                        const ps_optics *start, ps_fit_item *item, ps_fit_pictures *pictures, ps_error *error);

/* Quantities that the group's optics give by their keys; given: [PS_FIT_N_NAMES]. */
ps_code ps_fit_find_given(const ps_run_group *group, ps_fit_options *options, ps_error *error);

#endif
