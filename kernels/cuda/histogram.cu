/* The CUDA histogram at work: patterns go from pinned stages over the copy stream into one of two batches on the device; a full batch is
 * counted on the compute stream while the other one fills. Counters on the device are 32-bit, those of the shared kernel 16-bit first;
 * before they could overflow they are added to the next wider ones, in the end to 64-bit ones on the host. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/histogram_state.cuh"

static double elapsed_s(cudaEvent_t begin, cudaEvent_t end) {
    float ms = 0;
    return cudaEventElapsedTime(&ms, begin, end) == cudaSuccess ? 1e-3 * (double)ms : 0;
}

static ps_device_batch device_batch(const ps_cuda_histogram *h, const ps_frame_batch *batch) {
    ps_device_batch d;
    d.frames = batch ? batch->frames : NULL;
    d.n_frames = batch ? batch->n_frames : 0;
    d.n_padded = h->n_padded;
    d.centre = h->centre;
    d.counts = h->counts;
    d.packed = h->packed;
    d.n_cells = h->n_cells;
    d.cell_pitch = h->cell_pitch;
    return d;
}

/* Rows of cells of pixels first ... first + n - 1 into host_rows. */
static ps_code fetch_rows(ps_cuda_histogram *h, int64_t first, int64_t n, ps_error *error) {
    ps_device_batch d = device_batch(h, NULL);
    PS_HISTOGRAM_CUDA(error, cudaEventRecord(h->read_begin, h->compute_stream));
    PS_TRY(ps_histogram_launch_readout(h->desc.kernel == PS_HISTOGRAM_BIN_MAJOR, &d, first, n, h->rows, h->compute_stream, error));
    PS_HISTOGRAM_CUDA(error, cudaEventRecord(h->read_kernel, h->compute_stream));
    PS_HISTOGRAM_CUDA(error, cudaMemcpyAsync(h->host_rows, h->rows, (size_t)(n * h->n_cells) * sizeof *h->rows, cudaMemcpyDeviceToHost,
                                             h->compute_stream));
    PS_HISTOGRAM_CUDA(error, cudaEventRecord(h->read_end, h->compute_stream));
    PS_HISTOGRAM_CUDA(error, cudaEventSynchronize(h->read_end));
    h->times.readout_kernel_s += elapsed_s(h->read_begin, h->read_kernel);
    h->times.readout_copy_s += elapsed_s(h->read_kernel, h->read_end);
    return PS_OK;
}

/* Brings everything that was launched into counts. */
static ps_code widen(ps_cuda_histogram *h, ps_error *error) {
    ps_device_batch d = device_batch(h, NULL);
    if (h->since_widen > 0) PS_TRY(ps_histogram_launch_widen(&d, h->compute_stream, error));
    h->since_widen = 0;
    return PS_OK;
}

/* Adds the 32-bit counters to the 64-bit ones and clears them. Waits for the device. */
static ps_code spill(ps_cuda_histogram *h, ps_error *error) {
    size_t n = (size_t)h->desc.n_pixels * (size_t)h->n_cells;
    if (!h->spilled) h->spilled = (uint64_t *)calloc(n, sizeof *h->spilled);
    if (!h->spilled)
        return PS_FAIL(error, PS_E_MEMORY, "histogram: cannot allocate %.3f GiB for 64-bit counts",
                       (double)(n * sizeof *h->spilled) / (1 << 30));
    PS_TRY(widen(h, error));
    for (int64_t first = 0; first < h->desc.n_pixels; first += h->read_pixels) {
        int64_t pixels = first + h->read_pixels < h->desc.n_pixels ? h->read_pixels : h->desc.n_pixels - first;
        PS_TRY(fetch_rows(h, first, pixels, error));
        for (int64_t i = 0; i < pixels * h->n_cells; i++) h->spilled[first * h->n_cells + i] += h->host_rows[i];
    }
    PS_HISTOGRAM_CUDA(error, cudaMemsetAsync(h->counts, 0, (size_t)(h->n_padded * h->cell_pitch) * sizeof *h->counts, h->compute_stream));
    h->since_spill = 0;
    return PS_OK;
}

static ps_code launch_fill(ps_cuda_histogram *h, const ps_device_batch *d, ps_error *error) {
    if (h->desc.kernel != PS_HISTOGRAM_SHARED)
        return ps_histogram_launch_global(h->map->dtype, h->desc.kernel == PS_HISTOGRAM_BIN_MAJOR, d, &h->device_map, h->compute_stream,
                                          error);
    if (h->since_widen + d->n_frames > PS_HISTOGRAM_MAX_BATCH) PS_TRY(widen(h, error));
    h->since_widen += d->n_frames;
    return ps_histogram_launch_shared(h->map->dtype, d, &h->device_map, h->compute_stream, error);
}

/* Counts the batch that is being filled and turns to the other one. */
static ps_code launch_batch(ps_cuda_histogram *h, ps_error *error) {
    ps_frame_batch *batch = &h->batches[h->batch];
    if (h->since_spill > 0 && h->since_spill + batch->n_frames > h->spill_frames) PS_TRY(spill(h, error));
    ps_device_batch d = device_batch(h, batch);
    PS_HISTOGRAM_CUDA(error, cudaEventRecord(batch->copied, h->copy_stream));
    PS_HISTOGRAM_CUDA(error, cudaStreamWaitEvent(h->compute_stream, batch->copied, 0));
    PS_HISTOGRAM_CUDA(error, cudaEventRecord(batch->begin, h->compute_stream));
    PS_TRY(launch_fill(h, &d, error));
    PS_HISTOGRAM_CUDA(error, cudaEventRecord(batch->filled, h->compute_stream));
    if (!h->desc.counts_only) {
        h->moments.frame_sums = batch->sums;
        PS_TRY(ps_histogram_launch_moments(h->map->dtype, &d, &h->device_map, &h->moments, h->compute_stream, error));
        PS_HISTOGRAM_CUDA(error, cudaMemcpyAsync(batch->host_sums, batch->sums, (size_t)batch->n_frames * sizeof *batch->sums,
                                                 cudaMemcpyDeviceToHost, h->compute_stream));
    }
    PS_HISTOGRAM_CUDA(error, cudaEventRecord(batch->done, h->compute_stream));
    batch->in_flight = true;
    h->since_spill += batch->n_frames;
    h->batch = (h->batch + 1) % PS_N_BATCHES;
    return PS_OK;
}

/* Waits for a launched batch, takes its sums and times, and makes it free. */
static ps_code collect_batch(ps_cuda_histogram *h, ps_frame_batch *batch, ps_error *error) {
    if (!batch->in_flight) return PS_OK;
    PS_HISTOGRAM_CUDA(error, cudaEventSynchronize(batch->done));
    if (!h->desc.counts_only)
        for (int64_t f = 0; f < batch->n_frames; f++) h->totals[batch->segments[f]] += batch->host_sums[f];
    h->times.fill_s += elapsed_s(batch->begin, batch->filled);
    h->times.moments_s += elapsed_s(batch->filled, batch->done);
    h->times.n_batches++;
    h->times.n_frames += batch->n_frames;
    batch->n_frames = 0;
    batch->in_flight = false;
    return PS_OK;
}

static ps_code stage(ps_histogram *histogram, void **frames, int64_t *capacity, ps_error *error) {
    ps_cuda_histogram *h = (ps_cuda_histogram *)histogram;
    ps_pinned_stage *s = &h->stages[h->stage];
    PS_HISTOGRAM_CUDA(error, cudaSetDevice(h->desc.device));
    for (int i = 0; i < s->n_copies; i++) {
        PS_HISTOGRAM_CUDA(error, cudaEventSynchronize(s->end[i]));
        h->times.copy_s += elapsed_s(s->begin[i], s->end[i]);
    }
    s->n_copies = 0;
    *frames = s->frames;
    *capacity = h->stage_frames;
    return PS_OK;
}

/* Copies patterns offset ... offset + n - 1 of the stage behind those of the batch that is being filled. */
static ps_code append(ps_cuda_histogram *h, ps_pinned_stage *s, int64_t offset, int64_t n, int64_t segment, ps_error *error) {
    ps_frame_batch *batch = &h->batches[h->batch];
    size_t row = (size_t)h->desc.n_pixels * h->value_bytes, padded_row = (size_t)h->n_padded * h->value_bytes;
    char *target = (char *)batch->frames + (size_t)batch->n_frames * padded_row;
    const char *source = (const char *)s->frames + (size_t)offset * row;
    PS_HISTOGRAM_CUDA(error, cudaEventRecord(s->begin[s->n_copies], h->copy_stream));
    if (row == padded_row)
        PS_HISTOGRAM_CUDA(error, cudaMemcpyAsync(target, source, (size_t)n * row, cudaMemcpyHostToDevice, h->copy_stream));
    else
        PS_HISTOGRAM_CUDA(error,
                          cudaMemcpy2DAsync(target, padded_row, source, row, row, (size_t)n, cudaMemcpyHostToDevice, h->copy_stream));
    PS_HISTOGRAM_CUDA(error, cudaEventRecord(s->end[s->n_copies], h->copy_stream));
    s->n_copies++;
    for (int64_t f = 0; f < n; f++) batch->segments[batch->n_frames + f] = segment;
    batch->n_frames += n;
    return PS_OK;
}

static ps_code commit(ps_histogram *histogram, int64_t n_frames, int64_t segment, ps_error *error) {
    ps_cuda_histogram *h = (ps_cuda_histogram *)histogram;
    ps_pinned_stage *s = &h->stages[h->stage];
    PS_HISTOGRAM_CUDA(error, cudaSetDevice(h->desc.device));
    for (int64_t done = 0; done < n_frames;) {
        PS_TRY(collect_batch(h, &h->batches[h->batch], error));
        int64_t room = h->batch_frames - h->batches[h->batch].n_frames, n = n_frames - done < room ? n_frames - done : room;
        PS_TRY(append(h, s, done, n, segment, error));
        done += n;
        if (h->batches[h->batch].n_frames == h->batch_frames) PS_TRY(launch_batch(h, error));
    }
    h->stage = (h->stage + 1) % PS_N_STAGES_PINNED;
    return PS_OK;
}

static ps_code finish(ps_histogram *histogram, ps_error *error) {
    ps_cuda_histogram *h = (ps_cuda_histogram *)histogram;
    PS_HISTOGRAM_CUDA(error, cudaSetDevice(h->desc.device));
    if (h->batches[h->batch].n_frames > 0 && !h->batches[h->batch].in_flight) PS_TRY(launch_batch(h, error));
    for (int b = 0; b < PS_N_BATCHES; b++) PS_TRY(collect_batch(h, &h->batches[b], error));
    PS_HISTOGRAM_CUDA(error, cudaStreamSynchronize(h->copy_stream));
    PS_HISTOGRAM_CUDA(error, cudaStreamSynchronize(h->compute_stream));
    return PS_OK;
}

/* The slot whose count a cell is part of. */
static int64_t slot_of_cell(const ps_cuda_histogram *h, int64_t cell) {
    const ps_histogram_map *map = h->map;
    if (cell == 0) return map->n_bins + PS_SLOT_UNDERFLOW;
    if (map->cells == PS_CELLS_VALUES) {
        if (cell == h->n_cells - 1) return map->n_bins + PS_SLOT_OVERFLOW;
        return map->slots[cell - map->cell_bias - map->first_value];
    }
    return cell <= map->n_bins ? cell - 1 : cell == map->n_bins + 1 ? map->n_bins + PS_SLOT_OVERFLOW : map->n_bins + PS_SLOT_NONFINITE;
}

static void spread_cells(const ps_cuda_histogram *h, const uint32_t *row, const uint64_t *spilled, uint64_t *counts, uint64_t *outside) {
    int64_t n_bins = h->map->n_bins;
    if (counts) memset(counts, 0, (size_t)n_bins * sizeof *counts);
    if (outside) memset(outside, 0, PS_EXTRA_SLOTS * sizeof *outside);
    for (int64_t cell = 0; cell < h->n_cells; cell++) {
        uint64_t count = row[cell] + (spilled ? spilled[cell] : 0);
        if (count == 0) continue;
        int64_t slot = slot_of_cell(h, cell);
        if (slot < n_bins && counts) counts[slot] += count;
        if (slot >= n_bins && outside) outside[slot - n_bins] += count;
    }
}

static ps_code read_counts(ps_histogram *histogram, int64_t first_pixel, int64_t n_pixels, uint64_t *counts, uint64_t *outside,
                           ps_error *error) {
    ps_cuda_histogram *h = (ps_cuda_histogram *)histogram;
    PS_HISTOGRAM_CUDA(error, cudaSetDevice(h->desc.device));
    if (first_pixel == 0) h->times.readout_kernel_s = h->times.readout_copy_s = 0;
    PS_TRY(widen(h, error));
    for (int64_t done = 0; done < n_pixels; done += h->read_pixels) {
        int64_t n = done + h->read_pixels < n_pixels ? h->read_pixels : n_pixels - done;
        PS_TRY(fetch_rows(h, first_pixel + done, n, error));
        for (int64_t p = 0; p < n; p++)
            spread_cells(h, h->host_rows + p * h->n_cells, h->spilled ? h->spilled + (first_pixel + done + p) * h->n_cells : NULL,
                         counts ? counts + (done + p) * h->map->n_bins : NULL, outside ? outside + (done + p) * PS_EXTRA_SLOTS : NULL);
    }
    return PS_OK;
}

/* The value behind an order-preserving key of histogram_moments.cu. */
static double value_of_key(ps_dtype dtype, long long key) {
    if (key == LLONG_MAX) return INFINITY;
    if (key == LLONG_MIN) return -INFINITY;
    if (dtype != PS_F32 && dtype != PS_F64) return (double)key;
    long long bits = key < 0 ? key ^ LLONG_MAX : key;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value + 0.0;
}

static ps_code read_moments(ps_histogram *histogram, const ps_histogram_moments *moments, ps_error *error) {
    ps_cuda_histogram *h = (ps_cuda_histogram *)histogram;
    size_t n = (size_t)h->desc.n_pixels, bytes = n * sizeof(uint64_t);
    const ps_device_moments *m = &h->moments;
    PS_HISTOGRAM_CUDA(error, cudaSetDevice(h->desc.device));
    PS_HISTOGRAM_CUDA(error, cudaMemcpy(moments->n_saturated, m->n_saturated, bytes, cudaMemcpyDeviceToHost));
    PS_HISTOGRAM_CUDA(error, cudaMemcpy(moments->sum_low, m->sum_low, bytes, cudaMemcpyDeviceToHost));
    PS_HISTOGRAM_CUDA(error, cudaMemcpy(moments->sum_high, m->sum_high, bytes, cudaMemcpyDeviceToHost));
    for (int limb = 0; limb < 3; limb++)
        PS_HISTOGRAM_CUDA(error, cudaMemcpy(moments->square[limb], m->square[limb], bytes, cudaMemcpyDeviceToHost));
    PS_HISTOGRAM_CUDA(error, cudaMemcpy(moments->minimum, m->minimum, bytes, cudaMemcpyDeviceToHost));
    PS_HISTOGRAM_CUDA(error, cudaMemcpy(moments->maximum, m->maximum, bytes, cudaMemcpyDeviceToHost));
    for (size_t p = 0; p < n; p++) {
        long long low, high;
        memcpy(&low, &moments->minimum[p], sizeof low);
        memcpy(&high, &moments->maximum[p], sizeof high);
        moments->minimum[p] = value_of_key(h->map->dtype, low);
        moments->maximum[p] = value_of_key(h->map->dtype, high);
    }
    return PS_OK;
}

static ps_code read_totals(ps_histogram *histogram, uint64_t *low, int64_t *high, ps_error *error) {
    (void)error;
    const ps_cuda_histogram *h = (const ps_cuda_histogram *)histogram;
    for (int64_t s = 0; s < h->desc.n_segments; s++) {
        low[s] = (uint32_t)h->totals[s];
        high[s] = (int64_t)(h->totals[s] >> 32);
    }
    return PS_OK;
}

static void get_times(const ps_histogram *histogram, ps_histogram_times *times) {
    *times = ((const ps_cuda_histogram *)histogram)->times;
}

static void get_device(const ps_histogram *histogram, char *name, size_t bytes) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, ((const ps_cuda_histogram *)histogram)->desc.device) != cudaSuccess) properties.name[0] = '\0';
    snprintf(name, bytes, "%s", properties.name);
}

const ps_histogram_ops ps_histogram_cuda = {
    "cuda",
    ps_cuda_histogram_minimum_bytes,
    ps_cuda_histogram_create,
    ps_cuda_histogram_destroy,
    stage,
    commit,
    finish,
    read_counts,
    read_moments,
    read_totals,
    get_times,
    get_device,
    true,
    NULL,
};
