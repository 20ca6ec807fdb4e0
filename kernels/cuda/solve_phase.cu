/* The phase method's answers from the eigenbasis, physics section 5: with c = V^H prior^-1/2 b and eigenvalues e, a strength mu (times the
 * scale) gives
 *     x = prior^-1/2 V c / (e + mu),  residual = data norm - sum |c|^2 (e + 2 mu)/(e + mu)^2,  effective degrees of freedom = sum e/(e +
 * mu).
 *
 * project_kernel, solution_kernel: one alias a thread; bytes: V once (16 n_aliases per alias). The curves: one frequency a
 * thread. Bound by memory, a few tens of microseconds. */
#include "kernels/cuda/operations.h"
#include "kernels/cuda/sum.cuh"

enum { THREADS = 128 };

typedef struct {
    const ps_cuda_frequency *frequencies;
    const int32_t *alias_frequency;
    int64_t n_aliases;
    const double2 *basis;
    const double *eigenvalues, *prior;
} basis_data;

static basis_data basis_of(const ps_cuda_system *system) {
    basis_data data = {system->d_frequencies, system->d_alias_frequency, system->desc.n_aliases,
                       system->d_basis,       system->d_eigenvalues,     system->d_prior_phase};
    return data;
}

/* projection, right: [n_aliases] */
static __global__ void __launch_bounds__(THREADS) project_kernel(basis_data data, const double2 *right, double2 *projection) {
    int64_t alias = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (alias >= data.n_aliases) return;
    int32_t frequency = data.alias_frequency[alias];
    double2 sum = make_double2(0.0, 0.0);
    if (frequency > 0) {
        const ps_cuda_frequency f = data.frequencies[frequency];
        int j = (int)(alias - f.first_alias);
        for (int a = 0; a < f.n_aliases; a++) {
            double2 v = data.basis[f.basis + (int64_t)a * f.n_aliases + j], b = right[f.first_alias + a];
            double scale = 1.0 / sqrt(data.prior[f.first_alias + a]);
            sum.x += scale * fma(v.x, b.x, v.y * b.y);
            sum.y += scale * fma(v.x, b.y, -v.y * b.x);
        }
    }
    projection[alias] = sum;
}

static __global__ void __launch_bounds__(THREADS) solution_kernel(basis_data data, const double2 *projection, double mu, double2 *x) {
    int64_t alias = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (alias >= data.n_aliases) return;
    int32_t frequency = data.alias_frequency[alias];
    double2 sum = make_double2(0.0, 0.0);
    if (frequency > 0) {
        const ps_cuda_frequency f = data.frequencies[frequency];
        const double2 *row = data.basis + f.basis + (alias - f.first_alias) * f.n_aliases;
        for (int j = 0; j < f.n_aliases; j++) {
            double2 v = row[j], c = projection[f.first_alias + j];
            double scale = 1.0 / (data.eigenvalues[f.first_alias + j] + mu);
            sum.x += scale * fma(v.x, c.x, -v.y * c.y);
            sum.y += scale * fma(v.x, c.y, v.y * c.x);
        }
    }
    double scale = 1.0 / sqrt(data.prior[alias]);
    x[alias] = make_double2(scale * sum.x, scale * sum.y);
}

struct residual_value {
    basis_data data;
    const double2 *projection;
    const double *data_norm;
    double mu;
    __device__ double operator()(int64_t i) const {
        const ps_cuda_frequency f = data.frequencies[i];
        if (f.multiplicity == 0.0) return 0.0;
        double sum = data_norm[i];
        for (int j = 0; j < f.n_aliases; j++) {
            double2 c = projection[f.first_alias + j];
            double e = data.eigenvalues[f.first_alias + j], shifted = e + mu;
            sum -= fma(c.x, c.x, c.y * c.y) * (shifted + mu) / (shifted * shifted);
        }
        return f.multiplicity * sum;
    }
};

struct effective_dof_value {
    basis_data data;
    double mu;
    __device__ double operator()(int64_t i) const {
        const ps_cuda_frequency f = data.frequencies[i];
        double sum = 0.0;
        for (int j = 0; f.multiplicity > 0.0 && j < f.n_aliases; j++) {
            double e = data.eigenvalues[f.first_alias + j];
            sum += e / (e + mu);
        }
        return f.multiplicity * sum;
    }
};

ps_code ps_cuda_project(ps_cuda_frame *frame, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    if (system->desc.n_aliases == 0) return PS_OK;
    PS_CUDA_LAUNCH(error, project_kernel, (unsigned)ps_cuda_blocks(system->desc.n_aliases, THREADS), THREADS, 0, system->backend->compute,
                   basis_of(system), (const double2 *)frame->d_right_phase, frame->d_projection);
    return PS_OK;
}

ps_code ps_cuda_solve_phase(ps_cuda_frame *frame, ps_strength strength, const ps_cuda_answer *answer, ps_error *error) {
    ps_cuda_system *system = frame->system;
    double mu = strength.phase * system->scale_phase;
    basis_data data = basis_of(system);
    if (answer->x_phase)
        PS_CUDA_LAUNCH(error, solution_kernel, (unsigned)ps_cuda_blocks(system->desc.n_aliases, THREADS), THREADS, 0,
                       system->backend->compute, data, (const double2 *)frame->d_projection, mu, answer->x_phase);
    if (answer->residual) {
        residual_value value = {data, frame->d_projection, frame->d_data_norm, mu};
        PS_TRY(ps_cuda_sum(system, value, system->desc.n_frequencies, answer->residual, error));
    }
    if (answer->effective_dof) {
        effective_dof_value value = {data, mu};
        PS_TRY(ps_cuda_sum(system, value, system->desc.n_frequencies, answer->effective_dof, error));
    }
    return PS_OK;
}
