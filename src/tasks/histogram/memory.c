#include "tasks/histogram/memory.h"

#include "tasks/histogram/reduce.h"

enum { N_MAPS = 11, N_MOMENTS = 8, READ_BYTES = 16 << 20, PINNED_BYTES = 96 << 20 };

static ps_code build_map(const ps_histogram_plan *plan, ps_histogram_map *map, ps_error *error) {
    const ps_job_histogram *job = plan->wanted;
    const double stand_in[2] = {0, (double)job->n_bins};
    ps_code code = ps_histogram_map_build(plan->run.dtype, job->centre != PS_CENTRE_NONE, job->n_bins,
                                          job->automatic_range ? stand_in : job->range, map, error);
    return code == PS_E_ARGUMENT ? PS_E_JOB : code;
}

/* As counting opens its bands: half the rows until they fit. */
static ps_code choose_rows(const ps_histogram_plan *plan, const ps_histogram_ops *ops, const ps_histogram_map *map, size_t budget,
                           ps_histogram_memory *memory, ps_histogram_desc *desc, ps_error *error) {
    int64_t most = PS_HISTOGRAM_MAX_PIXELS / plan->columns;
    memory->rows_at_once = plan->rows < most ? plan->rows : most;
    for (;; memory->rows_at_once = (memory->rows_at_once + 1) / 2) {
        desc->n_pixels = memory->rows_at_once * plan->columns;
        memory->counter_bytes = ps_histogram_minimum_bytes(ops, desc, map);
        if (!budget || memory->counter_bytes <= budget) return PS_OK;
        if (memory->rows_at_once <= 1)
            return PS_FAIL(error, PS_E_JOB, "%s: a single row of %lld pixels with %lld bins needs %.3f GiB, %s is %.3f GiB",
                           plan->job->memory_budget_GiB > 0 ? "/compute/memory_budget_GiB" : "/histogram/bins", (long long)plan->columns,
                           (long long)map->n_bins, (double)memory->counter_bytes / (1 << 30),
                           plan->job->memory_budget_GiB > 0 ? "the budget" : "what this machine leaves for them",
                           (double)budget / (1 << 30));
    }
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Sampling is over before counting begins. */
static size_t beside(const ps_histogram_plan *plan, const ps_histogram_desc *desc, const ps_histogram_map *map, bool on_device) {
    size_t n = (size_t)plan->n_pixels, band = (size_t)desc->n_pixels, bins = (size_t)map->n_bins;
    size_t detector = (size_t)(plan->run.detector_rows * plan->run.detector_columns), element = ps_dtype_bytes(plan->run.dtype);
    size_t row = bins * sizeof(uint64_t), whole = PS_REDUCE_BLOCK_BYTES > row ? (size_t)PS_REDUCE_BLOCK_BYTES / row * row : row;
    size_t block = smaller(whole, band * row), frame = detector * element;
    size_t counting = band * N_MOMENTS * sizeof(uint64_t) + 2 * block + (frame > READ_BYTES ? frame : READ_BYTES);
    bool medians = plan->wanted->centre == PS_CENTRE_MEDIAN;
    int64_t kept = !medians ? 1 : plan->wanted->sample < plan->n_positions ? plan->wanted->sample : plan->n_positions;
    size_t sampling = (size_t)kept * n * element + (medians ? n * 3 * sizeof(uint64_t) : 0);
    size_t always = n * N_MAPS * sizeof(uint64_t) + row + detector * (sizeof(uint8_t) + sizeof(uint32_t)) +
                    (map->centred ? n * sizeof(double) : 0) + (on_device ? PINNED_BYTES : 0);
    return always + (sampling > counting ? sampling : counting);
}

ps_code ps_histogram_memory_plan(const ps_histogram_plan *plan, const ps_histogram_ops *ops, size_t budget_bytes,
                                 ps_histogram_memory *memory, ps_error *error) {
    ps_code code = PS_OK;
    ps_histogram_map map = {0};
    /* the centres' numbers do not matter here, only that there are some */
    ps_histogram_desc desc = {.n_segments = plan->run.series.n_items, .centre = NULL};
    static const double some_centre;
    *memory = (ps_histogram_memory){.on_device = ops->on_device};
    if (plan->wanted->centre != PS_CENTRE_NONE) desc.centre = &some_centre;
    PS_GO(build_map(plan, &map, error));
    PS_GO(choose_rows(plan, ops, &map, budget_bytes, memory, &desc, error));
    if (!memory->on_device) {
        memory->frame_bytes = ps_histogram_frame_bytes(ops, &desc, &map);
        if (budget_bytes) memory->frame_bytes = smaller(memory->frame_bytes, budget_bytes - memory->counter_bytes);
    }
    memory->host_bytes = beside(plan, &desc, &map, memory->on_device);
done:
    ps_histogram_map_free(&map);
    return code;
}
