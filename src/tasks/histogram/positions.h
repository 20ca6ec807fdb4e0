/* Reads patterns by their global position, cut to rows of the region. Rank-local, one recording open at a time. */
#ifndef PS_TASKS_HISTOGRAM_POSITIONS_H
#define PS_TASKS_HISTOGRAM_POSITIONS_H

#include "tasks/histogram/plan.h"

typedef struct {
    const ps_histogram_plan *plan;
    ps_reader *reader;
    int64_t open_frame; /* of the series; -1: none */
    void *whole;        /* [whole_capacity, detector_rows, detector_columns] before cutting */
    int64_t whole_capacity;
} ps_positions;

ps_code ps_positions_create(const ps_histogram_plan *plan, ps_positions *positions, ps_error *error);
void ps_positions_free(ps_positions *positions);

/* Reads up to n positions from g on, all of one recording: *n_read of them, *frame of the series. rows: first_row ... first_row + n_rows -
 * 1 of the region. values: [n, n_rows, plan->columns] of the plan's dtype. On error *frame says whose it is; the next recording can be gone
 * on with. */
ps_code ps_positions_read(ps_positions *positions, int64_t g, int64_t n, int64_t first_row, int64_t n_rows, void *values, int64_t *n_read,
                          int64_t *frame, ps_error *error);

#endif
