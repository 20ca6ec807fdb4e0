/* The CPU histogram backends: memory, spilling, reading out. How they count is in histogram_reference.c and histogram_fast.c. */
#include <assert.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/log.h"
#include "kernels/cpu/histogram_cpu.h"

enum { DEFAULT_BUFFER_BYTES = 1 << 28, LEAST_BATCH = 16, MOST_BATCH = 4096, ALIGNMENT = 1 << 21 };

static size_t frame_bytes(const ps_histogram_desc *desc, const ps_histogram_map *map) {
    return (size_t)desc->n_pixels * ps_dtype_bytes(map->dtype);
}

static size_t resident_bytes(const ps_histogram_desc *desc, const ps_histogram_map *map) {
    size_t slots = (size_t)map->n_bins + PS_EXTRA_SLOTS, n = (size_t)desc->n_pixels;
    return n * (slots * sizeof(uint32_t) + sizeof(ps_cpu_pixel) + (desc->centre ? sizeof(double) : 0)) +
           (size_t)desc->n_segments * sizeof(ps_int128);
}

static size_t minimum_bytes(const ps_histogram_desc *desc, const ps_histogram_map *map) {
    return resident_bytes(desc, map) + frame_bytes(desc, map);
}

/* Patterns in the buffer where nothing limits it. */
static int64_t wanted_capacity(const ps_histogram_desc *desc, size_t frame) {
    int64_t capacity = DEFAULT_BUFFER_BYTES / (int64_t)frame;
    if (capacity < LEAST_BATCH) capacity = LEAST_BATCH;
    if (capacity > MOST_BATCH) capacity = MOST_BATCH;
    return desc->frames_per_batch ? desc->frames_per_batch : capacity;
}

static size_t buffer_bytes(const ps_histogram_desc *desc, const ps_histogram_map *map) {
    size_t frame = frame_bytes(desc, map);
    return (size_t)wanted_capacity(desc, frame) * frame;
}

static ps_code choose_capacity(ps_cpu_histogram *h, ps_error *error) {
    const ps_histogram_desc *desc = &h->desc;
    size_t frame = frame_bytes(desc, h->map), resident = resident_bytes(desc, h->map), budget = desc->memory_budget_bytes;
    if (budget && budget < resident + frame)
        return PS_FAIL(error, PS_E_MEMORY, "histogram: %lld pixels with %lld bins need %.3f GiB, the budget is %.3f GiB",
                       (long long)desc->n_pixels, (long long)h->map->n_bins, (double)(resident + frame) / (1 << 30),
                       (double)budget / (1 << 30));
    int64_t capacity = wanted_capacity(desc, frame);
    if (budget && (size_t)capacity > (budget - resident) / frame) capacity = (int64_t)((budget - resident) / frame);
    h->capacity = capacity;
    return PS_OK;
}

/* In huge pages where the system has them: a pixel's values lie a pattern apart, its counters far from its neighbour's, and each would need
 * its own entry of the translation buffer. */
static void *allocate_large(size_t bytes) {
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *buffer = rounded > ALIGNMENT ? aligned_alloc(ALIGNMENT, rounded) : malloc(bytes);
    if (buffer && rounded > ALIGNMENT) madvise(buffer, rounded, MADV_HUGEPAGE);
    return buffer;
}

static void destroy(ps_histogram *histogram) {
    ps_cpu_histogram *h = (ps_cpu_histogram *)histogram;
    if (!h) return; /* one that could not be made */
    free(h->centre);
    free(h->counts);
    free(h->spilled);
    free(h->pixels);
    free(h->totals);
    free(h->buffer);
    free(h);
}

static ps_code copy_centre(ps_cpu_histogram *h, ps_error *error) {
    if (!h->desc.centre) return PS_OK;
    size_t bytes = (size_t)h->desc.n_pixels * sizeof *h->centre;
    h->centre = malloc(bytes);
    if (!h->centre) return PS_FAIL(error, PS_E_MEMORY, "histogram: cannot allocate %zu bytes for the centres", bytes);
    memcpy(h->centre, h->desc.centre, bytes);
    h->desc.centre = h->centre;
    return PS_OK;
}

static ps_code create(ps_cpu_count count, int n_threads, const ps_histogram_desc *desc, const ps_histogram_map *map,
                      ps_histogram **histogram, ps_error *error) {
    ps_code code = PS_OK;
    size_t n = (size_t)desc->n_pixels;
    ps_cpu_histogram *h = calloc(1, sizeof *h);
    PS_GO_ALLOC(error, h);
    *h = (ps_cpu_histogram){.count = count, .n_threads = n_threads, .desc = *desc, .map = map, .n_slots = map->n_bins + PS_EXTRA_SLOTS};
    h->spill_frames = desc->spill_frames > 0 ? desc->spill_frames : UINT32_MAX;
    PS_GO(choose_capacity(h, error));
    PS_GO(copy_centre(h, error));
    h->counts = allocate_large(n * (size_t)h->n_slots * sizeof *h->counts);
    PS_GO_ALLOC(error, h->counts);
    memset(h->counts, 0, n * (size_t)h->n_slots * sizeof *h->counts);
    h->pixels = calloc(n, sizeof *h->pixels);
    PS_GO_ALLOC(error, h->pixels);
    for (size_t p = 0; p < n; p++) h->pixels[p].minimum = INFINITY, h->pixels[p].maximum = -INFINITY;
    h->totals = calloc((size_t)desc->n_segments, sizeof *h->totals);
    PS_GO_ALLOC(error, h->totals);
    h->buffer = allocate_large((size_t)h->capacity * frame_bytes(desc, map));
    PS_GO_ALLOC(error, h->buffer);
    *histogram = &h->base;
    h = NULL;
done:
    destroy((ps_histogram *)h);
    return code;
}

static ps_code create_reference(const ps_histogram_desc *desc, const ps_histogram_map *map, ps_histogram **histogram, ps_error *error) {
    return create(ps_cpu_histogram_count_reference, 1, desc, map, histogram, error);
}

static ps_code create_fast(const ps_histogram_desc *desc, const ps_histogram_map *map, ps_histogram **histogram, ps_error *error) {
    int n_threads = desc->n_threads > 0 ? desc->n_threads : omp_get_max_threads();
    return create(ps_cpu_histogram_count_fast, n_threads, desc, map, histogram, error);
}

static ps_code stage(ps_histogram *histogram, void **frames, int64_t *capacity, ps_error *error) {
    (void)error;
    ps_cpu_histogram *h = (ps_cpu_histogram *)histogram;
    *frames = h->buffer;
    *capacity = h->capacity;
    return PS_OK;
}

static ps_code spill(ps_cpu_histogram *h, ps_error *error) {
    size_t n = (size_t)h->desc.n_pixels * (size_t)h->n_slots;
    if (!h->spilled) h->spilled = calloc(n, sizeof *h->spilled);
    if (!h->spilled)
        return PS_FAIL(error, PS_E_MEMORY, "histogram: cannot allocate %.3f GiB for 64-bit counts",
                       (double)(n * sizeof *h->spilled) / (1 << 30));
    for (size_t i = 0; i < n; i++) h->spilled[i] += h->counts[i];
    memset(h->counts, 0, n * sizeof *h->counts);
    h->since_spill = 0;
    return PS_OK;
}

static ps_code commit(ps_histogram *histogram, int64_t n_frames, int64_t segment, ps_error *error) {
    ps_cpu_histogram *h = (ps_cpu_histogram *)histogram;
    assert(n_frames >= 0 && n_frames <= h->capacity && segment >= 0 && segment < h->desc.n_segments);
    if (h->since_spill > 0 && h->since_spill + n_frames > h->spill_frames) PS_TRY(spill(h, error));
    double begin = ps_seconds();
    h->totals[segment] += h->count(h, h->buffer, n_frames);
    h->since_spill += n_frames;
    h->times.fill_s += ps_seconds() - begin;
    h->times.n_frames += n_frames;
    h->times.n_batches++;
    return PS_OK;
}

static ps_code read_counts(ps_histogram *histogram, int64_t first_pixel, int64_t n_pixels, uint64_t *counts, uint64_t *outside,
                           ps_error *error) {
    (void)error;
    const ps_cpu_histogram *h = (const ps_cpu_histogram *)histogram;
    int64_t n_bins = h->map->n_bins;
    assert(first_pixel >= 0 && n_pixels >= 0 && first_pixel <= h->desc.n_pixels - n_pixels);
    for (int64_t p = 0; p < n_pixels; p++)
        for (int64_t s = 0; s < h->n_slots; s++) {
            int64_t at = (first_pixel + p) * h->n_slots + s;
            uint64_t count = h->counts[at] + (h->spilled ? h->spilled[at] : 0);
            if (s < n_bins && counts) counts[p * n_bins + s] = count;
            if (s >= n_bins && outside) outside[p * PS_EXTRA_SLOTS + s - n_bins] = count;
        }
    return PS_OK;
}

static ps_code read_moments(ps_histogram *histogram, const ps_histogram_moments *moments, ps_error *error) {
    (void)error;
    const ps_cpu_histogram *h = (const ps_cpu_histogram *)histogram;
    for (int64_t p = 0; p < h->desc.n_pixels; p++) {
        const ps_cpu_pixel *pixel = &h->pixels[p];
        moments->n_saturated[p] = pixel->n_saturated;
        moments->sum_low[p] = (uint32_t)pixel->sum;
        moments->sum_high[p] = (int64_t)(pixel->sum >> 32);
        moments->square[0][p] = (uint32_t)pixel->square;
        moments->square[1][p] = (uint32_t)(pixel->square >> 32);
        moments->square[2][p] = (uint64_t)(pixel->square >> 64);
        moments->minimum[p] = pixel->minimum + 0.0;
        moments->maximum[p] = pixel->maximum + 0.0;
    }
    return PS_OK;
}

static ps_code read_totals(ps_histogram *histogram, uint64_t *low, int64_t *high, ps_error *error) {
    (void)error;
    const ps_cpu_histogram *h = (const ps_cpu_histogram *)histogram;
    for (int64_t s = 0; s < h->desc.n_segments; s++) {
        low[s] = (uint32_t)h->totals[s];
        high[s] = (int64_t)(h->totals[s] >> 32);
    }
    return PS_OK;
}

static void get_times(const ps_histogram *histogram, ps_histogram_times *times) {
    *times = ((const ps_cpu_histogram *)histogram)->times;
}

static void get_device(const ps_histogram *histogram, char *name, size_t bytes) {
    int n_threads = ((const ps_cpu_histogram *)histogram)->n_threads;
    snprintf(name, bytes, "CPU, %d thread%s", n_threads, n_threads == 1 ? "" : "s");
}

/* The two tables differ in how they count. */
#define TABLE(path, text)                              \
    const ps_histogram_ops ps_histogram_cpu_##path = { \
        .name = text,                                  \
        .minimum_bytes = minimum_bytes,                \
        .create = create_##path,                       \
        .destroy = destroy,                            \
        .stage = stage,                                \
        .commit = commit,                              \
        .read = read_counts,                           \
        .moments = read_moments,                       \
        .totals = read_totals,                         \
        .times = get_times,                            \
        .device = get_device,                          \
        .frame_bytes = buffer_bytes,                   \
    }
TABLE(reference, "cpu-reference");
TABLE(fast, "cpu-fast");
