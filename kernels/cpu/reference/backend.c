#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"

static ps_code open_backend(const ps_backend_options *options, ps_backend **backend, ps_error *error) {
    return ps_cpu_backend_open(&ps_backend_cpu_reference, options, backend, error);
}

static void device_info(const ps_backend *backend, ps_device_info *info) {
    ps_cpu_device_info(backend, "float64", "of the build", info);
}

static void system_destroy(ps_system *handle) {
    if (!handle) return;
    ps_reference_system *system = (ps_reference_system *)handle;
    ps_cpu_free(system->probe);
    ps_cpu_free(system->normal_offset);
    ps_cpu_free(system->normal);
    ps_cpu_free(system->basis_offset);
    ps_cpu_free(system->eigenvectors);
    ps_cpu_free(system->eigenvalues);
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

static ps_code system_create(ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_system **handle, ps_error *error) {
    *handle = NULL;
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
    if (code != PS_OK && system) system_destroy(&system->cpu.base);
    return code;
}

static ps_code system_prepare(ps_system *handle, ps_error *error) {
    ps_reference_system *system = (ps_reference_system *)handle;
    if (system->cpu.methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX)) PS_TRY(ps_reference_normal(system, error));
    if (system->cpu.methods & PS_METHOD_PHASE) PS_TRY(ps_reference_eigenbasis(system, error));
    system->cpu.prepared = true;
    return PS_OK;
}

static void frame_destroy(ps_frame *handle) {
    if (!handle) return;
    ps_reference_frame *frame = (ps_reference_frame *)handle;
    ps_cpu_free(frame->right_amplitude);
    ps_cpu_free(frame->right_phase);
    ps_cpu_free(frame->ssb);
    ps_cpu_free(frame->power);
    ps_cpu_frame_release(&frame->cpu);
    ps_cpu_free(frame);
}

static ps_code allocate_sums(ps_reference_frame *frame, ps_methods methods, ps_error *error) {
    const ps_system_desc *desc = &frame->cpu.system->desc;
    size_t n = (size_t)desc->n_aliases;
    bool amplitude = methods & PS_METHOD_COMPLEX, phase = amplitude || (methods & PS_METHOD_PHASE), ssb = methods & PS_METHOD_SSB;
    frame->right_amplitude = amplitude ? ps_cpu_allocate(n, sizeof *frame->right_amplitude) : NULL;
    frame->right_phase = phase ? ps_cpu_allocate(n, sizeof *frame->right_phase) : NULL;
    frame->ssb = ssb ? ps_cpu_allocate(n, sizeof *frame->ssb) : NULL;
    frame->power = ps_cpu_allocate((size_t)desc->n_frequencies, sizeof *frame->power);
    if ((amplitude && !frame->right_amplitude) || (phase && !frame->right_phase) || (ssb && !frame->ssb) || !frame->power)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the right sides of %zu aliases", n);
    return PS_OK;
}

static ps_code frame_create(ps_system *handle, ps_dtype dtype, ps_frame **frame_handle, ps_error *error) {
    *frame_handle = NULL;
    ps_cpu_system *system = (ps_cpu_system *)handle;
    ps_code code = PS_OK;
    ps_reference_frame *frame = ps_cpu_allocate_zero(1, sizeof *frame);
    PS_GO_ALLOC(error, frame);
    PS_GO(ps_cpu_frame_init(&frame->cpu, system, dtype, error));
    PS_GO(allocate_sums(frame, system->methods, error));
    *frame_handle = &frame->cpu.base;
done:
    if (code != PS_OK && frame) frame_destroy(&frame->cpu.base);
    return code;
}

const ps_backend_ops ps_backend_cpu_reference = {
    .name = "cpu-reference",
    .open = open_backend,
    .close = ps_cpu_backend_close,
    .device_info = device_info,
    .memory_plan = ps_reference_memory_plan,
    .system_create = system_create,
    .system_destroy = system_destroy,
    .system_set_weights = ps_cpu_system_set_weights,
    .system_prepare = system_prepare,
    .frame_create = frame_create,
    .frame_destroy = frame_destroy,
    .frame_put = ps_cpu_frame_put,
    .frame_means = ps_cpu_frame_means,
    .frame_reduce = ps_reference_reduce,
    .solve = ps_reference_solve,
    .ssb = ps_reference_ssb,
    .frame_power = ps_reference_frame_power,
    .system_scales = ps_reference_system_scales,
    .get_transfer = ps_reference_get_transfer,
    .get_normal = ps_reference_get_normal,
    .get_eigenvalues = ps_reference_get_eigenvalues,
    .get_right_side = ps_reference_get_right_side,
    .get_spectrum = ps_reference_get_spectrum,
};
