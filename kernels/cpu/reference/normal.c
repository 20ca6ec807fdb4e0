#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/assert.h"
#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"

int64_t ps_reference_dim(const ps_reference_system *system, int64_t frequency) {
    PS_ASSERT(frequency >= 0 && frequency < system->cpu.desc.n_frequencies);
    int64_t n = system->cpu.desc.frequencies[frequency].n_aliases;
    return system->cpu.methods & PS_METHOD_COMPLEX ? 2 * n : n;
}

/* matrix: [dim, n_active], one row of sqrt(W) T per unknown. */
static void weighted_transfer(const ps_reference_system *system, int64_t frequency, double complex *matrix) {
    const ps_frequency *f = &system->cpu.desc.frequencies[frequency];
    int64_t active = system->cpu.desc.n_active, dim = ps_reference_dim(system, frequency);
    bool both = system->cpu.methods & PS_METHOD_COMPLEX;
    for (int64_t a = 0; a < f->n_aliases; a++)
        ps_reference_transfer(system, f->first_alias + a, 0, active, both ? matrix + a * active : NULL,
                              matrix + (both ? f->n_aliases + a : a) * active);
    for (int64_t row = 0; row < dim; row++)
        for (int64_t i = 0; i < active; i++) matrix[row * active + i] *= sqrt(system->cpu.weights[i]);
}

/* N = M^H W M of one frequency; both triangles are filled. */
static void normal_of_frequency(ps_reference_system *system, int64_t frequency, double complex *matrix) {
    int64_t active = system->cpu.desc.n_active, dim = ps_reference_dim(system, frequency);
    double complex *normal = system->normal + system->normal_offset[frequency];
    if (dim == 0) return;
    weighted_transfer(system, frequency, matrix);
    cblas_zherk(CblasColMajor, CblasUpper, CblasConjTrans, (int)dim, (int)active, 1.0, matrix, (int)active, 0.0, normal, (int)dim);
    for (int64_t a = 0; a < dim; a++)
        for (int64_t b = 0; b < a; b++) normal[a + b * dim] = conj(normal[b + a * dim]);
}

static double diagonal(const ps_cpu_system *cpu, int64_t frequency, int64_t a, bool of_phase) {
    const ps_reference_system *system = (const ps_reference_system *)cpu;
    int64_t dim = ps_reference_dim(system, frequency), i = of_phase ? dim - cpu->desc.frequencies[frequency].n_aliases + a : a;
    return creal(system->normal[system->normal_offset[frequency] + i * (dim + 1)]);
}

ps_code ps_reference_normal(ps_reference_system *system, ps_error *error) {
    const ps_system_desc *desc = &system->cpu.desc;
    int n_threads = system->cpu.backend->n_threads;
    size_t dim = (size_t)ps_cpu_max_aliases(desc, true) * 2, per_thread = dim * (size_t)desc->n_active;
    double complex *matrices = ps_cpu_allocate((size_t)n_threads * per_thread, sizeof *matrices);
    if (!matrices) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the transfer of %zu unknowns", dim);
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
    for (int64_t i = 1; i < desc->n_frequencies; i++) normal_of_frequency(system, i, matrices + (size_t)omp_get_thread_num() * per_thread);
    ps_cpu_free(matrices);
    return ps_cpu_system_form_scales(&system->cpu, diagonal, error);
}
