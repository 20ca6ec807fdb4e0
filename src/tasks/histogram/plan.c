#include "tasks/histogram/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "input/adapters/mask.h"
#include "input/open.h"
#include "input/reader.h"

void ps_share(int64_t n, int rank, int n_ranks, int64_t *begin, int64_t *end) {
    int64_t each = n / n_ranks, extra = n % n_ranks;
    *begin = rank * each + (rank < extra ? rank : extra);
    *end = *begin + each + (rank < extra);
}

ps_code ps_histogram_region(const ps_job *job, const ps_run_plan *run, int64_t *rows, int64_t *columns, ps_error *error) {
    const ps_job_histogram *wanted = ps_histogram_entry(job);
    *rows = wanted->rows[1] ? wanted->rows[1] - wanted->rows[0] : run->detector_rows;
    *columns = wanted->columns[1] ? wanted->columns[1] - wanted->columns[0] : run->detector_columns;
    if (wanted->rows[1] <= run->detector_rows && wanted->columns[1] <= run->detector_columns) return PS_OK;
    return PS_FAIL(error, PS_E_JOB,
                   "/histogram/region: found rows %lld to %lld and columns %lld to %lld, but the detector has %lld x %lld pixels",
                   (long long)wanted->rows[0], (long long)wanted->rows[1], (long long)wanted->columns[0], (long long)wanted->columns[1],
                   (long long)run->detector_rows, (long long)run->detector_columns);
}

static ps_code set_region(ps_histogram_plan *plan, ps_error *error) {
    PS_TRY(ps_histogram_region(plan->job, &plan->run, &plan->rows, &plan->columns, error));
    plan->first_row = plan->wanted->rows[0];
    plan->first_column = plan->wanted->columns[0];
    plan->n_pixels = plan->rows * plan->columns;
    return PS_OK;
}

/* The job's number, else the recordings', else the largest value of an unsigned type. */
static double choose_saturation(const ps_histogram_plan *plan) {
    double of_file = plan->run.frames[plan->usable[0]].info.saturation;
    uint32_t invalid_value = ps_dtype_invalid_value(plan->run.dtype);
    if (!isnan(plan->wanted->saturation)) return plan->wanted->saturation;
    if (of_file > 0) return of_file;
    return invalid_value ? (double)invalid_value : INFINITY;
}

ps_code ps_histogram_plan_build(const ps_job *job, ps_histogram_plan *plan, ps_error *error) {
    ps_code code = PS_OK;
    *plan = (ps_histogram_plan){.job = job, .wanted = ps_histogram_entry(job)};
    PS_TRY(ps_run_plan_open(job, &plan->run, error));
    plan->usable = malloc((size_t)plan->run.series.n_items * sizeof *plan->usable);
    PS_GO_ALLOC(error, plan->usable);
    for (int64_t i = 0; i < plan->run.series.n_items; i++)
        if (!plan->run.frames[i].unreadable) plan->usable[plan->n_usable++] = i;
    PS_GO(set_region(plan, error));
    int64_t n = plan->run.scan_rows * plan->run.scan_columns, stride = plan->wanted->stride;
    plan->positions_per_frame = (n + stride - 1) / stride;
    plan->n_positions = plan->n_usable * plan->positions_per_frame;
    plan->saturation = choose_saturation(plan);
done:
    if (code != PS_OK) ps_histogram_plan_free(plan);
    return code;
}

void ps_histogram_plan_free(ps_histogram_plan *plan) {
    ps_file_checks_free(&plan->checks);
    ps_run_plan_free(&plan->run);
    free(plan->usable);
    *plan = (ps_histogram_plan){0};
}

/* Adds one recording's mask; mask: room for one. */
static ps_code add_file_mask(const ps_histogram_plan *plan, int64_t frame, uint8_t *mask, uint8_t *given, ps_error *error) {
    ps_code code = PS_OK;
    ps_reader *reader = NULL;
    bool present = false;
    ps_reader_options options = ps_job_reader_options(plan->job);
    PS_GO(ps_reader_open(plan->run.series.items[frame].source, &options, &reader, error));
    PS_GO(ps_reader_mask(reader, mask, &present, error));
    for (int64_t p = 0; present && p < plan->run.detector_rows * plan->run.detector_columns; p++) given[p] |= mask[p] != 0;
done:
    ps_reader_close(reader);
    return code;
}

/* Recordings are dealt out; the job's mask file is the first rank's. */
static ps_code collect_masks(const ps_cluster *cluster, const ps_histogram_plan *plan, uint8_t *given, ps_error *error) {
    ps_code code = PS_OK;
    int64_t rows = plan->run.detector_rows, columns = plan->run.detector_columns;
    uint8_t *mask = malloc((size_t)(rows * columns));
    PS_GO_ALLOC(error, mask);
    for (int64_t i = cluster->rank; plan->job->series.mask_from_file && i < plan->n_usable; i += cluster->n_ranks)
        PS_GO(add_file_mask(plan, plan->usable[i], mask, given, error));
    if (cluster->rank != 0 || !plan->job->series.mask_file) goto done;
    PS_GO(ps_mask_load(plan->job->series.mask_file, rows, columns, mask, error));
    for (int64_t p = 0; p < rows * columns; p++) given[p] |= mask[p] != 0;
done:
    free(mask);
    return code;
}

ps_code ps_histogram_given_mask(const ps_cluster *cluster, const ps_histogram_plan *plan, uint8_t *given, ps_error *error) {
    int64_t n = plan->run.detector_rows * plan->run.detector_columns;
    memset(given, 0, (size_t)n);
    PS_TRY(ps_cluster_agree(cluster, collect_masks(cluster, plan, given, error), error));
    return PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, given, (int)n, MPI_UINT8_T, MPI_BOR, cluster->communicator));
}
