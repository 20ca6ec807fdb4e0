#include "tasks/histogram/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "tasks/histogram/pedestal.h"
#include "tasks/histogram/positions.h"

/* Sampled patterns of this rank. */
typedef struct {
    const ps_cluster *cluster;
    const ps_histogram_plan *plan;
    void *values; /* [n_kept, n_pixels]; only one pattern at a time when medians are not asked for */
    int64_t n_kept;
    uint8_t *used; /* [n_pixels] 1: counts for the range */
    double low, high;
} sampler;

static bool is_float(ps_dtype dtype) {
    return dtype == PS_F32 || dtype == PS_F64;
}

static size_t frame_bytes(const ps_histogram_plan *plan) {
    return (size_t)plan->n_pixels * ps_dtype_bytes(plan->run.dtype);
}

static double value_at(ps_dtype dtype, const void *values, int64_t at) {
    switch (dtype) {
#define X(d, type, name) \
    case d: return (double)((const type *)values)[at];
        PS_DTYPES(X)
#undef X
    default: return 0;
    }
}

/* ---- medians -------------------------------------------------------------------------------------------------------------------- */

/* An unsigned number that orders as the values of dtype do. Keys are found bit by bit: the lower median is the largest key that at most
 * (n - 1) / 2 values lie below, which takes one count per bit and pixel and no sorting across ranks. */
static uint64_t key_at(ps_dtype dtype, const void *values, int64_t at) {
    switch (dtype) {
    case PS_U8: return ((const uint8_t *)values)[at];
    case PS_U16: return ((const uint16_t *)values)[at];
    case PS_U32: return ((const uint32_t *)values)[at];
    case PS_I8: return (uint8_t)((const uint8_t *)values)[at] ^ 0x80u;
    case PS_I16: return ((const uint16_t *)values)[at] ^ 0x8000u;
    case PS_I32: return ((const uint32_t *)values)[at] ^ 0x80000000u;
    case PS_F32: {
        uint32_t bits = ((const uint32_t *)values)[at];
        return bits >> 31 ? ~bits : bits | 0x80000000u;
    }
    default: {
        uint64_t bits = ((const uint64_t *)values)[at];
        return bits >> 63 ? ~bits : bits | (1ull << 63);
    }
    }
}

static double value_of_key(ps_dtype dtype, uint64_t key) {
    uint32_t narrow = (uint32_t)key;
    float single;
    double value;
    switch (dtype) {
    case PS_I8: return (double)(int8_t)(uint8_t)(key ^ 0x80u);
    case PS_I16: return (double)(int16_t)(uint16_t)(key ^ 0x8000u);
    case PS_I32: return (double)(int32_t)(narrow ^ 0x80000000u);
    case PS_F32:
        narrow = narrow >> 31 ? narrow & 0x7fffffffu : ~narrow;
        memcpy(&single, &narrow, sizeof single);
        return single;
    case PS_F64:
        key = key >> 63 ? key & ~(1ull << 63) : ~key;
        memcpy(&value, &key, sizeof value);
        return value;
    default: return (double)key;
    }
}

/* How many of this rank's finite values lie below each pixel's candidate; candidates NULL: how many there are. */
static void count_below(const sampler *s, const uint64_t *candidates, int32_t *counts) {
    ps_dtype dtype = s->plan->run.dtype;
    int64_t n = s->plan->n_pixels;
    memset(counts, 0, (size_t)n * sizeof *counts);
    for (int64_t f = 0; f < s->n_kept; f++) {
        const void *frame = (const char *)s->values + (size_t)f * frame_bytes(s->plan);
#pragma omp parallel for schedule(static)
        for (int64_t p = 0; p < n; p++) {
            if (is_float(dtype) && !isfinite(value_at(dtype, frame, p))) continue;
            counts[p] += !candidates || key_at(dtype, frame, p) < candidates[p];
        }
    }
}

static ps_code sum_counts(const sampler *s, int32_t *counts, ps_error *error) {
    return PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, counts, (int)s->plan->n_pixels, MPI_INT32_T, MPI_SUM, s->cluster->communicator));
}

/* Collective. medians: [n_pixels]; 0 for a pixel without a finite value. */
static ps_code find_medians(const sampler *s, double *medians, ps_error *error) {
    ps_code code = PS_OK;
    size_t n = (size_t)s->plan->n_pixels;
    uint64_t *found = calloc(n, sizeof *found), *candidates = malloc(n * sizeof *candidates);
    int32_t *total = malloc(n * sizeof *total), *below = malloc(n * sizeof *below);
    if (!found || !candidates || !total || !below) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate medians of %zu pixels", n);
    PS_GO(ps_cluster_agree(s->cluster, code, error));
    count_below(s, NULL, total);
    PS_GO(sum_counts(s, total, error));
    for (int bit = 8 * (int)ps_dtype_bytes(s->plan->run.dtype) - 1; bit >= 0; bit--) {
        for (size_t p = 0; p < n; p++) candidates[p] = found[p] | 1ull << bit;
        count_below(s, candidates, below);
        PS_GO(sum_counts(s, below, error));
        for (size_t p = 0; p < n; p++)
            if (below[p] <= (total[p] - 1) / 2) found[p] = candidates[p];
    }
    for (size_t p = 0; p < n; p++) medians[p] = total[p] > 0 ? value_of_key(s->plan->run.dtype, found[p]) : 0;
done:
    free(found);
    free(candidates);
    free(total);
    free(below);
    return code;
}

/* ---- the range ------------------------------------------------------------------------------------------------------------------- */

static void widen_range(sampler *s, const void *frame, const double *centre) {
    ps_dtype dtype = s->plan->run.dtype;
    for (int64_t p = 0; p < s->plan->n_pixels; p++) {
        double raw = value_at(dtype, frame, p), value = raw - (centre ? centre[p] : 0);
        if (dtype == PS_F32) value = (double)(float)((float)raw - (centre ? (float)centre[p] : 0));
        if (!s->used[p] || !isfinite(value) || raw >= s->plan->saturation) continue;
        if (value < s->low) s->low = value;
        if (value > s->high) s->high = value;
    }
}

void ps_automatic_range(ps_dtype dtype, int64_t n_bins, double low, double high, double range[2]) {
    range[0] = low;
    range[1] = is_float(dtype) ? high : low + ceil((high - low + 1) / (double)n_bins) * (double)n_bins;
    if (low == high && is_float(dtype)) range[0] = low - 0.5, range[1] = high + 0.5;
}

static ps_code agree_on_range(sampler *s, double range[2], ps_error *error) {
    double ends[2] = {-s->low, s->high};
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_DOUBLE, MPI_MAX, s->cluster->communicator)));
    if (!isfinite(ends[0]))
        return PS_FAIL(error, PS_E_INPUT,
                       "/histogram/range: auto found no finite value below saturation in the sampled patterns; give the range");
    ps_automatic_range(s->plan->run.dtype, s->plan->wanted->n_bins, -ends[0] + 0.0, ends[1], range);
    return PS_OK;
}

/* ---- sampling --------------------------------------------------------------------------------------------------------------------- */

/* Reads this rank's part of the sample; keeps it, or only widens the range. */
static ps_code read_sample(sampler *s, bool keep, int64_t n_sampled, const double *centre, ps_error *error) {
    ps_positions positions;
    int64_t begin, end, n_read, frame;
    ps_share(n_sampled, s->cluster->rank, s->cluster->n_ranks, &begin, &end);
    ps_code code = ps_positions_create(s->plan, &positions, error);
    for (int64_t i = begin; code == PS_OK && i < end; i++) {
        int64_t n = s->plan->n_positions, g = i * (n / n_sampled) + i * (n % n_sampled) / n_sampled;
        ps_error reason = {0};
        void *into = (char *)s->values + (keep ? (size_t)s->n_kept * frame_bytes(s->plan) : 0);
        if (ps_positions_read(&positions, g, 1, 0, s->plan->rows, into, &n_read, &frame, &reason) != PS_OK) {
            ps_log(PS_LOG_WARNING, "left out of the sample: frame %lld (%s): %s", (long long)frame, s->plan->run.series.items[frame].source,
                   reason.text);
            continue;
        }
        if (keep)
            s->n_kept++;
        else
            widen_range(s, into, centre);
    }
    ps_positions_free(&positions);
    return code;
}

static ps_code allocate(sampler *s, const uint8_t *given, bool keep, int64_t n_sampled, size_t budget_bytes, ps_error *error) {
    const ps_histogram_plan *plan = s->plan;
    int64_t begin, end;
    ps_share(n_sampled, s->cluster->rank, s->cluster->n_ranks, &begin, &end);
    size_t n = keep ? (size_t)(end - begin) : 1, bytes = (n ? n : 1) * frame_bytes(plan);
    if (budget_bytes && bytes > budget_bytes)
        return PS_FAIL(error, PS_E_MEMORY,
                       "/histogram/sample: medians of %lld patterns need %.3f GiB on this rank, %.3f GiB are there; use "
                       "a smaller sample or more ranks",
                       (long long)n_sampled, (double)bytes / (1 << 30), (double)budget_bytes / (1 << 30));
    s->values = malloc(bytes);
    s->used = malloc((size_t)plan->n_pixels);
    if (!s->values || !s->used) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate %zu bytes for a sample", bytes);
    for (int64_t p = 0; p < plan->n_pixels; p++) {
        int64_t row = plan->first_row + p / plan->columns, column = plan->first_column + p % plan->columns;
        s->used[p] = !given[row * plan->run.detector_columns + column];
    }
    return PS_OK;
}

/* The pedestal file's values of the region, whole numbers for integer input. */
static ps_code load_centre(const ps_histogram_plan *plan, double *centre, ps_error *error) {
    ps_code code = PS_OK;
    int64_t columns = plan->run.detector_columns;
    double *all = malloc((size_t)(plan->run.detector_rows * columns) * sizeof *all);
    PS_GO_ALLOC(error, all);
    PS_GO(ps_pedestal_load(plan->wanted->centre_file, plan->run.detector_rows, columns, all, error));
    for (int64_t p = 0; p < plan->n_pixels; p++) {
        double value = all[(plan->first_row + p / plan->columns) * columns + plan->first_column + p % plan->columns];
        centre[p] = is_float(plan->run.dtype) ? value : rint(value);
    }
done:
    free(all);
    return code;
}

static ps_code prepare_centre(const ps_histogram_plan *plan, ps_sample *sample, ps_error *error) {
    ps_histogram_centre centre = plan->wanted->centre;
    if (centre == PS_CENTRE_NONE) return PS_OK;
    sample->centre = calloc((size_t)plan->n_pixels, sizeof *sample->centre);
    if (!sample->centre) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate the centres of %lld pixels", (long long)plan->n_pixels);
    return centre == PS_CENTRE_FILE ? load_centre(plan, sample->centre, error) : PS_OK;
}

ps_code ps_sample_take(const ps_cluster *cluster, const ps_histogram_plan *plan, const uint8_t *given, size_t budget_bytes,
                       ps_sample *sample, ps_error *error) {
    const ps_job_histogram *job = plan->wanted;
    bool medians = job->centre == PS_CENTRE_MEDIAN;
    ps_code code = PS_OK;
    sampler s = {.cluster = cluster, .plan = plan, .low = INFINITY, .high = -INFINITY};
    *sample = (ps_sample){.range = {job->range[0], job->range[1]}};
    PS_GO(ps_cluster_agree(cluster, prepare_centre(plan, sample, error), error));
    if (!medians && !job->automatic_range) return PS_OK;
    sample->n_sampled = job->sample < plan->n_positions ? job->sample : plan->n_positions;
    code = allocate(&s, given, medians, sample->n_sampled, budget_bytes, error);
    if (code == PS_OK) code = read_sample(&s, medians, sample->n_sampled, sample->centre, error);
    PS_GO(ps_cluster_agree(cluster, code, error));
    if (medians) PS_GO(find_medians(&s, sample->centre, error));
    for (int64_t f = 0; medians && f < s.n_kept; f++)
        widen_range(&s, (const char *)s.values + (size_t)f * frame_bytes(plan), sample->centre);
    if (job->automatic_range) PS_GO(agree_on_range(&s, sample->range, error));
done:
    free(s.values);
    free(s.used);
    if (code != PS_OK) ps_sample_free(sample);
    return code;
}

void ps_sample_free(ps_sample *sample) {
    free(sample->centre);
    *sample = (ps_sample){0};
}
