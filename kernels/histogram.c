/* The functions of kernels/histogram.h: they check arguments, fill in defaults, call the backend, and upload patterns from any host memory.
 */
#include "kernels/histogram.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ps_code check_centre(const ps_histogram_desc *desc, ps_dtype dtype, ps_error *error) {
    static const double limits[PS_N_DTYPES][2] = {
        [PS_U8] = {0, UINT8_MAX},         [PS_U16] = {0, UINT16_MAX},        [PS_U32] = {0, UINT32_MAX},
        [PS_I8] = {INT8_MIN, INT8_MAX},   [PS_I16] = {INT16_MIN, INT16_MAX}, [PS_I32] = {INT32_MIN, INT32_MAX},
        [PS_F32] = {-HUGE_VAL, HUGE_VAL}, [PS_F64] = {-HUGE_VAL, HUGE_VAL},
    };
    bool integer = dtype != PS_F32 && dtype != PS_F64;
    for (int64_t p = 0; p < desc->n_pixels; p++) {
        double value = desc->centre[p];
        if (!isfinite(value) || value < limits[dtype][0] || value > limits[dtype][1] || (integer && value != rint(value)))
            return PS_FAIL(error, PS_E_ARGUMENT, "histogram: centre of pixel %lld is %g, expected a finite %s", (long long)p, value,
                           integer ? "whole number that the input's type can hold" : "number");
    }
    return PS_OK;
}

static ps_code check_pointer(const void *pointer, const char *name, ps_error *error) {
    return pointer ? PS_OK : PS_FAIL(error, PS_E_ARGUMENT, "histogram: %s is NULL", name);
}

static ps_code check_operations(const ps_histogram_ops *ops, ps_error *error) {
    PS_TRY(check_pointer(ops, "the backend's table", error));
    bool complete = ops->name && ops->minimum_bytes && ops->create && ops->destroy && ops->stage && ops->commit && ops->read &&
                    ops->moments && ops->totals;
    return complete ? PS_OK
                    : PS_FAIL(error, PS_E_INTERNAL, "histogram: backend %s lacks a required operation", ops->name ? ops->name : "?");
}

static ps_code check_numbers(const ps_histogram_desc *desc, ps_error *error) {
    if (desc->n_pixels < 1 || desc->n_pixels > PS_HISTOGRAM_MAX_PIXELS)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: %lld pixels, expected 1 to %d", (long long)desc->n_pixels,
                       PS_HISTOGRAM_MAX_PIXELS);
    if (desc->frames_per_batch < 0 || desc->frames_per_batch > PS_HISTOGRAM_MAX_BATCH)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: batches of %lld patterns, expected 0 (chosen) to %d",
                       (long long)desc->frames_per_batch, PS_HISTOGRAM_MAX_BATCH);
    if (desc->n_segments < 1)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: %lld segments, expected at least 1", (long long)desc->n_segments);
    if (isnan(desc->saturation)) return PS_FAIL(error, PS_E_ARGUMENT, "histogram: saturation is not a number");
    if ((unsigned)desc->kernel > PS_HISTOGRAM_BIN_MAJOR)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: unknown kernel %d", (int)desc->kernel);
    if (desc->spill_frames < 0 || desc->n_threads < 0 || desc->device < 0)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: %lld patterns to a spill, %d threads, device %d, expected 0 or more",
                       (long long)desc->spill_frames, desc->n_threads, desc->device);
    return PS_OK;
}

ps_code ps_histogram_create(const ps_histogram_ops *ops, const ps_histogram_desc *desc, const ps_histogram_map *map,
                            ps_histogram **histogram, ps_error *error) {
    PS_TRY(check_pointer(histogram, "where the histogram goes", error));
    *histogram = NULL;
    PS_TRY(check_operations(ops, error));
    PS_TRY(check_pointer(desc, "the description", error));
    PS_TRY(check_pointer(map, "the map", error));
    PS_TRY(check_numbers(desc, error));
    if ((desc->centre != NULL) != map->centred) return PS_FAIL(error, PS_E_INTERNAL, "histogram: the map was built for other centring");
    if (desc->centre) PS_TRY(check_centre(desc, map->dtype, error));
    PS_TRY(ops->create(desc, map, histogram, error));
    (*histogram)->ops = ops;
    (*histogram)->n_pixels = desc->n_pixels;
    (*histogram)->n_segments = desc->n_segments;
    (*histogram)->dtype = map->dtype;
    (*histogram)->staged = 0;
    return PS_OK;
}

void ps_histogram_destroy(ps_histogram *histogram) {
    if (histogram) histogram->ops->destroy(histogram);
}

size_t ps_histogram_minimum_bytes(const ps_histogram_ops *ops, const ps_histogram_desc *desc, const ps_histogram_map *map) {
    return ops->minimum_bytes(desc, map);
}

size_t ps_histogram_frame_bytes(const ps_histogram_ops *ops, const ps_histogram_desc *desc, const ps_histogram_map *map) {
    return ops->frame_bytes ? ops->frame_bytes(desc, map) : 0;
}

/* --- counting --- */

ps_code ps_histogram_stage(ps_histogram *histogram, void **frames, int64_t *capacity, ps_error *error) {
    PS_TRY(check_pointer(histogram, "the histogram", error));
    PS_TRY(check_pointer(frames && capacity ? histogram : NULL, "where the buffer goes", error));
    histogram->staged = 0;
    PS_TRY(histogram->ops->stage(histogram, frames, capacity, error));
    histogram->staged = *capacity;
    return PS_OK;
}

ps_code ps_histogram_commit(ps_histogram *histogram, int64_t n_frames, int64_t segment, ps_error *error) {
    PS_TRY(check_pointer(histogram, "the histogram", error));
    if (n_frames < 0 || n_frames > histogram->staged || segment < 0 || segment >= histogram->n_segments)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: commit of %lld patterns of at most %lld to segment %lld of %lld",
                       (long long)n_frames, (long long)histogram->staged, (long long)segment, (long long)histogram->n_segments);
    histogram->staged = 0;
    return histogram->ops->commit(histogram, n_frames, segment, error);
}

ps_code ps_histogram_put(ps_histogram *histogram, int64_t n_pixels, ps_dtype dtype, int64_t n_frames, const void *frames, int64_t segment,
                         ps_error *error) {
    PS_TRY(check_pointer(histogram, "the histogram", error));
    if (n_pixels != histogram->n_pixels || dtype != histogram->dtype || n_frames < 0)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: %lld patterns of %lld pixels %s uploaded, expected 0 or more of %lld pixels %s",
                       (long long)n_frames, (long long)n_pixels, ps_dtype_name(dtype), (long long)histogram->n_pixels,
                       ps_dtype_name(histogram->dtype));
    if (n_frames > 0) PS_TRY(check_pointer(frames, "an array of patterns", error));
    size_t frame_bytes = (size_t)n_pixels * ps_dtype_bytes(dtype);
    for (int64_t done = 0; done < n_frames;) {
        void *buffer;
        int64_t capacity;
        PS_TRY(ps_histogram_stage(histogram, &buffer, &capacity, error));
        int64_t n = n_frames - done < capacity ? n_frames - done : capacity;
        memcpy(buffer, (const char *)frames + (size_t)done * frame_bytes, (size_t)n * frame_bytes);
        PS_TRY(ps_histogram_commit(histogram, n, segment, error));
        done += n;
    }
    return PS_OK;
}

ps_code ps_histogram_finish(ps_histogram *histogram, ps_error *error) {
    PS_TRY(check_pointer(histogram, "the histogram", error));
    return histogram->ops->finish ? histogram->ops->finish(histogram, error) : PS_OK;
}

/* --- reading --- */

ps_code ps_histogram_read(ps_histogram *histogram, int64_t first_pixel, int64_t n_pixels, uint64_t *counts, uint64_t *outside,
                          ps_error *error) {
    PS_TRY(check_pointer(histogram, "the histogram", error));
    if (first_pixel < 0 || n_pixels < 0 || first_pixel > histogram->n_pixels - n_pixels)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: read of pixels %lld + %lld of %lld", (long long)first_pixel, (long long)n_pixels,
                       (long long)histogram->n_pixels);
    return histogram->ops->read(histogram, first_pixel, n_pixels, counts, outside, error);
}

static bool is_complete(const ps_histogram_moments *moments) {
    return moments->n_saturated && moments->sum_low && moments->sum_high && moments->square[0] && moments->square[1] &&
           moments->square[2] && moments->minimum && moments->maximum;
}

ps_code ps_histogram_read_moments(ps_histogram *histogram, const ps_histogram_moments *moments, ps_error *error) {
    PS_TRY(check_pointer(histogram, "the histogram", error));
    PS_TRY(check_pointer(moments, "the moments", error));
    PS_TRY(check_pointer(is_complete(moments) ? moments : NULL, "an array of the moments", error));
    return histogram->ops->moments(histogram, moments, error);
}

ps_code ps_histogram_read_totals(ps_histogram *histogram, uint64_t *low, int64_t *high, ps_error *error) {
    PS_TRY(check_pointer(histogram, "the histogram", error));
    PS_TRY(check_pointer(low && high ? histogram : NULL, "an array of totals", error));
    return histogram->ops->totals(histogram, low, high, error);
}

void ps_histogram_read_times(const ps_histogram *histogram, ps_histogram_times *times) {
    *times = (ps_histogram_times){0};
    if (histogram->ops->times) histogram->ops->times(histogram, times);
}

void ps_histogram_device(const ps_histogram *histogram, char *name, size_t bytes) {
    if (histogram->ops->device)
        histogram->ops->device(histogram, name, bytes);
    else
        snprintf(name, bytes, "%s", histogram->ops->name);
}

/* --- moments --- */

ps_code ps_histogram_moments_allocate(int64_t n_pixels, ps_histogram_moments *moments, ps_error *error) {
    size_t n = (size_t)n_pixels;
    *moments = (ps_histogram_moments){0};
    moments->n_saturated = calloc(n, sizeof *moments->n_saturated);
    moments->sum_low = calloc(n, sizeof *moments->sum_low);
    moments->sum_high = calloc(n, sizeof *moments->sum_high);
    for (int limb = 0; limb < 3; limb++) moments->square[limb] = calloc(n, sizeof *moments->square[limb]);
    moments->minimum = malloc(n * sizeof *moments->minimum);
    moments->maximum = malloc(n * sizeof *moments->maximum);
    if (!is_complete(moments)) {
        ps_histogram_moments_free(moments);
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate the moments of %lld pixels", (long long)n_pixels);
    }
    for (size_t p = 0; p < n; p++) moments->minimum[p] = INFINITY, moments->maximum[p] = -INFINITY;
    return PS_OK;
}

void ps_histogram_moments_free(ps_histogram_moments *moments) {
    free(moments->n_saturated);
    free(moments->sum_low);
    free(moments->sum_high);
    for (int limb = 0; limb < 3; limb++) free(moments->square[limb]);
    free(moments->minimum);
    free(moments->maximum);
    *moments = (ps_histogram_moments){0};
}
