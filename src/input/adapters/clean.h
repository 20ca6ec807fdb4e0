/* Values that are no counts, turned into the invalid-count value of their type before anything is summed. */
#ifndef PS_INPUT_ADAPTERS_CLEAN_H
#define PS_INPUT_ADAPTERS_CLEAN_H

#include "input/reader.h"

/* Marks in place: counts at or above saturation (NAN: unknown), infinities, and negative integers. A signed integer array holds the
 * unsigned integers of the same size afterwards. counts: [n] of dtype. Adds to *found. All threads. */
void ps_counts_clean(void *counts, int64_t n, ps_dtype dtype, double saturation, ps_invalid_counts *found);

/* Detectors write all ones where there is no count, and programs carry that into other types. Marks in place, before ps_counts_clean:
 * - in any type, the all-ones value of the bit depth that the file states, when the type holds more;
 * - in signed integers the largest value, to which unsigned invalid-count values are clipped;
 * - in float32, float64 and 64-bit integers, which arrive as float64, what 2^31 - 1, 2^32 - 1, 2^63 - 1 and 2^64 - 1 become there; no
 *   pixel counts that far. Negative values of int64 are no counts either and are added to *found;
 * - in the same types, in uint32 and in int32 65535 when no bit depth is stated and all else in the pattern is below half of it: a 16-bit
 *   invalid-count value;
 * - in float32 and float64 -1 where the pattern is a copy of integers: all whole numbers, none below -1.
 * counts: [n_frames, pixels] of info->dtype. *found is made so that ps_counts_clean of the same counts, which has to follow, does
 * not count the invalid-count values as negative or not finite. All threads. */
void ps_invalid_values_clean(void *counts, int64_t n_frames, int64_t pixels, const ps_recording *info, ps_invalid_counts *found);

/* Whether a reader is one that ps_clean_wrap made and does nothing but mark unsigned counts at and above *limit. */
bool ps_clean_is_limit(const ps_reader *reader, uint32_t *limit);

/* Puts a reader that does so in front of *reader, when there can be anything to do, and replaces *reader by it. */
ps_code ps_clean_wrap(ps_reader **reader, ps_error *error);

#endif
