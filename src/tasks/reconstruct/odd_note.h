/* Odd patterns of a recording as a list and as words. */
#ifndef PS_TASKS_RECONSTRUCT_ODD_NOTE_H
#define PS_TASKS_RECONSTRUCT_ODD_NOTE_H

#include "input/odd_patterns.h"

enum { PS_ODD_NOTE = 640 };

typedef struct {
    int64_t n_empty, n_marked;
    uint8_t *kind; /* [n_positions] ps_pattern_kind; NULL: every pattern is good */
    char *text;    /* "2 of 192 patterns are empty: ...; 1 holds no counts: ..."; NULL: every pattern is good */
} ps_odd_patterns;

/* tally, n_pixels: as in ps_patterns_judge. scan_columns: 0 where positions are no scan. Owned by the caller: ps_odd_patterns_free, or
 * kind and text one by one. On error *found is empty. */
ps_code ps_odd_patterns_find(const ps_pattern_tally *tally, int64_t n_positions, int64_t n_pixels, int64_t scan_columns,
                             ps_odd_patterns *found, ps_error *error);
void ps_odd_patterns_free(ps_odd_patterns *found);

#endif
