#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/memory.h"

enum { SLOTS_PER_TASK = 64 }; /* slots whose sums one task forms: whole cache lines of counts */

size_t ps_cpu_frame_bytes(const ps_system_desc *desc, ps_dtype dtype) {
    size_t positions = (size_t)ps_cpu_positions(desc), active = (size_t)desc->n_active;
    return positions * active * ps_dtype_bytes(dtype) + positions + active * (sizeof(double) + sizeof(int64_t));
}

ps_code ps_cpu_frame_init(ps_cpu_frame *frame, ps_cpu_system *system, ps_dtype dtype, ps_error *error) {
    size_t positions = (size_t)ps_cpu_positions(&system->desc), active = (size_t)system->desc.n_active;
    frame->base.ops = system->base.ops;
    frame->system = system;
    frame->dtype = dtype;
    frame->counts = ps_cpu_allocate(positions * active, ps_dtype_bytes(dtype));
    frame->is_put = ps_cpu_allocate_zero(positions, sizeof *frame->is_put);
    frame->mean = ps_cpu_allocate(active, sizeof *frame->mean);
    frame->n_marked = ps_cpu_allocate(active, sizeof *frame->n_marked);
    if (!frame->counts || !frame->is_put || !frame->mean || !frame->n_marked)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the counts of %zu positions and %zu active pixels", positions,
                       active);
    return PS_OK;
}

void ps_cpu_frame_release(ps_cpu_frame *frame) {
    ps_cpu_free(frame->counts);
    ps_cpu_free(frame->is_put);
    ps_cpu_free(frame->mean);
    ps_cpu_free(frame->n_marked);
}

static ps_code claim_positions(ps_cpu_frame *frame, int64_t first, int64_t n, ps_error *error) {
    int64_t positions = ps_cpu_positions(&frame->system->desc);
    if (first < 0 || n < 0 || first > positions || n > positions - first)
        return PS_FAIL(error, PS_E_ARGUMENT, "positions %lld to %lld put, expected 0 to %lld", (long long)first, (long long)(first + n - 1),
                       (long long)positions - 1);
    for (int64_t i = first; i < first + n; i++)
        if (frame->is_put[i]) return PS_FAIL(error, PS_E_ARGUMENT, "position %lld put twice", (long long)i);
    memset(frame->is_put + first, 1, (size_t)n);
    frame->n_put += n;
    frame->has_means = frame->is_reduced = false;
    return PS_OK;
}

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

ps_code ps_cpu_frame_put(ps_frame *handle, int64_t first_position, int64_t n_positions, const void *counts, ps_error *error) {
    ps_cpu_frame *frame = (ps_cpu_frame *)handle;
    PS_TRY(claim_positions(frame, first_position, n_positions, error));
    switch (frame->dtype) {
#define X(dtype, type, name) \
    case dtype: gather_##dtype(frame, first_position, n_positions, counts); break;
        PS_DTYPES(X)
#undef X
    default: return PS_FAIL(error, PS_E_INTERNAL, "unknown element type %d", frame->dtype);
    }
    return PS_OK;
}

/* Sums over positions in their order, so that the order of the puts never shows. */
#define DEFINE_MEANS(dtype, type, name)                                                                                    \
    static void means_##dtype(const ps_cpu_frame *frame, int64_t first, int64_t n) {                                       \
        int64_t positions = ps_cpu_positions(&frame->system->desc), active = frame->system->desc.n_active;                 \
        type marker = (type)ps_dtype_marker(dtype);                                                                        \
        bool has_marker = marker != 0;                                                                                     \
        double sum[SLOTS_PER_TASK] = {0};                                                                                  \
        int64_t marked[SLOTS_PER_TASK] = {0};                                                                              \
        for (int64_t position = 0; position < positions; position++) {                                                     \
            const type *counts = (const type *)frame->counts + position * active + first;                                  \
            for (int64_t i = 0; i < n; i++) {                                                                              \
                bool is_marked = (has_marker && counts[i] == marker) || (dtype >= PS_F32 && !isfinite((double)counts[i])); \
                marked[i] += is_marked;                                                                                    \
                sum[i] += is_marked ? 0.0 : (double)counts[i];                                                             \
            }                                                                                                              \
        }                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                                  \
            frame->mean[first + i] = sum[i] / (double)positions;                                                           \
            frame->n_marked[first + i] = marked[i];                                                                        \
        }                                                                                                                  \
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
    int64_t active = system->desc.n_active, positions = ps_cpu_positions(&system->desc);
    if (frame->n_put != positions)
        return PS_FAIL(error, PS_E_ARGUMENT, "%lld of %lld positions put", (long long)frame->n_put, (long long)positions);
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

ps_code ps_cpu_frame_means(ps_frame *handle, double *mean, int64_t *n_marked, ps_error *error) {
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

ps_code ps_cpu_frame_require(const ps_cpu_frame *frame, ps_methods methods, ps_error *error) {
    PS_TRY(ps_cpu_system_require(frame->system, methods, error));
    if (!frame->is_reduced) return PS_FAIL(error, PS_E_ARGUMENT, "the frame is not reduced");
    return PS_OK;
}

ps_code ps_cpu_reduce_require(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    for (int64_t i = 0; i < n_frames; i++) {
        ps_cpu_frame *frame = (ps_cpu_frame *)frames[i];
        if (frame->system != ((ps_cpu_frame *)frames[0])->system)
            return PS_FAIL(error, PS_E_ARGUMENT, "frames 0 and %lld of the batch belong to different systems", (long long)i);
        if (!(dose[i] > 0.0) || isinf(dose[i]))
            return PS_FAIL(error, PS_E_ARGUMENT, "dose of frame %lld of the batch is %g, expected a positive number", (long long)i,
                           dose[i]);
        PS_TRY(ps_cpu_system_require(frame->system, frame->system->methods, error));
        PS_TRY(ps_cpu_frame_ensure_means(frame, error));
    }
    return PS_OK;
}

ps_code ps_cpu_batch_require(const ps_memory_plan *plan, int64_t n_frames, ps_error *error) {
    if (plan->frames_per_batch >= n_frames) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "a batch of %lld frames does not fit the memory budget, %lld do", (long long)n_frames,
                   (long long)plan->frames_per_batch);
}

#define DEFINE_SCANS(dtype, type, real, suffix)                                                                                   \
    static void scans_##suffix##_##dtype(const ps_cpu_frame *frame, int64_t first, int64_t n, bool subtract_mean, int64_t stride, \
                                         real *scans) {                                                                           \
        int64_t positions = ps_cpu_positions(&frame->system->desc), active = frame->system->desc.n_active;                        \
        type marker = (type)ps_dtype_marker(dtype);                                                                               \
        bool has_marker = marker != 0;                                                                                            \
        for (int64_t position = 0; position < positions; position++) {                                                            \
            const type *counts = (const type *)frame->counts + position * active + first;                                         \
            for (int64_t i = 0; i < n; i++) {                                                                                     \
                bool is_marked = (has_marker && counts[i] == marker) || (dtype >= PS_F32 && !isfinite((double)counts[i]));        \
                double value = is_marked ? 0.0 : (double)counts[i];                                                               \
                scans[i * stride + position] = (real)(subtract_mean ? value - frame->mean[first + i] : value);                    \
            }                                                                                                                     \
        }                                                                                                                         \
    }
#define X(dtype, type, name)               \
    DEFINE_SCANS(dtype, type, double, f64) \
    DEFINE_SCANS(dtype, type, float, f32)
PS_DTYPES(X)
#undef X
#undef DEFINE_SCANS

void ps_cpu_scans_f64(const ps_cpu_frame *frame, int64_t first_slot, int64_t n_slots, bool subtract_mean, int64_t stride, double *scans) {
    switch (frame->dtype) {
#define X(dtype, type, name) \
    case dtype: scans_f64_##dtype(frame, first_slot, n_slots, subtract_mean, stride, scans); break;
        PS_DTYPES(X)
#undef X
    default: break;
    }
}

void ps_cpu_scans_f32(const ps_cpu_frame *frame, int64_t first_slot, int64_t n_slots, bool subtract_mean, int64_t stride, float *scans) {
    switch (frame->dtype) {
#define X(dtype, type, name) \
    case dtype: scans_f32_##dtype(frame, first_slot, n_slots, subtract_mean, stride, scans); break;
        PS_DTYPES(X)
#undef X
    default: break;
    }
}

ps_code ps_cpu_solve_require(const ps_cpu_frame *frame, ps_methods method, int64_t n_strengths, const ps_strength *strengths,
                             const ps_solution *solution, ps_error *error) {
    if (method != PS_METHOD_PHASE && method != PS_METHOD_COMPLEX)
        return PS_FAIL(error, PS_E_ARGUMENT, "method %u cannot be solved, expected phase or complex", method);
    PS_TRY(ps_cpu_frame_require(frame, method, error));
    if (method == PS_METHOD_PHASE && (solution->log_amplitude_f32 || solution->log_amplitude_f64))
        return PS_FAIL(error, PS_E_ARGUMENT, "the phase method has no log-amplitude");
    for (int64_t i = 0; i < n_strengths; i++) {
        bool good = strengths[i].phase > 0.0 && isfinite(strengths[i].phase);
        if (method == PS_METHOD_COMPLEX) good = good && strengths[i].amplitude > 0.0 && isfinite(strengths[i].amplitude);
        if (!good)
            return PS_FAIL(error, PS_E_ARGUMENT, "strength %lld is (%g, %g), expected positive numbers", (long long)i,
                           strengths[i].amplitude, strengths[i].phase);
    }
    return PS_OK;
}
