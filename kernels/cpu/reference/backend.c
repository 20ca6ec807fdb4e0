#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"

ps_code ps_reference_open(const ps_backend_options *options, ps_backend **backend, ps_error *error) {
    return ps_cpu_backend_open(options, backend, error);
}

void ps_reference_device_info(const ps_backend *backend, ps_device_info *info) {
    ps_cpu_device_info(backend, "float64", "of the build", info);
}

void ps_reference_system_destroy(ps_system *handle) {
    ps_reference_system *system = (ps_reference_system *)handle;
    void *arrays[] = {system->probe,        system->normal_offset, system->normal,
                      system->basis_offset, system->eigenvectors,  system->eigenvalues};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) ps_cpu_free(arrays[i]);
    ps_cpu_system_release(&system->cpu);
    ps_cpu_free(system);
}

static ps_code allocate_matrices(ps_reference_system *system, ps_error *error) {
    const ps_system_desc *desc = &system->cpu.desc;
    bool phase = system->cpu.methods & PS_METHOD_PHASE, any = phase || (system->cpu.methods & PS_METHOD_COMPLEX);
    int64_t normal = 0, basis = 0;
    system->normal_offset = ps_cpu_allocate((size_t)desc->n_frequencies, sizeof *system->normal_offset);
    system->basis_offset = ps_cpu_allocate((size_t)desc->n_frequencies, sizeof *system->basis_offset);
    if (!system->normal_offset || !system->basis_offset)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld frequencies", (long long)desc->n_frequencies);
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        int64_t dim = i > 0 && any ? ps_reference_dim(system, i) : 0, n = i > 0 && phase ? desc->frequencies[i].n_aliases : 0;
        system->normal_offset[i] = normal;
        system->basis_offset[i] = basis;
        normal += dim * dim;
        basis += n * n;
    }
    system->normal = ps_cpu_allocate((size_t)normal, sizeof *system->normal);
    system->eigenvectors = ps_cpu_allocate((size_t)basis, sizeof *system->eigenvectors);
    system->eigenvalues = ps_cpu_allocate((size_t)desc->n_aliases, sizeof *system->eigenvalues);
    if (!system->normal || !system->eigenvectors || !system->eigenvalues)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for normal matrices of %lld entries", (long long)(normal + basis));
    return PS_OK;
}

ps_code ps_reference_system_create(ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_system **handle,
                                   ps_error *error) {
    ps_code code = PS_OK;
    ps_reference_system *system = ps_cpu_allocate_zero(1, sizeof *system);
    PS_GO_ALLOC(error, system);
    PS_GO(ps_cpu_system_init(&system->cpu, backend, desc, methods, NULL, error));
    PS_GO(allocate_matrices(system, error));
    system->probe = ps_cpu_allocate((size_t)desc->n_active, sizeof *system->probe);
    PS_GO_ALLOC(error, system->probe);
    for (int64_t i = 0; i < desc->n_active; i++) system->probe[i] = ps_reference_probe(&desc->probe, desc->k_row[i], desc->k_column[i]);
    *handle = &system->cpu.base;
done:
    if (code != PS_OK && system) ps_reference_system_destroy(&system->cpu.base);
    return code;
}

ps_code ps_reference_system_prepare(ps_system *handle, ps_error *error) {
    ps_reference_system *system = (ps_reference_system *)handle;
    if (system->cpu.methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX)) PS_TRY(ps_reference_normal(system, error));
    if (system->cpu.methods & PS_METHOD_PHASE) PS_TRY(ps_reference_eigenbasis(system, error));
    return PS_OK;
}

ps_code ps_reference_system_set_weights(ps_system *system, const double *weights, ps_error *error) {
    return ps_cpu_system_set_weights(system, weights, error);
}

const ps_backend_ops ps_backend_cpu_reference = PS_CPU_OPS(reference, "cpu-reference");
