/* What must be known before counting starts, from patterns spread evenly over the series: medians, and an automatic range. */
#ifndef PS_TASKS_HISTOGRAM_SAMPLE_H
#define PS_TASKS_HISTOGRAM_SAMPLE_H

#include "tasks/histogram/plan.h"

typedef struct {
    int64_t n_sampled; /* patterns that were read; 0: nothing had to be known */
    double range[2];   /* lowest and highest edge */
    double *centre;    /* [n_pixels] of the region; NULL: no centring. Owned: ps_sample_free */
} ps_sample;

/* Collective. given: [detector_rows, detector_columns] pixels that the range leaves out. Which patterns are sampled depends on the job
 * alone, so the result is the same on any number of ranks. A recording that cannot be read is left out. PS_E_MEMORY when medians need more
 * memory than budget_bytes (0: no limit) on a rank, PS_E_INPUT when no finite value was found. */
ps_code ps_sample_take(const ps_cluster *cluster, const ps_histogram_plan *plan, const uint8_t *given, size_t budget_bytes,
                       ps_sample *sample, ps_error *error);
void ps_sample_free(ps_sample *sample);

/* The edges for values from low to high: of integers, bins a whole number of counts wide that begin at low, so that no bin covers more
 * values than another; of floats low and high themselves. Half a unit to each side when low and high are the same. */
void ps_automatic_range(ps_dtype dtype, int64_t n_bins, double low, double high, double range[2]);

#endif
