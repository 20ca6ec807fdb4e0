/* Patterns that were not measured: empty ones where others hold counts, and ones whose pixels hold no count at all. */
#ifndef PS_INPUT_ODD_PATTERNS_H
#define PS_INPUT_ODD_PATTERNS_H

#include <stdint.h>

#include "core/error.h"
#include "core/types.h"

/* Of one pattern, over the pixels that are looked at: all of them, or, where that is enough to see that it is good (64 lit ones and few
 * that are marked), an eighth of them, spread over the detector. */
typedef struct {
    uint32_t lit; /* pixels with a count other than 0; none of a pattern of 64 pixels or more that all hold the same count, a fill value */
    uint32_t marked; /* pixels that hold no count: the invalid-count value of the type; what is not finite */
} ps_pattern_tally;

typedef enum { PS_PATTERN_GOOD = 0, PS_PATTERN_EMPTY = 1, PS_PATTERN_MARKED = 2 } ps_pattern_kind;

enum { PS_ODD_TEXT = 256 };

/* counts: [n_positions, n_pixels] of dtype; bad: [n_bad] pixels not to look at, ascending; tally: [n_positions], filled. All threads. */
void ps_patterns_tally(ps_dtype dtype, const void *counts, int64_t n_positions, int64_t n_pixels, const int32_t *bad, int64_t n_bad,
                       ps_pattern_tally *tally);

/* The same from tallies of packed patterns (kernels/unpack.h). looks: [n_pixels] which pixels count in the first and in the second of their
 * two sums; bad: [n_pixels] not 0: not looked at; NULL: none. The tally is taken from the two sums as ps_patterns_tally does. */
void ps_patterns_looks(int64_t n_pixels, const uint8_t *bad, uint8_t *looks);
ps_pattern_tally ps_patterns_choose(const uint32_t lit[2], const uint32_t marked[2], int64_t n_pixels);

/* Which of a recording's patterns are odd. Marked: more than half of the pixels that hold a count elsewhere hold none (what 9 of 10
 * patterns lack, such as the gaps between modules, does not matter). Empty: less than 1 % of the usual number of pixels is lit, and that is
 * no chance: a Poisson pattern is empty with exp(-lit pixels), so a single one, or a run of k, is called empty when fewer than 0.001 such
 * runs are expected in the recording, and all are when there are more than ten times (and ten) as many as expected. So a very low dose has
 * no odd patterns, but a tail of it that was never written has.
 *
 * tally: [n_positions] in scan order; n_pixels: looked at in each; kind: [n_positions] ps_pattern_kind, filled; n_empty, n_marked: how
 * many. A recording without any count has no odd patterns: it is odd as a whole. */
ps_code ps_patterns_judge(const ps_pattern_tally *tally, int64_t n_positions, int64_t n_pixels, uint8_t *kind, int64_t *n_empty,
                          int64_t *n_marked, ps_error *error);

/* "130-143, 200 (rows.columns 8.2-8.15, 12.8)" of the positions of that kind, counted from 0, as many as fit. */
void ps_patterns_list(const uint8_t *kind, int64_t n_positions, ps_pattern_kind which, int64_t scan_columns, char text[PS_ODD_TEXT]);

#endif
