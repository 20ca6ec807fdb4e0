#include <assert.h>
#include <math.h>

#include "core/assert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/memory.h"

enum { SLOTS_PER_TASK = 64 }; /* slots whose sums one task forms: whole cache lines of counts */

#define DEFINE_GATHER(dtype, type, name)                                                                                              \
    static void gather_##dtype(const ps_cpu_frame *frame, int64_t first, int64_t n, const void *source) {                             \
        const ps_system_desc *desc = &frame->system->desc;                                                                            \
        int64_t pixels = desc->detector_rows * desc->detector_columns, active = desc->n_active;                                       \
        _Pragma("omp parallel for schedule(static) num_threads(frame->system->backend->n_threads)") for (int64_t i = 0; i < n; i++) { \
            const type *from = (const type *)source + i * pixels;                                                                     \
            type *to = (type *)frame->counts + (first + i) * active;                                                                  \
            for (int64_t slot = 0; slot < active; slot++) to[slot] = from[desc->active[slot]];                                        \
        }                                                                                                                             \
    }
PS_DTYPES(DEFINE_GATHER)
#undef DEFINE_GATHER

ps_code ps_cpu_frame_upload(ps_frame *handle, int64_t first_position, int64_t n_positions, const void *counts, ps_error *error) {
    PS_ASSERT(first_position >= 0 && n_positions >= 0 && counts);
    ps_cpu_frame *frame = (ps_cpu_frame *)handle;
    assert(first_position >= 0 && n_positions <= ps_cpu_positions(&frame->system->desc) - first_position);
    frame->has_means = false;
    switch (frame->dtype) {
#define X(dtype, type, name) \
    case dtype: gather_##dtype(frame, first_position, n_positions, counts); break;
        PS_DTYPES(X)
#undef X
    default: return PS_FAIL(error, PS_E_INTERNAL, "unknown element type %d", frame->dtype);
    }
    return PS_OK;
}

/* Sums over positions in their order, so that the order of the uploads changes nothing. */
#define DEFINE_MEANS(dtype, type, name)                                                                                                  \
    static void means_##dtype(const ps_cpu_frame *frame, int64_t first, int64_t n) {                                                     \
        int64_t positions = ps_cpu_positions(&frame->system->desc), active = frame->system->desc.n_active;                               \
        type invalid_value = (type)ps_dtype_invalid_value(dtype);                                                                        \
        bool has_invalid_value = invalid_value != 0;                                                                                     \
        double sum[SLOTS_PER_TASK] = {0};                                                                                                \
        int64_t marked[SLOTS_PER_TASK] = {0};                                                                                            \
        for (int64_t position = 0; position < positions; position++) {                                                                   \
            const type *counts = (const type *)frame->counts + position * active + first;                                                \
            for (int64_t i = 0; i < n; i++) {                                                                                            \
                bool is_marked = (has_invalid_value && counts[i] == invalid_value) || (dtype >= PS_F32 && !isfinite((double)counts[i])); \
                marked[i] += is_marked;                                                                                                  \
                sum[i] += is_marked ? 0.0 : (double)counts[i];                                                                           \
            }                                                                                                                            \
        }                                                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                                                \
            frame->mean[first + i] = sum[i] / (double)positions;                                                                         \
            frame->n_marked[first + i] = marked[i];                                                                                      \
        }                                                                                                                                \
    }
PS_DTYPES(DEFINE_MEANS)
#undef DEFINE_MEANS

static void means_of_slots(const ps_cpu_frame *frame, int64_t first, int64_t n) {
    switch (frame->dtype) {
#define X(dtype, type, name) \
    case dtype: means_##dtype(frame, first, n); break;
        PS_DTYPES(X)
#undef X
    default: break;
    }
}

ps_code ps_cpu_frame_ensure_means(ps_cpu_frame *frame, ps_error *error) {
    if (frame->has_means) return PS_OK;
    const ps_cpu_system *system = frame->system;
    int64_t active = system->desc.n_active;
    assert(frame->base.n_put == ps_cpu_positions(&system->desc));
#pragma omp parallel for schedule(static) num_threads(system->backend->n_threads)
    for (int64_t first = 0; first < active; first += SLOTS_PER_TASK)
        means_of_slots(frame, first, active - first < SLOTS_PER_TASK ? active - first : SLOTS_PER_TASK);
    for (int64_t slot = 0; slot < active; slot++)
        if (!isfinite(frame->mean[slot])) {
            int32_t pixel = system->desc.active[slot];
            return PS_FAIL(error, PS_E_INPUT, "detector pixel (%lld, %lld) holds counts that are not finite",
                           (long long)(pixel / system->desc.detector_columns), (long long)(pixel % system->desc.detector_columns));
        }
    frame->has_means = true;
    return PS_OK;
}

ps_code ps_cpu_frame_mean_counts(ps_frame *handle, double *mean, int64_t *n_marked, ps_error *error) {
    ps_cpu_frame *frame = (ps_cpu_frame *)handle;
    PS_TRY(ps_cpu_frame_ensure_means(frame, error));
    for (int64_t slot = 0; slot < frame->system->desc.n_active; slot++) {
        int32_t pixel = frame->system->slot_pixel[slot];
        if (mean) mean[pixel] = frame->mean[slot];
        if (n_marked) n_marked[pixel] = frame->n_marked[slot];
    }
    return PS_OK;
}

double ps_cpu_mean_of_means(const ps_cpu_frame *frame) {
    double sum = 0.0;
    for (int64_t slot = 0; slot < frame->system->desc.n_active; slot++) sum += frame->mean[slot];
    return sum / (double)frame->system->desc.n_active;
}

#define DEFINE_SCANS(dtype, type, real, suffix)                                                                                          \
    static void scans_##suffix##_##dtype(const ps_cpu_frame *frame, int64_t first, int64_t n, bool subtract_mean, int64_t stride,        \
                                         real *scans) {                                                                                  \
        int64_t positions = ps_cpu_positions(&frame->system->desc), active = frame->system->desc.n_active;                               \
        type invalid_value = (type)ps_dtype_invalid_value(dtype);                                                                        \
        bool has_invalid_value = invalid_value != 0;                                                                                     \
        for (int64_t position = 0; position < positions; position++) {                                                                   \
            const type *counts = (const type *)frame->counts + position * active + first;                                                \
            for (int64_t i = 0; i < n; i++) {                                                                                            \
                bool is_marked = (has_invalid_value && counts[i] == invalid_value) || (dtype >= PS_F32 && !isfinite((double)counts[i])); \
                double value = is_marked ? 0.0 : (double)counts[i];                                                                      \
                scans[i * stride + position] = (real)(subtract_mean ? value - frame->mean[first + i] : value);                           \
            }                                                                                                                            \
        }                                                                                                                                \
    }
#define X(dtype, type, name)               \
    DEFINE_SCANS(dtype, type, double, f64) \
    DEFINE_SCANS(dtype, type, float, f32)
PS_DTYPES(X)
#undef X
#undef DEFINE_SCANS

void ps_cpu_scans_f64(const ps_cpu_frame *frame, int64_t first_slot, int64_t n_slots, bool subtract_mean, int64_t stride, double *scans) {
    PS_ASSERT(first_slot >= 0 && first_slot + n_slots <= frame->system->desc.n_active && stride >= ps_cpu_positions(&frame->system->desc));
#define X(dtype, type, name) [dtype] = scans_f64_##dtype,
    static void (*const take[PS_N_DTYPES])(const ps_cpu_frame *, int64_t, int64_t, bool, int64_t, double *) = {PS_DTYPES(X)};
#undef X
    take[frame->dtype](frame, first_slot, n_slots, subtract_mean, stride, scans);
}

void ps_cpu_scans_f32(const ps_cpu_frame *frame, int64_t first_slot, int64_t n_slots, bool subtract_mean, int64_t stride, float *scans) {
    PS_ASSERT(first_slot >= 0 && first_slot + n_slots <= frame->system->desc.n_active && stride >= ps_cpu_positions(&frame->system->desc));
#define X(dtype, type, name) [dtype] = scans_f32_##dtype,
    static void (*const take[PS_N_DTYPES])(const ps_cpu_frame *, int64_t, int64_t, bool, int64_t, float *) = {PS_DTYPES(X)};
#undef X
    take[frame->dtype](frame, first_slot, n_slots, subtract_mean, stride, scans);
}
