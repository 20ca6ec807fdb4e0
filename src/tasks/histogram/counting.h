/* Counting a rank's share of the positions, in bands of detector rows that fit the memory. */
#ifndef PS_TASKS_HISTOGRAM_COUNTING_H
#define PS_TASKS_HISTOGRAM_COUNTING_H

#include "cluster/memory_bounds.h"
#include "core/log.h"
#include "kernels/histogram.h"
#include "tasks/histogram/plan.h"
#include "tasks/histogram/sample.h"

enum { PS_FRAME_ERROR_BYTES = 512 };

/* Per frame of the series; this rank's alone until ps_tally_combine. */
typedef struct {
    int64_t n_frames;
    int64_t *n_positions; /* counted, in the band that was counted last */
    uint64_t *total_low;
    int64_t *total_high;                  /* sum of finite values, low + 2^32 high, in the map's units */
    char (*errors)[PS_FRAME_ERROR_BYTES]; /* "" unless reading failed */
} ps_tally;

ps_code ps_tally_create(int64_t n_frames, ps_tally *tally, ps_error *error);
void ps_tally_free(ps_tally *tally);
/* Collective: positions and totals become everyone's sums; an error text is the lowest rank's that met one. */
ps_code ps_tally_combine(const ps_cluster *cluster, ps_tally *tally, ps_error *error);

typedef struct {
    const ps_cluster *cluster;
    const ps_histogram_plan *plan;
    const ps_histogram_map *map;
    const ps_sample *sample;
    const ps_histogram_ops *ops;
    int device, n_threads;
    size_t budget_bytes;   /* 0: what the device has */
    ps_progress *progress; /* NULL: silent */
} ps_counting;

/* Collective. The histogram of rows first_row ... of the region, as many as fit on every rank: *n_rows, at most the rows wanted. */
ps_code ps_counting_open_band(const ps_counting *counting, int64_t first_row, int64_t rows_wanted, int64_t *n_rows,
                              ps_histogram **histogram, ps_error *error);
/* Rank-local: counts this rank's share of all positions. A frame that cannot be read is noted in tally and the others go on;
 * PS_E_INTERRUPTED when the run is to stop. */
ps_code ps_counting_run(const ps_counting *counting, ps_histogram *histogram, int64_t first_row, int64_t n_rows, ps_tally *tally,
                        ps_error *error);

/* What counters and patterns may take of the host: three quarters of the share, or the job's budget where that is less; 0: no limit.
 */
size_t ps_counting_host_budget(const ps_job *job, const ps_memory_share *share);
/* The histogram table of the job's backend, and its device. share: of the host, this rank's. */
ps_code ps_counting_choose(const ps_job *job, const ps_cluster *cluster, const ps_memory_share *share, ps_counting *counting,
                           ps_error *error);

#endif
