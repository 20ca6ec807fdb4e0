#include "kernels/cpu/fast/fast.h"
#include "kernels/cpu/memory.h"

static ps_code open_backend(const ps_backend_options *options, ps_backend **backend, ps_error *error) {
    *backend = NULL;
    if (!ps_fast_isa_choose())
        return PS_FAIL(error, PS_E_BACKEND, "PS_CPU_ISA names an instruction set that this build or this CPU does not have");
    return ps_cpu_backend_open(&ps_backend_cpu_fast, options, backend, error);
}

static void device_info(const ps_backend *backend, ps_device_info *info) {
    ps_cpu_device_info(backend, "float32 products, float64 sums", ps_fast_isa_choose()->name, info);
}

static void system_destroy(ps_system *handle) {
    if (!handle) return;
    ps_fast_system *system = (ps_fast_system *)handle;
    ps_fast_pixels_release(system);
    ps_cpu_free(system->batches);
    ps_cpu_free(system->normal);
    ps_cpu_free(system->bases);
    ps_cpu_free(system->diagonal);
    ps_cpu_system_release(&system->cpu);
    ps_cpu_free(system);
}

static ps_code system_create(ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_system **handle, ps_error *error) {
    *handle = NULL;
    ps_code code = PS_OK;
    int32_t *order = ps_cpu_allocate((size_t)desc->n_active, sizeof *order);
    ps_fast_system *system = ps_cpu_allocate_zero(1, sizeof *system);
    PS_GO_ALLOC(error, order);
    PS_GO_ALLOC(error, system);
    ps_fast_slot_order(desc, order);
    PS_GO(ps_cpu_system_init(&system->cpu, backend, desc, methods, order, error));
    system->isa = ps_fast_isa_choose();
    system->k_max = desc->probe.semiangle_rad / desc->probe.wavelength_A;
    ps_fast_chi_polynomial(&desc->probe, false, &system->chi);
    ps_fast_chi_polynomial(&desc->probe, desc->probe.mirrored_probe, &system->chi_mirrored);
    PS_GO(ps_fast_pixels_init(system, error));
    PS_GO(ps_fast_batches_init(system, error));
    *handle = &system->cpu.base;
done:
    ps_cpu_free(order);
    if (code != PS_OK && system) system_destroy(&system->cpu.base);
    return code;
}

static ps_code system_set_weights(ps_system *handle, const double *weights, ps_error *error) {
    ps_fast_system *system = (ps_fast_system *)handle;
    PS_TRY(ps_cpu_system_set_weights(handle, weights, error));
    for (int64_t slot = 0; slot < system->cpu.desc.n_active; slot++) system->weights[slot] = (float)system->cpu.weights[slot];
    return PS_OK;
}

static ps_code system_prepare(ps_system *handle, ps_error *error) {
    ps_fast_system *system = (ps_fast_system *)handle;
    if (ps_fast_has(system, PS_METHOD_PHASE | PS_METHOD_COMPLEX)) {
        PS_TRY(ps_fast_normal(system, error));
        PS_TRY(ps_fast_bases(system, error));
    }
    system->cpu.prepared = true;
    return PS_OK;
}

static void frame_destroy(ps_frame *handle) {
    if (!handle) return;
    ps_fast_frame *frame = (ps_fast_frame *)handle;
    ps_cpu_free(frame->right_amplitude);
    ps_cpu_free(frame->right_phase);
    ps_cpu_free(frame->ssb);
    ps_cpu_free(frame->power);
    ps_cpu_frame_release(&frame->cpu);
    ps_cpu_free(frame);
}

static ps_code allocate_sums(ps_fast_frame *frame, ps_methods methods, ps_error *error) {
    const ps_system_desc *desc = &frame->cpu.system->desc;
    size_t n = 2 * (size_t)desc->n_aliases;
    bool amplitude = methods & PS_METHOD_COMPLEX, phase = amplitude || (methods & PS_METHOD_PHASE), ssb = methods & PS_METHOD_SSB;
    frame->right_amplitude = amplitude ? ps_cpu_allocate(n, sizeof *frame->right_amplitude) : NULL;
    frame->right_phase = phase ? ps_cpu_allocate(n, sizeof *frame->right_phase) : NULL;
    frame->ssb = ssb ? ps_cpu_allocate(n, sizeof *frame->ssb) : NULL;
    frame->power = ps_cpu_allocate((size_t)desc->n_frequencies, sizeof *frame->power);
    if ((amplitude && !frame->right_amplitude) || (phase && !frame->right_phase) || (ssb && !frame->ssb) || !frame->power)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the right sides of %lld aliases", (long long)desc->n_aliases);
    return PS_OK;
}

static ps_code frame_create(ps_system *handle, ps_dtype dtype, ps_frame **frame_handle, ps_error *error) {
    *frame_handle = NULL;
    ps_cpu_system *system = (ps_cpu_system *)handle;
    ps_code code = PS_OK;
    ps_fast_frame *frame = ps_cpu_allocate_zero(1, sizeof *frame);
    PS_GO_ALLOC(error, frame);
    PS_GO(ps_cpu_frame_init(&frame->cpu, system, dtype, error));
    PS_GO(allocate_sums(frame, system->methods, error));
    *frame_handle = &frame->cpu.base;
done:
    if (code != PS_OK && frame) frame_destroy(&frame->cpu.base);
    return code;
}

static ps_code frame_power(ps_frame *handle, double *power, ps_error *error) {
    const ps_fast_frame *frame = (const ps_fast_frame *)handle;
    PS_TRY(ps_cpu_frame_require(&frame->cpu, 0, error));
    *power = 0.0;
    for (int64_t i = 1; i < frame->cpu.system->desc.n_frequencies; i++)
        *power += frame->cpu.system->desc.frequencies[i].multiplicity * frame->power[i];
    return PS_OK;
}

static ps_code system_scales(ps_system *handle, ps_methods method, double *amplitude, double *phase, ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)handle;
    PS_TRY(ps_cpu_system_require(&system->cpu, method, error));
    if (amplitude) *amplitude = method == PS_METHOD_COMPLEX ? system->scale_amplitude : system->scale_phase;
    if (phase) *phase = system->scale_phase;
    return PS_OK;
}

const ps_backend_ops ps_backend_cpu_fast = {
    .name = "cpu-fast",
    .open = open_backend,
    .close = ps_cpu_backend_close,
    .device_info = device_info,
    .memory_plan = ps_fast_memory_plan,
    .system_create = system_create,
    .system_destroy = system_destroy,
    .system_set_weights = system_set_weights,
    .system_prepare = system_prepare,
    .frame_create = frame_create,
    .frame_destroy = frame_destroy,
    .frame_put = ps_cpu_frame_put,
    .frame_means = ps_cpu_frame_means,
    .frame_reduce = ps_fast_reduce,
    .solve = ps_fast_solve,
    .ssb = ps_fast_ssb,
    .frame_power = frame_power,
    .system_scales = system_scales,
    .get_transfer = ps_fast_get_transfer,
    .get_normal = ps_fast_get_normal,
    .get_eigenvalues = ps_fast_get_eigenvalues,
    .get_right_side = ps_fast_get_right_side,
    .get_spectrum = ps_fast_get_spectrum,
};
