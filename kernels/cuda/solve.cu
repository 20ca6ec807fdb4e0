/* Answers for a list of strengths: coefficients, curves, images. physics section 5. The kernels are in solve_phase.cu,
 * solve_complex.cu and images.cu; while an image is on its way to the host, the next strength is solved. */
#include <math.h>

#include "kernels/cuda/operations.h"

typedef struct {
    double2 *x_phase, *x_amplitude;
    float *image;
    unsigned char *work;
} buffers;

static buffers take_buffers(const ps_cuda_system *system, ps_cuda_arena *arena) {
    buffers b;
    b.x_phase = ps_cuda_take<double2>(arena, system->desc.n_aliases);
    b.x_amplitude = ps_cuda_take<double2>(arena, system->desc.n_aliases);
    b.image = ps_cuda_take<float>(arena, ps_cuda_image_floats(system));
    b.work = ps_cuda_take<unsigned char>(arena, (int64_t)ps_cuda_image_work(system));
    return b;
}

size_t ps_cuda_solve_scratch(const ps_cuda_system *system) {
    ps_cuda_arena arena = {NULL, 0};
    take_buffers(system, &arena);
    ps_cuda_take<double>(&arena, system->desc.n_frequencies);
    ps_cuda_take<double>(&arena, system->desc.n_frequencies);
    ps_cuda_take<unsigned char>(&arena, (int64_t)ps_cuda_solve_complex_scratch(system));
    return arena.used;
}

/* An image on its way to the host. */
typedef struct {
    bool exists;
    int slot;
    float *f32;
    double *f64;
} pending;

static ps_code finish(ps_cuda_system *system, pending *p, ps_error *error) {
    if (!p->exists) return PS_OK;
    p->exists = false;
    return ps_cuda_download_end(system, p->slot, p->f32, p->f64, error);
}

/* Starts one image and finishes the one before. */
static ps_code send_image(ps_cuda_system *system, const buffers *b, const double2 *x, float *f32, double *f64, pending *p,
                          ps_error *error) {
    if (!f32 && !f64) return PS_OK;
    pending next = {true, p->slot ^ 1, f32, f64};
    PS_TRY(ps_cuda_image(system, x, PS_CUDA_IMAGE_REAL, b->image, b->work, error));
    PS_TRY(ps_cuda_download_begin(system, b->image, next.slot, error));
    ps_code code = finish(system, p, error);
    *p = next;
    return code;
}

static ps_code solve_strength(ps_cuda_frame *frame, ps_methods method, ps_strength strength, const ps_solution *solution, int64_t index,
                              pending *p, ps_error *error) {
    ps_cuda_system *system = frame->system;
    ps_cuda_arena scratch = ps_cuda_scratch(system);
    buffers b = take_buffers(system, &scratch);
    int64_t n = ps_cuda_fine_rows(&system->desc) * ps_cuda_fine_columns(&system->desc);
    bool wants_image = ps_solution_wants_phase(solution) || ps_solution_wants_log_amplitude(solution);
    ps_cuda_answer answer = {wants_image ? b.x_phase : NULL, wants_image ? b.x_amplitude : NULL,
                             solution->residual ? solution->residual + index : NULL,
                             solution->effective_dof ? solution->effective_dof + index : NULL};
    if (method == PS_METHOD_PHASE)
        PS_TRY(ps_cuda_solve_phase(frame, strength, &answer, error));
    else
        PS_TRY(ps_cuda_solve_complex(frame, strength, &answer, scratch, error));
    PS_TRY(send_image(system, &b, b.x_phase, ps_solution_phase_f32(solution, index, n),
                      solution->phase_f64 ? solution->phase_f64 + index * n : NULL, p, error));
    return send_image(system, &b, b.x_amplitude, ps_solution_log_amplitude_f32(solution, index, n),
                      solution->log_amplitude_f64 ? solution->log_amplitude_f64 + index * n : NULL, p, error);
}

static ps_code solve(ps_cuda_frame *frame, ps_methods method, int64_t n_strengths, const ps_strength *strengths,
                     const ps_solution *solution, ps_error *error) {
    ps_cuda_system *system = frame->system;
    pending p = {false, 0, NULL, NULL};
    int64_t tiles;
    PS_TRY(ps_cuda_enter(system->backend, error));
    PS_TRY(ps_cuda_workspace_ensure(system, 1, &tiles, error));
    PS_TRY(ps_cuda_flag_clear(system, error));
    for (int64_t i = 0; i < n_strengths; i++) PS_TRY(solve_strength(frame, method, strengths[i], solution, i, &p, error));
    PS_TRY(finish(system, &p, error));
    PS_TRY(ps_cuda_flag_check(system, "a solution is not finite, or N + D is not positive definite", error));
    for (int64_t i = 0; i < n_strengths; i++)
        if ((solution->residual && !isfinite(solution->residual[i])) || (solution->effective_dof && !isfinite(solution->effective_dof[i])))
            return PS_FAIL(error, PS_E_NUMERIC, "cuda: the residual or effective degrees of freedom of strength %lld is not finite",
                           (long long)i);
    return PS_OK;
}

ps_code ps_cuda_solve(ps_frame *handle, ps_methods method, int64_t n_strengths, const ps_strength *strengths, const ps_solution *solution,
                      ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    pthread_mutex_lock(&frame->system->backend->compute_lock);
    ps_code code = solve(frame, method, n_strengths, strengths, solution, error);
    pthread_mutex_unlock(&frame->system->backend->compute_lock);
    return code;
}
