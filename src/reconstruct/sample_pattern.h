/* A mean pattern from some of a recording's positions: what a plan may read without taking long. */
#ifndef PS_RECONSTRUCT_SAMPLE_PATTERN_H
#define PS_RECONSTRUCT_SAMPLE_PATTERN_H

#include "input/reader.h"

typedef struct {
    int64_t detector_rows, detector_columns;
    int64_t n_positions; /* that were read */
    double *mean;        /* [detector_rows, detector_columns] over the positions that hold a count */
    int64_t *n_marked;   /* [detector_rows, detector_columns] positions that hold none */
} ps_pattern_sample;

/* Reads pieces of positions spread evenly over the recording, up to 64 MiB of counts, or all of them where that is enough. Rank-local and
 * deterministic: the same recording gives the same sample everywhere. Owned by the caller: ps_pattern_sample_free, also after an error. */
ps_code ps_sample_pattern(const char *source, const ps_reader_options *options, ps_pattern_sample *sample, ps_error *error);
void ps_pattern_sample_free(ps_pattern_sample *sample);

#endif
