#include "tasks/histogram/counting.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/stop.h"
#include "cluster/watchdog.h"
#include "hdf5/write.h"
#include "tasks/histogram/positions.h"
#include "tasks/series.h"

/* ---- tally -----------------------------------------------------------------------------------------------------------------------------
 */

ps_code ps_tally_create(int64_t n_frames, ps_tally *tally, ps_error *error) {
    size_t n = (size_t)n_frames;
    *tally = (ps_tally){.n_frames = n_frames,
                        .n_positions = calloc(n, sizeof *tally->n_positions),
                        .total_low = calloc(n, sizeof *tally->total_low),
                        .total_high = calloc(n, sizeof *tally->total_high),
                        .errors = calloc(n, sizeof *tally->errors)};
    if (tally->n_positions && tally->total_low && tally->total_high && tally->errors) return PS_OK;
    ps_tally_free(tally);
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu frames", n);
}

void ps_tally_free(ps_tally *tally) {
    free(tally->n_positions);
    free(tally->total_low);
    free(tally->total_high);
    free(tally->errors);
    *tally = (ps_tally){0};
}

/* Texts of all ranks but the lowest that has one become empty; then bytes can be or-ed together. */
static ps_code combine_errors(const ps_cluster *cluster, ps_tally *tally, ps_error *error) {
    ps_code code = PS_OK;
    int n = (int)tally->n_frames;
    int *speaker = malloc((size_t)n * sizeof *speaker);
    if (!speaker) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %d frames", n);
    PS_GO(ps_cluster_agree(cluster, code, error));
    for (int i = 0; i < n; i++) speaker[i] = tally->errors[i][0] ? cluster->rank : INT_MAX;
    PS_GO(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, speaker, n, MPI_INT, MPI_MIN, cluster->communicator)));
    for (int i = 0; i < n; i++) {
        if (speaker[i] == INT_MAX) continue;
        if (speaker[i] != cluster->rank) memset(tally->errors[i], 0, sizeof tally->errors[i]);
        PS_GO(PS_MPI(
            error, MPI_Allreduce(MPI_IN_PLACE, tally->errors[i], (int)sizeof tally->errors[i], MPI_BYTE, MPI_BOR, cluster->communicator)));
    }
done:
    free(speaker);
    return code;
}

ps_code ps_tally_combine(const ps_cluster *cluster, ps_tally *tally, ps_error *error) {
    int n = (int)tally->n_frames;
    MPI_Comm communicator = cluster->communicator;
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, tally->n_positions, n, MPI_INT64_T, MPI_SUM, communicator)));
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, tally->total_low, n, MPI_UINT64_T, MPI_SUM, communicator)));
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, tally->total_high, n, MPI_INT64_T, MPI_SUM, communicator)));
    return combine_errors(cluster, tally, error);
}

/* ---- backend
 * ------------------------------------------------------------------------------------------------------------------------------ */

size_t ps_counting_host_budget(const ps_job *job, const ps_memory_share *share) {
    size_t given = (size_t)(job->memory_budget_GiB * 1024.0 * 1024.0 * 1024.0);
    size_t there = share->bytes == UINT64_MAX ? 0 : (size_t)(share->bytes / 4 * 3);
    if (!given || (there && there < given)) return there;
    return given;
}

ps_code ps_counting_choose(const ps_job *job, const ps_cluster *cluster, const ps_memory_share *share, ps_counting *counting,
                           ps_error *error) {
    const ps_backend_ops *backend;
    ps_backend_options options;
    PS_TRY(ps_series_backend(cluster, job, &backend, &options, error));
    counting->device = options.device;
    counting->n_threads = options.n_threads;
    counting->budget_bytes = options.memory_budget_bytes;
    counting->ops = backend->histogram;
    if (!counting->ops->on_device) counting->budget_bytes = ps_counting_host_budget(job, share);
    return PS_OK;
}

/* ---- bands
 * ---------------------------------------------------------------------------------------------------------------------------------- */

static ps_code create_band(const ps_counting *c, int64_t first_row, int64_t n_rows, ps_histogram **histogram, ps_error *error) {
    ps_histogram_desc desc = {.n_pixels = n_rows * c->plan->columns,
                              .centre = c->sample->centre ? c->sample->centre + first_row * c->plan->columns : NULL,
                              .saturation = c->plan->saturation,
                              .n_segments = c->plan->run.series.n_items,
                              .device = c->device,
                              .n_threads = c->n_threads,
                              .memory_budget_bytes = c->budget_bytes};
    return ps_histogram_create(c->ops, &desc, c->map, histogram, error);
}

/* Halves the rows until the histogram fits. */
static ps_code create_fitting(const ps_counting *c, int64_t first_row, int64_t *n_rows, ps_histogram **histogram, ps_error *error) {
    int64_t most = PS_HISTOGRAM_MAX_PIXELS / c->plan->columns;
    if (most < 1)
        return PS_FAIL(error, PS_E_JOB, "/histogram/region: %lld columns, at most %d are counted at once", (long long)c->plan->columns,
                       PS_HISTOGRAM_MAX_PIXELS);
    if (*n_rows > most) *n_rows = most;
    for (;;) {
        ps_error reason = {0};
        ps_code code = create_band(c, first_row, *n_rows, histogram, &reason);
        if (code == PS_OK) return PS_OK;
        if (code != PS_E_MEMORY || *n_rows == 1) return PS_FAIL(error, code, "%s", reason.text);
        *n_rows = (*n_rows + 1) / 2;
    }
}

ps_code ps_counting_open_band(const ps_counting *c, int64_t first_row, int64_t rows_wanted, int64_t *n_rows, ps_histogram **histogram,
                              ps_error *error) {
    int64_t mine = rows_wanted;
    *histogram = NULL;
    ps_code code = ps_cluster_agree(c->cluster, create_fitting(c, first_row, &mine, histogram, error), error);
    *n_rows = mine;
    if (code == PS_OK) code = PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, n_rows, 1, MPI_INT64_T, MPI_MIN, c->cluster->communicator));
    if (code == PS_OK && *n_rows < mine) {
        ps_histogram_destroy(*histogram);
        *histogram = NULL;
        code = create_band(c, first_row, *n_rows, histogram, error);
    }
    code = ps_cluster_agree(c->cluster, code, error);
    if (code != PS_OK) {
        ps_histogram_destroy(*histogram);
        *histogram = NULL;
    }
    return code;
}

/* ---- counting
 * --------------------------------------------------------------------------------------------------------------------------------- */

static void note_failure(const ps_counting *c, int64_t frame, const ps_error *reason, ps_tally *tally) {
    ps_series_log_failure(&c->plan->run, frame, reason->text);
    if (!tally->errors[frame][0]) ps_h5_pad_text(tally->errors[frame], PS_FRAME_ERROR_BYTES - 1, reason->text);
}

/* One stage's worth from *g on; *g moves behind it, or to the next recording when this one cannot be read. */
static ps_code count_some(const ps_counting *c, ps_histogram *histogram, ps_positions *positions, int64_t first_row, int64_t n_rows,
                          int64_t end, int64_t *g, ps_tally *tally, ps_error *error) {
    void *buffer;
    int64_t capacity, n_read = 0, frame = 0;
    ps_error reason = {0};
    PS_TRY(ps_histogram_stage(histogram, &buffer, &capacity, error));
    if (capacity > end - *g) capacity = end - *g;
    ps_watchdog_beat("read", (long)c->plan->usable[*g / c->plan->positions_per_frame]);
    if (ps_positions_read(positions, *g, capacity, first_row, n_rows, buffer, &n_read, &frame, &reason) != PS_OK) {
        note_failure(c, frame, &reason, tally);
        *g = (*g / c->plan->positions_per_frame + 1) * c->plan->positions_per_frame;
        return PS_OK;
    }
    ps_watchdog_beat("count", (long)frame);
    PS_TRY(ps_histogram_commit(histogram, n_read, frame, error));
    tally->n_positions[frame] += n_read;
    *g += n_read;
    return PS_OK;
}

static ps_code add_totals(const ps_counting *c, ps_histogram *histogram, ps_tally *tally, ps_error *error) {
    ps_code code = PS_OK;
    size_t n = (size_t)c->plan->run.series.n_items;
    uint64_t *low = calloc(n, sizeof *low);
    int64_t *high = calloc(n, sizeof *high);
    PS_GO_ALLOC(error, low);
    PS_GO_ALLOC(error, high);
    PS_GO(ps_histogram_read_totals(histogram, low, high, error));
    for (size_t i = 0; i < n; i++) {
        tally->total_low[i] += low[i];
        tally->total_high[i] += high[i];
    }
done:
    free(low);
    free(high);
    return code;
}

ps_code ps_counting_run(const ps_counting *c, ps_histogram *histogram, int64_t first_row, int64_t n_rows, ps_tally *tally,
                        ps_error *error) {
    ps_code code = PS_OK;
    ps_positions positions;
    int64_t begin, end;
    ps_share(c->plan->n_positions, c->cluster->rank, c->cluster->n_ranks, &begin, &end);
    memset(tally->n_positions, 0, (size_t)tally->n_frames * sizeof *tally->n_positions);
    PS_GO(ps_positions_create(c->plan, &positions, error));
    for (int64_t g = begin; g < end;) {
        if (ps_stop_wanted())
            PS_GO(PS_FAIL(error, PS_E_INTERRUPTED, "stopped (%s) before all positions were counted; no output was written, run again",
                          ps_stop_reason()));
        PS_GO(count_some(c, histogram, &positions, first_row, n_rows, end, &g, tally, error));
        ps_progress_update(c->progress, (g < end ? g : end) - begin, NULL);
    }
    PS_GO(ps_histogram_finish(histogram, error));
    code = add_totals(c, histogram, tally, error);
done:
    ps_positions_free(&positions);
    return code;
}
