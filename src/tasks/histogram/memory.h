/* What a histogram job will take of memory, without taking it. */
#ifndef PS_TASKS_HISTOGRAM_MEMORY_H
#define PS_TASKS_HISTOGRAM_MEMORY_H

#include "kernels/histogram.h"
#include "tasks/histogram/plan.h"

/* Bytes on a rank that is alone; more ranks share the sample and the blocks in which counts are brought together. What libraries take for
 * themselves (MPI, HDF5: 50 to 100 MiB) is not counted. */
typedef struct {
    bool on_device;       /* counters and the patterns to count are the device's */
    int64_t rows_at_once; /* of the region */
    size_t counter_bytes; /* counters of those rows, and what one pattern needs: without it nothing runs */
    size_t frame_bytes;   /* at most, and only where memory is left: more patterns at once. 0: as much as the device has */
    size_t host_bytes;    /* of the process beside all that: maps, moments, blocks of 64-bit counts, the sample, patterns as read */
} ps_histogram_memory;

/* budget_bytes: 0: no limit. An automatic range is not known yet; then cuda's counters are those of as many bins of one count each.
 * PS_E_JOB when the bins are too narrow for the values' type, or a single row needs more than the budget. */
ps_code ps_histogram_memory_plan(const ps_histogram_plan *plan, const ps_histogram_ops *ops, size_t budget_bytes,
                                 ps_histogram_memory *memory, ps_error *error);

#endif
