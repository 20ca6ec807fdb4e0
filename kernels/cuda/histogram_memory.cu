/* The CUDA histogram's memory: what it needs, how batches are fitted into a budget, and its life. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/histogram_state.cuh"

static const int64_t DEFAULT_BATCH = 8192;
static const size_t MOST_BATCH_BYTES = (size_t)6 << 30, STAGE_BYTES = (size_t)32 << 20, READ_BYTES = (size_t)32 << 20;

static int64_t round_up(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

static int64_t count_cells(const ps_histogram_map *map) {
    return map->cells == PS_CELLS_NONE ? map->n_bins + PS_EXTRA_SLOTS : map->n_cells;
}

static int64_t count_read_pixels(int64_t n_pixels, int64_t n_cells) {
    int64_t n = (int64_t)(READ_BYTES / sizeof(uint32_t)) / n_cells;
    return n < 1 ? 1 : n < n_pixels ? n : n_pixels;
}

/* Device bytes but for the patterns of batches. */
static size_t fixed_bytes(const ps_histogram_desc *desc, const ps_histogram_map *map) {
    size_t n_padded = (size_t)round_up(desc->n_pixels, PS_GROUP), n_cells = (size_t)count_cells(map);
    size_t cell_bytes = desc->kernel == PS_HISTOGRAM_SHARED ? sizeof(uint32_t) + sizeof(uint16_t) : sizeof(uint32_t);
    return n_padded *
               ((size_t)round_up((int64_t)n_cells, 8) * cell_bytes + PS_N_MOMENT_ARRAYS * sizeof(long long) + ps_dtype_bytes(map->dtype)) +
           (size_t)count_read_pixels(desc->n_pixels, (int64_t)n_cells) * n_cells * sizeof(uint32_t) +
           ((size_t)map->n_bins + 1) * (sizeof(double) + sizeof(float)) + (size_t)map->n_values * sizeof(uint32_t);
}

static size_t batch_frame_bytes(const ps_histogram_desc *desc, const ps_histogram_map *map) {
    return (size_t)round_up(desc->n_pixels, PS_GROUP) * ps_dtype_bytes(map->dtype) + sizeof(long long);
}

size_t ps_cuda_histogram_minimum_bytes(const ps_histogram_desc *desc, const ps_histogram_map *map) {
    return fixed_bytes(desc, map) + PS_N_BATCHES * batch_frame_bytes(desc, map);
}

static ps_code choose_device(const ps_histogram_desc *desc, ps_error *error) {
    int n = 0;
    cudaError_t status = cudaGetDeviceCount(&n);
    if (status != cudaSuccess || desc->device < 0 || desc->device >= n)
        return PS_FAIL(error, PS_E_BACKEND, "histogram: no CUDA device %d: %s", desc->device,
                       status != cudaSuccess ? cudaGetErrorString(status) : "there are fewer");
    PS_HISTOGRAM_CUDA(error, cudaSetDevice(desc->device));
    return PS_OK;
}

static ps_code choose_batches(ps_cuda_histogram *h, ps_error *error) {
    size_t available = h->desc.memory_budget_bytes, total, frame = batch_frame_bytes(&h->desc, h->map),
           fixed = fixed_bytes(&h->desc, h->map);
    if (!available) {
        PS_HISTOGRAM_CUDA(error, cudaMemGetInfo(&available, &total));
        available -= available / 16;
    }
    if (available < fixed + PS_N_BATCHES * frame)
        return PS_FAIL(error, PS_E_MEMORY, "histogram: %lld pixels with %lld bins need %.3f GiB on the device, %.3f GiB are there",
                       (long long)h->desc.n_pixels, (long long)h->map->n_bins, (double)(fixed + PS_N_BATCHES * frame) / (1 << 30),
                       (double)available / (1 << 30));
    int64_t fit = (int64_t)((available - fixed) / PS_N_BATCHES / frame), wanted = h->desc.frames_per_batch;
    if (!wanted) {
        wanted = (int64_t)(MOST_BATCH_BYTES / frame);
        wanted = wanted < 1 ? 1 : wanted < DEFAULT_BATCH ? wanted : DEFAULT_BATCH;
    }
    h->batch_frames = wanted < fit ? wanted : fit;
    int64_t stage = (int64_t)(STAGE_BYTES / (h->value_bytes * (size_t)h->desc.n_pixels));
    h->stage_frames = stage < 1 ? 1 : stage < h->batch_frames ? stage : h->batch_frames;
    return PS_OK;
}

static ps_code make_events(ps_cuda_histogram *h, ps_error *error) {
    PS_HISTOGRAM_CUDA(error, cudaStreamCreateWithFlags(&h->copy_stream, cudaStreamNonBlocking));
    PS_HISTOGRAM_CUDA(error, cudaStreamCreateWithFlags(&h->compute_stream, cudaStreamNonBlocking));
    for (int s = 0; s < PS_N_STAGES_PINNED; s++)
        for (int i = 0; i < 2; i++) {
            PS_HISTOGRAM_CUDA(error, cudaEventCreate(&h->stages[s].begin[i]));
            PS_HISTOGRAM_CUDA(error, cudaEventCreate(&h->stages[s].end[i]));
        }
    for (int b = 0; b < PS_N_BATCHES; b++) {
        PS_HISTOGRAM_CUDA(error, cudaEventCreate(&h->batches[b].copied));
        PS_HISTOGRAM_CUDA(error, cudaEventCreate(&h->batches[b].begin));
        PS_HISTOGRAM_CUDA(error, cudaEventCreate(&h->batches[b].filled));
        PS_HISTOGRAM_CUDA(error, cudaEventCreate(&h->batches[b].done));
    }
    PS_HISTOGRAM_CUDA(error, cudaEventCreate(&h->read_begin));
    PS_HISTOGRAM_CUDA(error, cudaEventCreate(&h->read_kernel));
    PS_HISTOGRAM_CUDA(error, cudaEventCreate(&h->read_end));
    return PS_OK;
}

static ps_code make_frames(ps_cuda_histogram *h, ps_error *error) {
    size_t batch_bytes = (size_t)h->batch_frames * (size_t)h->n_padded * h->value_bytes, n = (size_t)h->batch_frames;
    for (int s = 0; s < PS_N_STAGES_PINNED; s++)
        PS_HISTOGRAM_CUDA(error, cudaMallocHost(&h->stages[s].frames, (size_t)h->stage_frames * (size_t)h->desc.n_pixels * h->value_bytes));
    for (int b = 0; b < PS_N_BATCHES; b++) {
        ps_frame_batch *batch = &h->batches[b];
        PS_HISTOGRAM_CUDA(error, cudaMalloc(&batch->frames, batch_bytes));
        PS_HISTOGRAM_CUDA(error, cudaMemset(batch->frames, 0, batch_bytes)); /* padding stays zero */
        PS_HISTOGRAM_CUDA(error, cudaMalloc((void **)&batch->sums, n * sizeof *batch->sums));
        PS_HISTOGRAM_CUDA(error, cudaMallocHost((void **)&batch->host_sums, n * sizeof *batch->host_sums));
        batch->segments = (int64_t *)malloc(n * sizeof *batch->segments);
        if (!batch->segments) return PS_FAIL(error, PS_E_MEMORY, "histogram: cannot allocate the segments of a batch");
    }
    return PS_OK;
}

static ps_code make_counts(ps_cuda_histogram *h, ps_error *error) {
    size_t n = (size_t)h->n_padded, count_bytes = n * (size_t)h->cell_pitch * sizeof *h->counts, moment_bytes = n * sizeof(long long);
    size_t row_bytes = (size_t)h->read_pixels * (size_t)h->n_cells * sizeof *h->rows;
    PS_HISTOGRAM_CUDA(error, cudaMalloc((void **)&h->counts, count_bytes));
    PS_HISTOGRAM_CUDA(error, cudaMemset(h->counts, 0, count_bytes));
    if (h->desc.kernel == PS_HISTOGRAM_SHARED) {
        PS_HISTOGRAM_CUDA(error, cudaMalloc((void **)&h->packed, count_bytes / 2));
        PS_HISTOGRAM_CUDA(error, cudaMemset(h->packed, 0, count_bytes / 2));
    }
    PS_HISTOGRAM_CUDA(error, cudaMalloc((void **)&h->rows, row_bytes));
    PS_HISTOGRAM_CUDA(error, cudaMallocHost((void **)&h->host_rows, row_bytes));
    PS_HISTOGRAM_CUDA(error, cudaMalloc((void **)&h->moment_arrays, PS_N_MOMENT_ARRAYS * moment_bytes));
    PS_HISTOGRAM_CUDA(error, cudaMemset(h->moment_arrays, 0, PS_N_MOMENT_ARRAYS * moment_bytes));
    long long *extremes = (long long *)malloc(2 * moment_bytes);
    if (!extremes) return PS_FAIL(error, PS_E_MEMORY, "histogram: cannot allocate the extremes of %zu pixels", n);
    for (size_t p = 0; p < n; p++) extremes[p] = LLONG_MAX, extremes[n + p] = LLONG_MIN;
    cudaError_t status = cudaMemcpy(h->moment_arrays + 6 * n, extremes, 2 * moment_bytes, cudaMemcpyHostToDevice);
    free(extremes);
    PS_HISTOGRAM_CUDA(error, status);
    unsigned long long *arrays = (unsigned long long *)h->moment_arrays;
    h->moments.n_saturated = arrays, h->moments.sum_low = arrays + n, h->moments.sum_high = arrays + 2 * n;
    for (size_t limb = 0; limb < 3; limb++) h->moments.square[limb] = arrays + (3 + limb) * n;
    h->moments.minimum = h->moment_arrays + 6 * n, h->moments.maximum = h->moment_arrays + 7 * n;
    h->moments.saturation = h->desc.saturation;
    return PS_OK;
}

/* The table of small integers whose map has no formula: slots as cells. */
static ps_code make_table(ps_cuda_histogram *h, ps_error *error) {
    const ps_histogram_map *map = h->map;
    size_t bytes = (size_t)map->n_values * sizeof *h->table;
    uint32_t *cells = (uint32_t *)malloc(bytes), n = (uint32_t)map->n_bins;
    if (!cells) return PS_FAIL(error, PS_E_MEMORY, "histogram: cannot allocate the cell table");
    for (int64_t i = 0; i < map->n_values; i++)
        cells[i] = map->slots[i] == n + PS_SLOT_UNDERFLOW ? 0 : map->slots[i] == n + PS_SLOT_OVERFLOW ? n + 1 : map->slots[i] + 1;
    cudaError_t status = cudaMalloc((void **)&h->table, bytes);
    if (status == cudaSuccess) status = cudaMemcpy(h->table, cells, bytes, cudaMemcpyHostToDevice);
    free(cells);
    PS_HISTOGRAM_CUDA(error, status);
    return PS_OK;
}

static ps_code make_edges(ps_cuda_histogram *h, ps_error *error) {
    size_t n = (size_t)h->map->n_bins + 1;
    float *narrow = (float *)malloc(n * sizeof *narrow);
    if (!narrow) return PS_FAIL(error, PS_E_MEMORY, "histogram: cannot allocate %zu edges", n);
    for (size_t i = 0; i < n; i++) narrow[i] = (float)h->map->edges[i];
    cudaError_t status = cudaMalloc((void **)&h->edges_f32, n * sizeof *h->edges_f32);
    if (status == cudaSuccess) status = cudaMemcpy(h->edges_f32, narrow, n * sizeof *narrow, cudaMemcpyHostToDevice);
    free(narrow);
    PS_HISTOGRAM_CUDA(error, status);
    PS_HISTOGRAM_CUDA(error, cudaMalloc((void **)&h->edges, n * sizeof *h->edges));
    PS_HISTOGRAM_CUDA(error, cudaMemcpy(h->edges, h->map->edges, n * sizeof *h->edges, cudaMemcpyHostToDevice));
    return PS_OK;
}

static ps_code make_map(ps_cuda_histogram *h, ps_error *error) {
    const ps_histogram_map *map = h->map;
    if (map->slots && map->cells == PS_CELLS_NONE) PS_TRY(make_table(h, error));
    PS_TRY(make_edges(h, error));
    h->device_map.bias = map->cell_bias;
    h->device_map.last = map->cell_last;
    h->device_map.closed = map->cell_closed;
    h->device_map.multiplier = map->multiplier;
    h->device_map.addend = map->addend;
    h->device_map.table = h->table;
    h->device_map.first_value = (int32_t)map->first_value;
    h->device_map.n_bins = map->n_bins;
    h->device_map.edges = h->edges;
    h->device_map.edges_f32 = h->edges_f32;
    h->device_map.scale = map->scale;
    h->device_map.guess_error = map->guess_error;
    h->device_map.units = map->units;
    return PS_OK;
}

template <class T> static void convert_centre(const double *centre, int64_t n, void *converted) {
    for (int64_t p = 0; p < n; p++) ((T *)converted)[p] = (T)centre[p];
}

static ps_code make_centre(ps_cuda_histogram *h, const double *centre, ps_error *error) {
    if (!centre) return PS_OK;
    size_t bytes = (size_t)h->n_padded * h->value_bytes;
    void *converted = calloc(1, bytes);
    if (!converted) return PS_FAIL(error, PS_E_MEMORY, "histogram: cannot allocate %zu bytes for the centres", bytes);
    PS_HISTOGRAM_DISPATCH(h->map->dtype, convert_centre, centre, h->desc.n_pixels, converted);
    cudaError_t status = cudaMalloc(&h->centre, bytes);
    if (status == cudaSuccess) status = cudaMemcpy(h->centre, converted, bytes, cudaMemcpyHostToDevice);
    free(converted);
    PS_HISTOGRAM_CUDA(error, status);
    return PS_OK;
}

static ps_code make_all(ps_cuda_histogram *h, const double *centre, ps_error *error) {
    PS_TRY(choose_device(&h->desc, error));
    PS_TRY(choose_batches(h, error));
    PS_TRY(make_events(h, error));
    PS_TRY(make_frames(h, error));
    PS_TRY(make_counts(h, error));
    PS_TRY(make_map(h, error));
    PS_TRY(make_centre(h, centre, error));
    h->totals = (ps_int128 *)calloc((size_t)h->desc.n_segments, sizeof *h->totals);
    if (!h->totals)
        return PS_FAIL(error, PS_E_MEMORY, "histogram: cannot allocate the totals of %lld segments", (long long)h->desc.n_segments);
    PS_HISTOGRAM_CUDA(error, cudaDeviceSynchronize());
    return PS_OK;
}

ps_code ps_cuda_histogram_create(const ps_histogram_desc *desc, const ps_histogram_map *map, ps_histogram **histogram, ps_error *error) {
    ps_cuda_histogram *h = (ps_cuda_histogram *)calloc(1, sizeof *h);
    if (!h) return PS_FAIL(error, PS_E_MEMORY, "histogram: cannot allocate its state");
    h->desc = *desc;
    h->desc.centre = NULL;
    h->map = map;
    h->value_bytes = ps_dtype_bytes(map->dtype);
    h->n_padded = round_up(desc->n_pixels, PS_GROUP);
    h->n_cells = count_cells(map);
    h->cell_pitch = round_up(h->n_cells, 8);
    h->read_pixels = count_read_pixels(desc->n_pixels, h->n_cells);
    h->spill_frames = desc->spill_frames > 0 ? desc->spill_frames : UINT32_MAX;
    ps_code code = make_all(h, desc->centre, error);
    if (code == PS_OK)
        *histogram = &h->base;
    else
        ps_cuda_histogram_destroy(&h->base);
    return code;
}

static void destroy_event(cudaEvent_t event) {
    if (event) cudaEventDestroy(event);
}

static void destroy_frames(ps_cuda_histogram *h) {
    for (int s = 0; s < PS_N_STAGES_PINNED; s++) {
        cudaFreeHost(h->stages[s].frames);
        for (int i = 0; i < 2; i++) destroy_event(h->stages[s].begin[i]), destroy_event(h->stages[s].end[i]);
    }
    for (int b = 0; b < PS_N_BATCHES; b++) {
        ps_frame_batch *batch = &h->batches[b];
        cudaFree(batch->frames);
        cudaFree(batch->sums);
        cudaFreeHost(batch->host_sums);
        free(batch->segments);
        destroy_event(batch->copied), destroy_event(batch->begin), destroy_event(batch->filled), destroy_event(batch->done);
    }
}

void ps_cuda_histogram_destroy(ps_histogram *histogram) {
    ps_cuda_histogram *h = (ps_cuda_histogram *)histogram;
    if (!h) return;
    cudaSetDevice(h->desc.device);
    if (h->compute_stream) cudaStreamSynchronize(h->compute_stream);
    if (h->copy_stream) cudaStreamSynchronize(h->copy_stream);
    destroy_frames(h);
    cudaFree(h->counts);
    cudaFree(h->packed);
    cudaFree(h->rows);
    cudaFreeHost(h->host_rows);
    cudaFree(h->moment_arrays);
    cudaFree(h->table);
    cudaFree(h->edges);
    cudaFree(h->edges_f32);
    cudaFree(h->centre);
    destroy_event(h->read_begin), destroy_event(h->read_kernel), destroy_event(h->read_end);
    if (h->compute_stream) cudaStreamDestroy(h->compute_stream);
    if (h->copy_stream) cudaStreamDestroy(h->copy_stream);
    free(h->spilled);
    free(h->totals);
    free(h);
}
