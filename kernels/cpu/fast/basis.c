/* Tridiagonal bases of N, which serve every strength: docs/physics.md section 5, isa/tridiagonal.c. */
#include <math.h>
#include <omp.h>

#include "kernels/cpu/fast/fast.h"
#include "kernels/cpu/memory.h"

enum { ENTRY = 2 * PS_FAST_LANES };

void ps_fast_form_root(const ps_fast_system *system, const ps_fast_batch *batch, ps_methods method, double ratio, double *root) {
    const ps_system_desc *desc = &system->cpu.desc;
    bool both = method == PS_METHOD_COMPLEX;
    const double *prior = both ? desc->prior_complex : desc->prior_phase;
    for (int lane = 0; lane < PS_FAST_LANES; lane++)
        for (int a = 0; a < batch->n; a++) {
            int64_t frequency = batch->frequency[lane];
            double p = frequency < 0 ? 1.0 : prior[desc->frequencies[frequency].first_alias + a];
            root[(both ? batch->n + a : a) * PS_FAST_LANES + lane] = sqrt(both ? p * system->cpu.scale_phase : p);
            if (both) root[a * PS_FAST_LANES + lane] = sqrt(p * ratio * system->cpu.scale_amplitude);
        }
}

void ps_fast_form_basis(const ps_fast_system *system, const ps_fast_batch *batch, ps_methods method, const double *root, double *basis) {
    int stored = ps_fast_dim(system, batch), dim = method == PS_METHOD_COMPLEX ? stored : batch->n, first = stored - dim;
    const double *normal = system->normal + batch->normal;
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j <= i; j++) {
            const double *from = normal + ((first + i) * (first + i + 1) / 2 + first + j) * ENTRY;
            double *to = basis + (i * (i + 1) / 2 + j) * ENTRY;
            for (int lane = 0; lane < PS_FAST_LANES; lane++) {
                double scale = 1.0 / (root[i * PS_FAST_LANES + lane] * root[j * PS_FAST_LANES + lane]);
                to[lane] = from[lane] * scale;
                to[PS_FAST_LANES + lane] = from[PS_FAST_LANES + lane] * scale;
            }
        }
    system->isa->tridiagonalise(dim, basis, basis + PS_FAST_PACKED(dim));
}

ps_code ps_fast_bases(ps_fast_system *system, ps_error *error) {
    int n_threads = system->cpu.backend->n_threads;
    size_t per_thread = (size_t)ps_cpu_max_aliases(&system->cpu.desc, true) * 2 * PS_FAST_LANES;
    double *roots = ps_cpu_allocate((size_t)n_threads * per_thread, sizeof *roots);
    if (!roots) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the priors of %d threads", n_threads);
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
    for (int64_t i = 0; i < system->n_batches; i++) {
        const ps_fast_batch *batch = &system->batches[i];
        double *root = roots + (size_t)omp_get_thread_num() * per_thread;
        if (ps_fast_has(system, PS_METHOD_PHASE)) {
            ps_fast_form_root(system, batch, PS_METHOD_PHASE, 1.0, root);
            ps_fast_form_basis(system, batch, PS_METHOD_PHASE, root, system->bases + batch->phase_basis);
        }
        if (ps_fast_has(system, PS_METHOD_COMPLEX)) {
            ps_fast_form_root(system, batch, PS_METHOD_COMPLEX, 1.0, root);
            ps_fast_form_basis(system, batch, PS_METHOD_COMPLEX, root, system->bases + batch->complex_basis);
        }
    }
    ps_cpu_free(roots);
    return PS_OK;
}
