/* A mean pattern from some of a recording's positions: what a plan may read without taking long. */
#ifndef PS_PLAN_SAMPLE_PATTERN_H
#define PS_PLAN_SAMPLE_PATTERN_H

#include "input/reader.h"

typedef struct {
    int64_t detector_rows, detector_columns;
    int64_t n_positions;                /* that were read and are not odd */
    int64_t n_empty, n_marked_patterns; /* odd ones that were read: empty, without counts (input/odd_patterns.h) */
    double *mean;                       /* [detector_rows, detector_columns] over the positions that hold a count and are not odd */
    int64_t *n_marked;                  /* [detector_rows, detector_columns] of those positions, how many hold none */
} ps_pattern_sample;

/* Reads pieces of positions scattered evenly over the recording, up to most_bytes (or one pattern), or all of them where that is enough.
 * Rank-local and deterministic: the same recording gives the same sample everywhere. bad: [detector_rows, detector_columns], not 0: such a
 * pixel does not make a pattern odd; NULL: none. Owned by the caller: ps_pattern_sample_free, also after an error. */
ps_code ps_sample_pattern_of(const char *source, const ps_reader_options *options, size_t most_bytes, const uint8_t *bad,
                             ps_pattern_sample *sample, ps_error *error);
/* Up to 64 MiB, in pieces at equal distances. */
ps_code ps_sample_pattern(const char *source, const ps_reader_options *options, ps_pattern_sample *sample, ps_error *error);
void ps_pattern_sample_free(ps_pattern_sample *sample);

#endif
