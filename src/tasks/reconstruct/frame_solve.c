#include "tasks/reconstruct/frame_solve.h"

#include <math.h>
#include <stdlib.h>

#include "core/log.h"
#include "method/curves.h"

typedef struct {
    const ps_job_method *job;
    ps_methods method;
    int64_t n_curve;
    ps_strength *curve;                     /* [n_curve] the strengths the curves are at */
    float *phase, *log_amplitude;           /* [job->n_strengths, image] */
    double *residual, *effective_dof, *gcv; /* [n_curve] */
    ps_method_result result;
} method_buffers;

struct ps_frame_solver {
    const ps_job *job;
    method_buffers phase, complex_;
    float *ssb_phase;
};

static void free_method(method_buffers *buffers) {
    free(buffers->curve);
    free(buffers->phase);
    free(buffers->log_amplitude);
    free(buffers->residual);
    free(buffers->effective_dof);
    free(buffers->gcv);
}

static void fill_curve(method_buffers *buffers) {
    double grid[PS_N_CURVE_STRENGTHS];
    ps_curve_strengths(grid);
    for (int64_t i = 0; i < buffers->n_curve; i++)
        buffers->curve[i] = buffers->job->automatic ? (ps_strength){grid[i], grid[i]} : buffers->job->strengths[i];
}

static ps_code allocate_method(method_buffers *buffers, const ps_job_method *job, ps_methods method, size_t image, ps_error *error) {
    ps_code code = PS_OK;
    *buffers = (method_buffers){.job = job, .method = method};
    buffers->n_curve = job->automatic ? PS_N_CURVE_STRENGTHS : job->n_strengths;
    size_t n_curve = (size_t)buffers->n_curve, n_images = (size_t)job->n_strengths * image;
    PS_GO_ALLOC(error, buffers->curve = malloc(n_curve * sizeof *buffers->curve));
    PS_GO_ALLOC(error, buffers->residual = malloc(n_curve * sizeof(double)));
    PS_GO_ALLOC(error, buffers->effective_dof = malloc(n_curve * sizeof(double)));
    PS_GO_ALLOC(error, buffers->gcv = malloc(n_curve * sizeof(double)));
    PS_GO_ALLOC(error, buffers->phase = malloc(n_images * sizeof(float)));
    if (method == PS_METHOD_COMPLEX) PS_GO_ALLOC(error, buffers->log_amplitude = malloc(n_images * sizeof(float)));
    fill_curve(buffers);
done:
    return code;
}

ps_code ps_frame_solver_create(const ps_job *job, int64_t image_rows, int64_t image_columns, ps_frame_solver **created, ps_error *error) {
    ps_code code = PS_OK;
    size_t image = (size_t)image_rows * (size_t)image_columns;
    *created = NULL;
    ps_frame_solver *solver = calloc(1, sizeof *solver);
    PS_GO_ALLOC(error, solver);
    solver->job = job;
    if (job->phase.enabled) PS_GO(allocate_method(&solver->phase, &job->phase, PS_METHOD_PHASE, image, error));
    if (job->complex_.enabled) PS_GO(allocate_method(&solver->complex_, &job->complex_, PS_METHOD_COMPLEX, image, error));
    if (job->ssb_enabled) PS_GO_ALLOC(error, solver->ssb_phase = malloc(image * sizeof(float)));
    *created = solver;
    solver = NULL;
done:
    ps_frame_solver_destroy(solver);
    return code;
}

void ps_frame_solver_destroy(ps_frame_solver *solver) {
    if (!solver) return;
    free_method(&solver->phase);
    free_method(&solver->complex_);
    free(solver->ssb_phase);
    free(solver);
}

size_t ps_frame_solver_bytes(const ps_job *job, int64_t image_rows, int64_t image_columns) {
    size_t image = (size_t)image_rows * (size_t)image_columns * sizeof(float), n_images = job->ssb_enabled;
    if (job->phase.enabled) n_images += (size_t)job->phase.n_strengths;
    if (job->complex_.enabled) n_images += 2 * (size_t)job->complex_.n_strengths;
    return n_images * image;
}

/* Curves first, when the strength is to be chosen from them; then the images. */
static ps_code solve_method(method_buffers *buffers, ps_frame *frame, double n_data, ps_error *error) {
    ps_solution curves = {.residual = buffers->residual, .effective_dof = buffers->effective_dof};
    ps_solution images = {.phase_f32 = buffers->phase, .log_amplitude_f32 = buffers->log_amplitude};
    if (!buffers->job->automatic) {
        images.residual = buffers->residual;
        images.effective_dof = buffers->effective_dof;
        curves = images;
    }
    PS_TRY(ps_system_solve(frame, buffers->method, buffers->n_curve, buffers->curve, &curves, error));
    int64_t least = ps_curve_gcv(buffers->n_curve, buffers->residual, buffers->effective_dof, n_data, buffers->gcv);
    if (buffers->job->automatic) PS_TRY(ps_system_solve(frame, buffers->method, 1, &buffers->curve[least], &images, error));
    buffers->result = (ps_method_result){.phase = buffers->phase,
                                         .log_amplitude = buffers->log_amplitude,
                                         .residual = buffers->residual,
                                         .effective_dof = buffers->effective_dof,
                                         .gcv = buffers->gcv,
                                         .chosen_strength = buffers->curve[least].phase};
    return PS_OK;
}

ps_code ps_frame_solve(ps_frame_solver *solver, ps_frame *frame, double n_data, ps_frame_result *result, ps_error *error) {
    const ps_job *job = solver->job;
    double begin_s = ps_seconds();
    result->ssb_loss = NAN;
    if (job->phase.enabled || job->complex_.enabled) PS_TRY(ps_frame_data_norm(frame, &result->data_norm, error));
    if (job->phase.enabled) PS_TRY(solve_method(&solver->phase, frame, n_data, error));
    if (job->complex_.enabled) PS_TRY(solve_method(&solver->complex_, frame, n_data, error));
    result->phase = job->phase.enabled ? &solver->phase.result : NULL;
    result->complex_ = job->complex_.enabled ? &solver->complex_.result : NULL;
    result->seconds[PS_STAGE_SOLVE] += ps_seconds() - begin_s;
    begin_s = ps_seconds();
    if (job->ssb_enabled) {
        double *loss = job->ssb_estimator == PS_SSB_PHASE ? &result->ssb_loss : NULL;
        PS_TRY(ps_frame_ssb(frame, job->ssb_estimator, solver->ssb_phase, NULL, loss, error));
        result->ssb_phase = solver->ssb_phase;
    }
    result->seconds[PS_STAGE_SSB] += ps_seconds() - begin_s;
    return PS_OK;
}
