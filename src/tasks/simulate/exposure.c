#include "tasks/simulate/exposure.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>

#include "tasks/simulate/poisson.h"
#include "tasks/simulate/scatter.h"

/* The first count, by pixel, that is too large for its type. */
typedef struct {
    int64_t pixel, position; /* pixel -1: none */
    uint32_t count;
} overflow;

typedef struct {
    const ps_simulate_setup *setup;
    int64_t frame;
    ps_scatter *scatter;
    double *k_row, *k_column; /* [n_pixels] */
    float *intensity;         /* [n_threads, n_positions] */
    uint32_t *drawn;          /* [n_threads, n_positions] */
    void *counts;             /* [pixels_per_group, n_positions] of the dtype */
} exposure;

/* Numbers to the nearest integer. */
static void round_means(const float *mean, int64_t n, uint32_t *counts) {
    for (int64_t i = 0; i < n; i++) counts[i] = mean[i] < 4294967040.0f ? (uint32_t)(mean[i] + 0.5f) : UINT32_MAX;
}

/* Narrows counts to the dtype. Returns the first position whose count reaches the type's largest value, which is its invalid-count value;
 * or -1. */
static int64_t narrow(const uint32_t *drawn, int64_t n, ps_dtype dtype, void *counts) {
    uint32_t largest = 0, invalid_value = ps_dtype_invalid_value(dtype);
    for (int64_t i = 0; i < n; i++) largest = drawn[i] > largest ? drawn[i] : largest;
    switch (dtype) {
    case PS_U8:
        for (int64_t i = 0; i < n; i++) ((uint8_t *)counts)[i] = (uint8_t)drawn[i];
        break;
    case PS_U16:
        for (int64_t i = 0; i < n; i++) ((uint16_t *)counts)[i] = (uint16_t)drawn[i];
        break;
    default:
        for (int64_t i = 0; i < n; i++) ((uint32_t *)counts)[i] = drawn[i];
    }
    if (largest < invalid_value) return -1;
    int64_t first = 0;
    while (drawn[first] < invalid_value) first++;
    return first;
}

/* All positions of one pixel. */
static overflow expose_pixel(const exposure *e, int thread, int64_t pixel, void *counts) {
    const ps_simulate_setup *setup = e->setup;
    int64_t n = setup->n_positions;
    float *mean = e->intensity + thread * n, scale = (float)setup->counts_per_unit;
    uint32_t *drawn = e->drawn + thread * n;
    ps_scatter_pixel(e->scatter, thread, e->k_row[pixel], e->k_column[pixel], mean);
    for (int64_t i = 0; i < n; i++) mean[i] *= scale;
    if (setup->job->dose_per_position > 0.0)
        ps_poisson_draw(&(ps_noise_source){setup->job->seed, (uint32_t)e->frame, (uint32_t)pixel}, n, mean, drawn);
    else
        round_means(mean, n, drawn);
    int64_t position = narrow(drawn, n, setup->job->dtype, counts);
    return (overflow){position < 0 ? -1 : pixel, position, position < 0 ? 0 : drawn[position]};
}

static ps_code report_overflow(const exposure *e, const overflow *at, ps_error *error) {
    const ps_job_simulate *job = e->setup->job;
    return PS_FAIL(error, PS_E_JOB,
                   "/simulate/dtype: frame %" PRId64 ", scan position (%" PRId64 ", %" PRId64 "), detector pixel (%" PRId64 ", %" PRId64
                   ") has %s%" PRIu32 " counts, but %s holds at most %" PRIu32 ": choose a wider dtype or a lower dose_per_position",
                   e->frame, at->position / job->scan_columns, at->position % job->scan_columns, at->pixel / job->detector_columns,
                   at->pixel % job->detector_columns, at->count == UINT32_MAX ? "at least " : "", at->count, ps_dtype_name(job->dtype),
                   ps_dtype_invalid_value(job->dtype) - 1);
}

static ps_code expose_group(const exposure *e, int64_t first, int64_t n_pixels, ps_error *error) {
    size_t row_bytes = (size_t)e->setup->n_positions * ps_dtype_bytes(e->setup->job->dtype);
    overflow worst = {.pixel = -1};
#pragma omp parallel for schedule(dynamic) num_threads(e->setup->n_threads)
    for (int64_t i = 0; i < n_pixels; i++) {
        overflow found = expose_pixel(e, omp_get_thread_num(), first + i, (uint8_t *)e->counts + (size_t)i * row_bytes);
        if (found.pixel < 0) continue;
#pragma omp critical(ps_exposure_overflow)
        if (worst.pixel < 0 || found.pixel < worst.pixel) worst = found;
    }
    return worst.pixel < 0 ? PS_OK : report_overflow(e, &worst, error);
}

static ps_code prepare(exposure *e, const ps_specimen *specimen, ps_error *error) {
    ps_code code = PS_OK;
    const ps_simulate_setup *setup = e->setup;
    const ps_job_simulate *job = setup->job;
    ps_optics optics = ps_simulate_frame_optics(setup, e->frame);
    ps_probe probe;
    ps_optics_probe(&optics, &probe);
    size_t per_thread = (size_t)(setup->n_threads * setup->n_positions),
           row_bytes = (size_t)setup->n_positions * ps_dtype_bytes(job->dtype);
    e->k_row = malloc((size_t)setup->n_pixels * sizeof *e->k_row);
    e->k_column = malloc((size_t)setup->n_pixels * sizeof *e->k_column);
    e->intensity = malloc(per_thread * sizeof *e->intensity);
    e->drawn = malloc(per_thread * sizeof *e->drawn);
    e->counts = malloc((size_t)setup->memory.pixels_per_group * row_bytes);
    PS_GO_ALLOC(error, e->k_row && e->k_column && e->intensity && e->drawn && e->counts);
    ps_optics_k(&optics, job->detector_rows, job->detector_columns, e->k_row, e->k_column);
    PS_GO(ps_scatter_create(&probe, specimen, job->scan_rows, job->scan_columns, setup->n_threads, &e->scatter, error));
done:
    return code;
}

static void release(exposure *e) {
    ps_scatter_destroy(e->scatter);
    free(e->k_row);
    free(e->k_column);
    free(e->intensity);
    free(e->drawn);
    free(e->counts);
}

ps_code ps_expose(const ps_simulate_setup *setup, const ps_specimen *specimen, int64_t frame, const char *directory,
                  const ps_simulate_watch *watch, ps_transpose **turning, ps_error *error) {
    ps_code code = PS_OK;
    exposure e = {.setup = setup, .frame = frame};
    ps_transpose *made = NULL;
    int64_t per_group = setup->memory.pixels_per_group, n_pixels = setup->n_pixels;
    const ps_transpose_shape shape = {
        setup->n_positions,     n_pixels, setup->memory.positions_per_block, per_group, ps_dtype_bytes(setup->job->dtype),
        setup->memory.in_memory};
    PS_GO(ps_transpose_create(directory, &shape, &made, error));
    PS_GO(prepare(&e, specimen, error));
    for (int64_t group = 0; group * per_group < n_pixels; group++) {
        int64_t first = group * per_group, n = n_pixels - first < per_group ? n_pixels - first : per_group;
        PS_GO(expose_group(&e, first, n, error));
        PS_GO(ps_transpose_put(made, group, e.counts, setup->n_threads, error));
        PS_GO(watch->tell(watch->context, (double)(first + n) / (double)n_pixels, error));
    }
    *turning = made;
    made = NULL;
done:
    ps_transpose_destroy(made);
    release(&e);
    return code;
}
