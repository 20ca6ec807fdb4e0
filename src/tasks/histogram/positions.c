#include "tasks/histogram/positions.h"

#include <stdlib.h>
#include <string.h>

#include "input/open.h"

enum { WHOLE_BYTES = 16 << 20 };

static size_t whole_bytes(const ps_histogram_plan *plan) {
    return (size_t)(plan->run.detector_rows * plan->run.detector_columns) * ps_dtype_bytes(plan->run.dtype);
}

ps_code ps_positions_create(const ps_histogram_plan *plan, ps_positions *positions, ps_error *error) {
    *positions = (ps_positions){.plan = plan, .open_frame = -1};
    positions->whole_capacity = (int64_t)(WHOLE_BYTES / whole_bytes(plan));
    if (positions->whole_capacity < 1) positions->whole_capacity = 1;
    positions->whole = malloc((size_t)positions->whole_capacity * whole_bytes(plan));
    if (!positions->whole) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate a buffer for patterns");
    return PS_OK;
}

void ps_positions_free(ps_positions *positions) {
    ps_reader_close(positions->reader);
    free(positions->whole);
    *positions = (ps_positions){.open_frame = -1};
}

static ps_code check_shape(const ps_histogram_plan *plan, const ps_reader *reader, ps_error *error) {
    const ps_recording *found = &reader->info;
    const ps_run_plan *wanted = &plan->run;
    if (found->n_positions == wanted->scan_rows * wanted->scan_columns && found->detector_rows == wanted->detector_rows &&
        found->detector_columns == wanted->detector_columns && found->dtype == wanted->dtype)
        return PS_OK;
    return PS_FAIL(error, PS_E_INPUT, "%s: changed while the run was at work: found %lld positions of %lld x %lld %s", reader->path,
                   (long long)found->n_positions, (long long)found->detector_rows, (long long)found->detector_columns,
                   ps_dtype_name(found->dtype));
}

static ps_code open_frame(ps_positions *positions, int64_t frame, ps_error *error) {
    const ps_run_plan *run = &positions->plan->run;
    if (positions->open_frame == frame) return PS_OK;
    ps_reader_close(positions->reader);
    positions->reader = NULL;
    positions->open_frame = -1;
    ps_reader_options options = ps_job_reader_options(positions->plan->job);
    PS_TRY(ps_reader_open(run->series.items[frame].source, &options, &positions->reader, error));
    PS_TRY(check_shape(positions->plan, positions->reader, error));
    positions->open_frame = frame;
    return PS_OK;
}

/* Cuts n whole patterns to the wanted rows and the region's columns. */
static void cut(const ps_positions *positions, int64_t n, int64_t first_row, int64_t n_rows, char *values) {
    const ps_histogram_plan *plan = positions->plan;
    size_t element = ps_dtype_bytes(plan->run.dtype), line = (size_t)plan->columns * element;
    for (int64_t f = 0; f < n; f++)
        for (int64_t r = 0; r < n_rows; r++) {
            int64_t row = plan->first_row + first_row + r;
            const char *source = (const char *)positions->whole + (size_t)f * whole_bytes(plan) +
                                 (size_t)(row * plan->run.detector_columns + plan->first_column) * element;
            memcpy(values + (size_t)(f * n_rows + r) * line, source, line);
        }
}

ps_code ps_positions_read(ps_positions *positions, int64_t g, int64_t n, int64_t first_row, int64_t n_rows, void *values, int64_t *n_read,
                          int64_t *frame, ps_error *error) {
    const ps_histogram_plan *plan = positions->plan;
    int64_t per_frame = plan->positions_per_frame, k = g % per_frame, stride = plan->wanted->stride;
    bool is_whole = n_rows == plan->run.detector_rows && plan->columns == plan->run.detector_columns;
    *frame = plan->usable[g / per_frame];
    *n_read = 0;
    if (n > per_frame - k) n = per_frame - k;
    PS_TRY(open_frame(positions, *frame, error));
    size_t bytes = (size_t)(n_rows * plan->columns) * ps_dtype_bytes(plan->run.dtype);
    while (*n_read < n) {
        int64_t step = stride > 1 ? 1 : n - *n_read;
        if (!is_whole && step > positions->whole_capacity) step = positions->whole_capacity;
        char *target = (char *)values + (size_t)*n_read * bytes;
        PS_TRY(ps_reader_read(positions->reader, (k + *n_read) * stride, step, is_whole ? target : positions->whole, error));
        if (!is_whole) cut(positions, step, first_row, n_rows, target);
        *n_read += step;
    }
    return PS_OK;
}
