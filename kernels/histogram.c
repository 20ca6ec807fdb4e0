/* What every histogram backend shares: checks, and putting frames that lie anywhere. */
#include "kernels/histogram.h"

#include <math.h>
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

ps_code ps_histogram_create(const ps_histogram_ops *ops, const ps_histogram_desc *desc, const ps_histogram_map *map,
                            ps_histogram **histogram, ps_error *error) {
    *histogram = NULL;
    if (desc->n_pixels < 1 || desc->n_pixels > PS_HISTOGRAM_MAX_PIXELS)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: %lld pixels, expected 1 to %d", (long long)desc->n_pixels,
                       PS_HISTOGRAM_MAX_PIXELS);
    if (desc->frames_per_batch < 0 || desc->frames_per_batch > PS_HISTOGRAM_MAX_BATCH)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: batches of %lld frames, expected 0 (chosen) to %d",
                       (long long)desc->frames_per_batch, PS_HISTOGRAM_MAX_BATCH);
    if (desc->n_segments < 1)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: %lld segments, expected at least 1", (long long)desc->n_segments);
    if ((desc->centre != NULL) != map->centred) return PS_FAIL(error, PS_E_INTERNAL, "histogram: the map was built for other centring");
    if (desc->centre) PS_TRY(check_centre(desc, map->dtype, error));
    return ops->create(desc, map, histogram, error);
}

void ps_histogram_destroy(ps_histogram *histogram) {
    if (histogram) histogram->ops->destroy(histogram);
}

ps_code ps_histogram_put(ps_histogram *histogram, int64_t n_pixels, ps_dtype dtype, int64_t n_frames, const void *frames, int64_t segment,
                         ps_error *error) {
    size_t frame_bytes = (size_t)n_pixels * ps_dtype_bytes(dtype);
    for (int64_t done = 0; done < n_frames;) {
        void *buffer;
        int64_t capacity;
        PS_TRY(histogram->ops->stage(histogram, &buffer, &capacity, error));
        int64_t n = n_frames - done < capacity ? n_frames - done : capacity;
        memcpy(buffer, (const char *)frames + (size_t)done * frame_bytes, (size_t)n * frame_bytes);
        PS_TRY(histogram->ops->commit(histogram, n, segment, error));
        done += n;
    }
    return PS_OK;
}

ps_code ps_histogram_moments_allocate(int64_t n_pixels, ps_histogram_moments *moments, ps_error *error) {
    size_t n = (size_t)n_pixels;
    *moments = (ps_histogram_moments){0};
    moments->n_saturated = calloc(n, sizeof *moments->n_saturated);
    moments->sum_low = calloc(n, sizeof *moments->sum_low);
    moments->sum_high = calloc(n, sizeof *moments->sum_high);
    for (int limb = 0; limb < 3; limb++) moments->square[limb] = calloc(n, sizeof *moments->square[limb]);
    moments->minimum = malloc(n * sizeof *moments->minimum);
    moments->maximum = malloc(n * sizeof *moments->maximum);
    bool complete = moments->n_saturated && moments->sum_low && moments->sum_high && moments->square[0] && moments->square[1] &&
                    moments->square[2] && moments->minimum && moments->maximum;
    if (!complete) {
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
