/* The plain way: value by value, each through the definition in histogram_map.c. The oracle of the other backends. */
#include <math.h>

#include "kernels/cpu/histogram_cpu.h"

/* A value as double, with its centre subtracted in the input's own precision; exact but for float types' one rounding. */
static double value_at(ps_dtype dtype, const void *frames, size_t at, double centre, double *raw) {
    switch (dtype) {
    case PS_U8: *raw = ((const uint8_t *)frames)[at]; break;
    case PS_U16: *raw = ((const uint16_t *)frames)[at]; break;
    case PS_U32: *raw = ((const uint32_t *)frames)[at]; break;
    case PS_I8: *raw = ((const int8_t *)frames)[at]; break;
    case PS_I16: *raw = ((const int16_t *)frames)[at]; break;
    case PS_I32: *raw = ((const int32_t *)frames)[at]; break;
    case PS_F32: *raw = ((const float *)frames)[at]; return (double)(float)((float)*raw - (float)centre);
    case PS_F64: *raw = ((const double *)frames)[at]; break;
    default: *raw = NAN;
    }
    return *raw - centre;
}

static void count_value(ps_cpu_histogram *h, int64_t p, double value, double raw, ps_int128 *total) {
    h->counts[p * h->n_slots + ps_histogram_slot(h->map, value)]++;
    if (h->desc.counts_only || !isfinite(value)) return;
    ps_cpu_pixel *pixel = &h->pixels[p];
    ps_int128 quantum = ps_histogram_quantum(h->map, value);
    pixel->sum += quantum;
    pixel->square += (ps_uint128)(quantum * quantum);
    pixel->n_saturated += raw >= h->desc.saturation;
    pixel->minimum = fmin(pixel->minimum, value);
    pixel->maximum = fmax(pixel->maximum, value);
    *total += quantum;
}

ps_int128 ps_cpu_histogram_count_reference(ps_cpu_histogram *h, const void *frames, int64_t n_frames) {
    ps_int128 total = 0;
    for (int64_t f = 0; f < n_frames; f++)
        for (int64_t p = 0; p < h->desc.n_pixels; p++) {
            double raw, value = value_at(h->map->dtype, frames, (size_t)(f * h->desc.n_pixels + p), h->centre ? h->centre[p] : 0, &raw);
            count_value(h, p, value, raw, &total);
        }
    return total;
}
