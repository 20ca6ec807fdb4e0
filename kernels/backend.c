/* The functions of kernels/backend.h: arguments are checked, defaults filled in, then the backend's operation is called. The order
 * of operations is watched here too: what is uploaded, prepared and reduced. */
#include "kernels/backend.h"

#include <stdlib.h>
#include <string.h>

#include "core/busy.h"
#include "kernels/backend_bench.h"
#include "kernels/backend_check.h"
#include "kernels/backend_default.h"
#include "kernels/backend_unpack.h"

/* What is busy while a backend computes, and while counts are handed to it (core/busy.h). */
static ps_resource computes(const ps_backend_ops *ops) {
    return ops->device_count ? PS_RESOURCE_DEVICE : PS_RESOURCE_CORES;
}

static ps_resource moves(const ps_backend_ops *ops) {
    return ops->device_count ? PS_RESOURCE_BUS : PS_RESOURCE_CORES;
}

/* --- backends --- */

ps_code ps_backend_open(const ps_backend_ops *ops, const ps_backend_options *options, ps_backend **backend, ps_error *error) {
    PS_CHECK_POINTER(ops);
    PS_CHECK_POINTER(backend);
    *backend = NULL;
    ps_backend_options filled = options ? *options : (ps_backend_options){0};
    PS_TRY(ps_check_operations(ops, error));
    PS_TRY(ps_check_options(ops, &filled, error));
    if (filled.n_sharing == 0) filled.n_sharing = 1;
    PS_TRY(ops->open(&filled, backend, error));
    (*backend)->ops = ops;
    return PS_OK;
}

void ps_backend_close(ps_backend *backend) {
    if (backend) backend->ops->close(backend);
}

void ps_backend_info(const ps_backend *backend, ps_device_info *info) {
    backend->ops->device_info(backend, info);
}

ps_code ps_backend_memory_plan(const ps_backend_ops *ops, const ps_system_desc *desc, ps_methods methods, ps_dtype dtype,
                               size_t budget_bytes, int64_t max_frames, ps_memory_plan *plan, ps_error *error) {
    PS_CHECK_POINTER(ops);
    PS_CHECK_POINTER(desc);
    PS_CHECK_POINTER(plan);
    *plan = (ps_memory_plan){0};
    PS_TRY(ps_check_operations(ops, error));
    PS_TRY(ps_check_desc(desc, error));
    PS_TRY(ps_check_methods(ops, methods, error));
    PS_TRY(ps_check_dtype(dtype, error));
    if (max_frames < 1) return PS_FAIL(error, PS_E_ARGUMENT, "a batch of %lld frames, expected 1 or more", (long long)max_frames);
    return ops->memory_plan(desc, methods, dtype, budget_bytes, max_frames, plan, error);
}

/* --- systems --- */

static ps_code fill_system(ps_system *system, ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_error *error) {
    system->ops = backend->ops;
    system->backend = backend;
    system->methods = methods;
    system->n_active = desc->n_active;
    system->n_positions = desc->scan_rows * desc->scan_columns;
    system->n_frequencies = desc->n_frequencies;
    system->n_pixels = desc->detector_rows * desc->detector_columns;
    system->n_image_pixels = system->n_positions * desc->upsampling * desc->upsampling;
    system->frequencies = NULL;
    system->is_prepared = false;
    if (backend->ops->frame_data_norm && backend->ops->system_scales) return PS_OK;
    system->frequencies = malloc((size_t)desc->n_frequencies * sizeof *system->frequencies);
    if (!system->frequencies)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld frequencies", (long long)desc->n_frequencies);
    memcpy(system->frequencies, desc->frequencies, (size_t)desc->n_frequencies * sizeof *system->frequencies);
    return PS_OK;
}

ps_code ps_system_create(ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_system **system, ps_error *error) {
    PS_CHECK_POINTER(backend);
    PS_CHECK_POINTER(desc);
    PS_CHECK_POINTER(system);
    *system = NULL;
    PS_TRY(ps_check_desc(desc, error));
    PS_TRY(ps_check_methods(backend->ops, methods, error));
    PS_TRY(backend->ops->system_create(backend, desc, methods, system, error));
    ps_code code = fill_system(*system, backend, desc, methods, error);
    if (code == PS_OK) return PS_OK;
    ps_system_destroy(*system);
    *system = NULL;
    return code;
}

void ps_system_destroy(ps_system *system) {
    if (!system) return;
    free(system->frequencies);
    system->ops->system_destroy(system);
}

ps_code ps_system_set_weights(ps_system *system, const double *weights, ps_error *error) {
    PS_CHECK_POINTER(system);
    PS_CHECK_POINTER(weights);
    PS_CHECK_HOST(system->backend, weights);
    PS_TRY(ps_check_positive("weight of active pixel", system->n_active, weights, error));
    system->is_prepared = false;
    return system->ops->system_set_weights(system, weights, error);
}

ps_code ps_system_prepare(ps_system *system, ps_error *error) {
    PS_CHECK_POINTER(system);
    system->is_prepared = false;
    PS_TRY(PS_BUSY(computes(system->ops), system->ops->system_prepare(system, error)));
    system->is_prepared = true;
    return PS_OK;
}

ps_code ps_system_scales(ps_system *system, ps_methods method, double *amplitude, double *phase, ps_error *error) {
    double found[2];
    PS_CHECK_POINTER(system);
    PS_TRY(ps_check_solvable(system, method, error));
    if (system->ops->system_scales)
        PS_TRY(system->ops->system_scales(system, method, &found[0], &found[1], error));
    else
        PS_TRY(ps_default_scales(system, method, &found[0], &found[1], error));
    if (amplitude) *amplitude = found[0];
    if (phase) *phase = found[1];
    return PS_OK;
}

/* --- frames --- */

static ps_code fill_frame(ps_frame *frame, ps_system *system, ps_dtype dtype, ps_error *error) {
    frame->ops = system->ops;
    frame->system = system;
    frame->dtype = dtype;
    frame->n_put = 0;
    frame->is_reduced = false;
    frame->unpacking = NULL;
    frame->is_put = calloc((size_t)system->n_positions, sizeof *frame->is_put);
    if (frame->is_put) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a frame of %lld positions", (long long)system->n_positions);
}

ps_code ps_frame_create(ps_system *system, ps_dtype dtype, ps_frame **frame, ps_error *error) {
    PS_CHECK_POINTER(system);
    PS_CHECK_POINTER(frame);
    *frame = NULL;
    PS_TRY(ps_check_dtype(dtype, error));
    PS_TRY(system->ops->frame_create(system, dtype, frame, error));
    ps_code code = fill_frame(*frame, system, dtype, error);
    if (code == PS_OK) return PS_OK;
    ps_frame_destroy(*frame);
    *frame = NULL;
    return code;
}

void ps_frame_destroy(ps_frame *frame) {
    if (!frame) return;
    ps_unpack_abandon(frame);
    free(frame->is_put);
    frame->ops->frame_destroy(frame);
}

ps_code ps_frame_upload(ps_frame *frame, int64_t first_position, int64_t n_positions, const void *counts, ps_error *error) {
    PS_CHECK_POINTER(frame);
    PS_TRY(ps_check_positions(frame, first_position, n_positions, error));
    if (n_positions == 0) return PS_OK;
    PS_CHECK_POINTER(counts);
    PS_CHECK_HOST(frame->system->backend, counts);
    if (frame->unpacking) return PS_FAIL(error, PS_E_ARGUMENT, "counts put into a frame that takes packed patterns");
    memset(frame->is_put + first_position, 1, (size_t)n_positions);
    frame->n_put += n_positions;
    return PS_BUSY(moves(frame->ops), frame->ops->frame_upload(frame, first_position, n_positions, counts, error));
}

ps_code ps_bench_fill(ps_frame *frame, uint64_t seed, double *gather_s, ps_error *error) {
    PS_CHECK_POINTER(frame);
    if (!frame->ops->bench) return PS_FAIL(error, PS_E_ARGUMENT, "backend %s makes no counts of its own", frame->ops->name);
    if (frame->dtype != PS_U16)
        return PS_FAIL(error, PS_E_ARGUMENT, "counts are made as uint16, the frame holds %s", ps_dtype_name(frame->dtype));
    frame->is_reduced = false;
    frame->n_put = frame->system->n_positions;
    memset(frame->is_put, 1, (size_t)frame->n_put);
    return frame->ops->bench->fill(frame, seed, gather_s, error);
}

ps_code ps_frame_mean_counts(ps_frame *frame, double *mean, int64_t *n_marked, ps_error *error) {
    PS_CHECK_POINTER(frame);
    PS_CHECK_HOST(frame->system->backend, mean);
    PS_CHECK_HOST(frame->system->backend, n_marked);
    PS_TRY(ps_check_complete(frame, error));
    return PS_BUSY(computes(frame->ops), frame->ops->frame_mean_counts(frame, mean, n_marked, error));
}

ps_code ps_frame_reduce(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    if (n_frames < 0) return PS_FAIL(error, PS_E_ARGUMENT, "a batch of %lld frames, expected 0 or more", (long long)n_frames);
    if (n_frames == 0) return PS_OK;
    PS_CHECK_POINTER(frames);
    PS_CHECK_POINTER(dose);
    PS_TRY(ps_check_batch(frames, n_frames, dose, error));
    PS_CHECK_HOST(frames[0]->system->backend, dose);
    for (int64_t i = 0; i < n_frames; i++) frames[i]->is_reduced = false;
    PS_TRY(PS_BUSY(computes(frames[0]->ops), frames[0]->ops->frame_reduce(frames, n_frames, dose, error)));
    for (int64_t i = 0; i < n_frames; i++) frames[i]->is_reduced = true;
    return PS_OK;
}

/* --- answers --- */

static ps_code check_solution(const ps_frame *frame, ps_methods method, int64_t n_strengths, const ps_solution *solution, ps_error *error) {
    const ps_backend *backend = frame->system->backend;
    bool twice = (solution->phases_f32 && solution->phase_f32) || (solution->log_amplitudes_f32 && solution->log_amplitude_f32);
    if (twice) return PS_FAIL(error, PS_E_ARGUMENT, "images of a solution have two places each, expected one");
    if (method == PS_METHOD_PHASE && ps_solution_wants_log_amplitude(solution))
        return PS_FAIL(error, PS_E_ARGUMENT, "the phase method has no log-amplitude");
    const void *outputs[] = {solution->phase_f32,         solution->phase_f64, solution->log_amplitude_f32,
                             solution->log_amplitude_f64, solution->residual,  solution->effective_dof};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        PS_TRY(ps_check_host("ps_system_solve", "an array of the solution", backend, outputs[i], error));
    float *const *lists[] = {solution->phases_f32, solution->log_amplitudes_f32};
    for (int list = 0; list < 2; list++)
        for (int64_t i = 0; lists[list] && i < n_strengths; i++) {
            PS_TRY(ps_check_pointer("ps_system_solve", "an image of the solution", lists[list][i], error));
            PS_TRY(ps_check_host("ps_system_solve", "an image of the solution", backend, lists[list][i], error));
        }
    return PS_OK;
}

ps_code ps_system_solve(ps_frame *frame, ps_methods method, int64_t n_strengths, const ps_strength *strengths, const ps_solution *solution,
                        ps_error *error) {
    PS_CHECK_POINTER(frame);
    PS_CHECK_POINTER(solution);
    PS_TRY(ps_check_solvable(frame->system, method, error));
    PS_TRY(ps_check_reduced(frame, error));
    PS_TRY(ps_check_strengths(method, n_strengths, strengths, error));
    PS_TRY(check_solution(frame, method, n_strengths, solution, error));
    if (n_strengths == 0) return PS_OK;
    return PS_BUSY(computes(frame->ops), frame->ops->solve(frame, method, n_strengths, strengths, solution, error));
}

ps_code ps_frame_ssb(ps_frame *frame, ps_ssb_estimator estimator, float *phase_f32, double *phase_f64, double *loss, ps_error *error) {
    PS_CHECK_POINTER(frame);
    if (estimator != PS_SSB_WAVE && estimator != PS_SSB_PHASE)
        return PS_FAIL(error, PS_E_ARGUMENT, "unknown SSB estimator %d", (int)estimator);
    if (estimator == PS_SSB_WAVE && loss) return PS_FAIL(error, PS_E_ARGUMENT, "the SSB estimator wave has no loss");
    PS_CHECK_HOST(frame->system->backend, phase_f32);
    PS_CHECK_HOST(frame->system->backend, phase_f64);
    PS_CHECK_HOST(frame->system->backend, loss);
    PS_TRY(ps_check_enabled(frame->system, PS_METHOD_SSB, error));
    PS_TRY(ps_check_reduced(frame, error));
    return PS_BUSY(computes(frame->ops), frame->ops->ssb(frame, estimator, phase_f32, phase_f64, loss, error));
}

ps_code ps_frame_right_side_image(ps_frame *frame, float *image_f32, double *image_f64, ps_error *error) {
    PS_CHECK_POINTER(frame);
    PS_CHECK_HOST(frame->system->backend, image_f32);
    PS_CHECK_HOST(frame->system->backend, image_f64);
    PS_TRY(ps_check_enabled(frame->system, PS_METHOD_MF, error));
    PS_TRY(ps_check_reduced(frame, error));
    return PS_BUSY(computes(frame->ops), frame->ops->right_side_image(frame, image_f32, image_f64, error));
}

int64_t ps_frame_image_pixels(const ps_frame *frame) {
    return frame->system->n_image_pixels;
}

ps_code ps_frame_data_norm(ps_frame *frame, double *data_norm, ps_error *error) {
    PS_CHECK_POINTER(frame);
    PS_CHECK_POINTER(data_norm);
    PS_CHECK_HOST(frame->system->backend, data_norm);
    PS_TRY(ps_check_reduced(frame, error));
    return PS_BUSY(computes(frame->ops), frame->ops->frame_data_norm ? frame->ops->frame_data_norm(frame, data_norm, error)
                                                                     : ps_default_data_norm(frame, data_norm, error));
}

/* --- inspection --- */

ps_code ps_system_get_transfer(ps_system *system, int64_t frequency, double *transfer, ps_error *error) {
    PS_CHECK_POINTER(system);
    PS_CHECK_POINTER(transfer);
    PS_CHECK_HOST(system->backend, transfer);
    PS_TRY(ps_check_frequency(system, frequency, error));
    return system->ops->get_transfer(system, frequency, transfer, error);
}

ps_code ps_system_get_normal(ps_system *system, ps_methods method, int64_t frequency, double *normal, ps_error *error) {
    PS_CHECK_POINTER(system);
    PS_CHECK_POINTER(normal);
    PS_CHECK_HOST(system->backend, normal);
    PS_TRY(ps_check_frequency(system, frequency, error));
    PS_TRY(ps_check_solvable(system, method, error));
    return system->ops->get_normal(system, method, frequency, normal, error);
}

ps_code ps_system_get_eigenvalues(ps_system *system, int64_t frequency, double *eigenvalues, ps_error *error) {
    PS_CHECK_POINTER(system);
    PS_CHECK_POINTER(eigenvalues);
    PS_CHECK_HOST(system->backend, eigenvalues);
    PS_TRY(ps_check_frequency(system, frequency, error));
    PS_TRY(ps_check_enabled(system, PS_METHOD_PHASE, error));
    return system->ops->get_eigenvalues(system, frequency, eigenvalues, error);
}

ps_code ps_frame_get_right_side(ps_frame *frame, ps_methods method, int64_t frequency, double *right_side, double *data_norm,
                                ps_error *error) {
    PS_CHECK_POINTER(frame);
    PS_CHECK_POINTER(right_side);
    PS_CHECK_HOST(frame->system->backend, right_side);
    PS_CHECK_HOST(frame->system->backend, data_norm);
    PS_TRY(ps_check_frequency(frame->system, frequency, error));
    PS_TRY(ps_check_right_side(frame->system, method, error));
    PS_TRY(ps_check_reduced(frame, error));
    return frame->ops->get_right_side(frame, method, frequency, right_side, data_norm, error);
}

ps_code ps_frame_get_data_norms(ps_frame *frame, double *data_norms, ps_error *error) {
    PS_CHECK_POINTER(frame);
    PS_CHECK_POINTER(data_norms);
    PS_CHECK_HOST(frame->system->backend, data_norms);
    PS_TRY(ps_check_reduced(frame, error));
    PS_TRY(frame->ops->get_data_norms ? frame->ops->get_data_norms(frame, data_norms, error)
                                      : ps_default_data_norms(frame, data_norms, error));
    data_norms[0] = 0.0;
    return PS_OK;
}

ps_code ps_frame_get_spectrum(ps_frame *frame, int64_t frequency, double dose, double *spectrum, ps_error *error) {
    PS_CHECK_POINTER(frame);
    PS_CHECK_POINTER(spectrum);
    PS_CHECK_HOST(frame->system->backend, spectrum);
    PS_TRY(ps_check_frequency(frame->system, frequency, error));
    PS_TRY(ps_check_positive("dose of frame", 1, &dose, error));
    PS_TRY(ps_check_complete(frame, error));
    return frame->ops->get_spectrum(frame, frequency, dose, spectrum, error);
}
