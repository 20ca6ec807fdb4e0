/* A frame of either CPU path: its memory, and the sums that a reduction leaves in it. */
#include <assert.h>
#include <string.h>

#include "core/assert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/memory.h"

size_t ps_cpu_frame_bytes(const ps_system_desc *desc, ps_methods methods, ps_dtype dtype) {
    size_t positions = (size_t)ps_cpu_positions(desc), active = (size_t)desc->n_active;
    size_t sums = methods & PS_METHOD_COMPLEX ? 2 : methods & PS_METHODS_RIGHT_SIDE ? 1 : 0;
    sums += methods & PS_METHOD_SSB ? 1 : 0;
    size_t put = positions * sizeof(uint8_t); /* ps_frame's is_put */
    return sizeof(ps_cpu_frame) + positions * active * ps_dtype_bytes(dtype) + put + active * (sizeof(double) + sizeof(int64_t)) +
           (size_t)desc->n_aliases * sums * sizeof(double complex) + (size_t)desc->n_frequencies * sizeof(double);
}

static ps_code allocate_counts(ps_cpu_frame *frame, ps_error *error) {
    size_t positions = (size_t)ps_cpu_positions(&frame->system->desc), active = (size_t)frame->system->desc.n_active;
    frame->counts = ps_cpu_allocate(positions * active, ps_dtype_bytes(frame->dtype));
    frame->mean = ps_cpu_allocate(active, sizeof *frame->mean);
    frame->n_marked = ps_cpu_allocate(active, sizeof *frame->n_marked);
    if (frame->counts && frame->mean && frame->n_marked) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the counts of %zu positions and %zu active pixels", positions, active);
}

static ps_code allocate_sums(ps_cpu_frame *frame, ps_methods methods, ps_error *error) {
    const ps_system_desc *desc = &frame->system->desc;
    size_t n = (size_t)desc->n_aliases;
    bool amplitude = methods & PS_METHOD_COMPLEX, phase = methods & PS_METHODS_RIGHT_SIDE, ssb = methods & PS_METHOD_SSB;
    frame->right_amplitude = amplitude ? ps_cpu_allocate(n, sizeof *frame->right_amplitude) : NULL;
    frame->right_phase = phase ? ps_cpu_allocate(n, sizeof *frame->right_phase) : NULL;
    frame->ssb = ssb ? ps_cpu_allocate(n, sizeof *frame->ssb) : NULL;
    frame->data_norm = ps_cpu_allocate((size_t)desc->n_frequencies, sizeof *frame->data_norm);
    if ((amplitude && !frame->right_amplitude) || (phase && !frame->right_phase) || (ssb && !frame->ssb) || !frame->data_norm)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the right sides of %zu aliases", n);
    return PS_OK;
}

ps_code ps_cpu_frame_create(ps_system *system, ps_dtype dtype, ps_frame **handle, ps_error *error) {
    ps_code code = PS_OK;
    ps_cpu_frame *frame = ps_cpu_allocate_zero(1, sizeof *frame);
    PS_GO_ALLOC(error, frame);
    frame->system = (ps_cpu_system *)system;
    frame->dtype = dtype;
    PS_GO(allocate_counts(frame, error));
    PS_GO(allocate_sums(frame, frame->system->methods, error));
    *handle = &frame->base;
done:
    if (code != PS_OK && frame) ps_cpu_frame_destroy(&frame->base);
    return code;
}

void ps_cpu_frame_destroy(ps_frame *handle) {
    ps_cpu_frame *frame = (ps_cpu_frame *)handle;
    void *arrays[] = {frame->counts, frame->mean, frame->n_marked, frame->right_amplitude, frame->right_phase, frame->ssb, frame->data_norm,
                      frame->g,      frame};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) ps_cpu_free(arrays[i]);
}

static void clear_sums(ps_cpu_frame *frame) {
    const ps_system_desc *desc = &frame->system->desc;
    size_t bytes = (size_t)desc->n_aliases * sizeof(double complex);
    if (frame->right_amplitude) memset(frame->right_amplitude, 0, bytes);
    if (frame->right_phase) memset(frame->right_phase, 0, bytes);
    if (frame->ssb) memset(frame->ssb, 0, bytes);
    memset(frame->data_norm, 0, (size_t)desc->n_frequencies * sizeof *frame->data_norm);
}

ps_code ps_cpu_frames_begin(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    for (int64_t i = 0; i < n_frames; i++) PS_TRY(ps_cpu_frame_ensure_means((ps_cpu_frame *)frames[i], error));
    for (int64_t i = 0; i < n_frames; i++) {
        ps_cpu_frame *frame = (ps_cpu_frame *)frames[i];
        clear_sums(frame);
        frame->dose = dose[i];
    }
    return PS_OK;
}

ps_code ps_cpu_frame_data_norm(ps_frame *handle, double *data_norm, ps_error *error) {
    (void)error;
    const ps_cpu_frame *frame = (const ps_cpu_frame *)handle;
    assert(handle->is_reduced);
    *data_norm = 0.0;
    for (int64_t i = 1; i < frame->system->desc.n_frequencies; i++)
        *data_norm += frame->system->desc.frequencies[i].multiplicity * frame->data_norm[i];
    return PS_OK;
}

ps_code ps_cpu_frame_get_right_side(ps_frame *handle, ps_methods method, int64_t frequency, double *right_side, double *data_norm,
                                    ps_error *error) {
    (void)error;
    const ps_cpu_frame *frame = (const ps_cpu_frame *)handle;
    const ps_frequency *f = &frame->system->desc.frequencies[frequency];
    size_t bytes = (size_t)f->n_aliases * sizeof(double complex);
    bool both = method == PS_METHOD_COMPLEX;
    assert(handle->is_reduced);
    if (both) memcpy(right_side, frame->right_amplitude + f->first_alias, bytes);
    memcpy(right_side + (both ? 2 * f->n_aliases : 0), frame->right_phase + f->first_alias, bytes);
    if (data_norm) *data_norm = frame->data_norm[frequency];
    return PS_OK;
}

void ps_cpu_write_image(int64_t n, const double *image, float *f32, double *f64) {
    PS_ASSERT(n > 0 && image);
    for (int64_t i = 0; i < n; i++) {
        if (f32) f32[i] = (float)image[i];
        if (f64) f64[i] = image[i];
    }
}
