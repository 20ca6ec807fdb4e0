/* What only histogram jobs have: their "histogram" entry. docs/jobs.md is its reference. */
#ifndef PS_TASKS_HISTOGRAM_ENTRY_H
#define PS_TASKS_HISTOGRAM_ENTRY_H

#include "job/job.h"

typedef enum { PS_CENTRE_NONE, PS_CENTRE_MEDIAN, PS_CENTRE_FILE } ps_histogram_centre;

typedef struct {
    int64_t n_bins;
    bool automatic_range;        /* range "auto": from the data */
    double range[2];             /* lowest edge, highest edge; unused when automatic */
    ps_histogram_centre centre;  /* what is subtracted from each pixel first */
    char *centre_file;           /* "file.npy" or "file.h5:/dataset", absolute; NULL unless PS_CENTRE_FILE */
    int64_t rows[2], columns[2]; /* detector region, first and end; end 0: whole detector */
    int64_t stride;              /* every stride-th position of a recording */
    int64_t sample;              /* positions that an automatic range and medians are taken from */
    double saturation;           /* counts at and above are saturated; NAN: as the recording says */
    /* Thresholds of the masks, as ps_mask_rules. */
    double hot_sigma, dead_fraction, noisy_ratio, saturated_fraction;
} ps_job_histogram;

/* Of a histogram job, which ps_kind_histogram reads. */
const ps_job_histogram *ps_histogram_entry(const ps_job *job);

#endif
