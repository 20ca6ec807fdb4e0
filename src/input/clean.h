/* Values that are no counts, turned into the marker of their type before anything is summed. */
#ifndef PS_INPUT_CLEAN_H
#define PS_INPUT_CLEAN_H

#include "input/reader.h"

/* Marks in place: counts at or above saturation (NAN: unknown), infinities, and negative integers. A signed integer array holds the
 * unsigned integers of the same size afterwards. counts: [n] of dtype. Adds to *found. All threads. */
void ps_counts_clean(void *counts, int64_t n, ps_dtype dtype, double saturation, ps_invalid_counts *found);

/* Puts a reader that does so in front of *reader, when there can be anything to do, and replaces *reader by it. */
ps_code ps_clean_wrap(ps_reader **reader, ps_error *error);

#endif
