#include "kernels/cpu/fast/fast.h"
#include "kernels/cpu/memory.h"

ps_code ps_fast_open(const ps_backend_options *options, ps_backend **backend, ps_error *error) {
    if (!ps_fast_isa_choose())
        return PS_FAIL(error, PS_E_BACKEND, "PS_CPU_ISA names an instruction set that this build or this CPU does not have");
    return ps_cpu_backend_open(options, backend, error);
}

void ps_fast_device_info(const ps_backend *backend, ps_device_info *info) {
    ps_cpu_device_info(backend, "float32 products, float64 sums", ps_fast_isa_choose()->name, info);
}

void ps_fast_system_destroy(ps_system *handle) {
    ps_fast_system *system = (ps_fast_system *)handle;
    ps_fast_pixels_release(system);
    ps_cpu_free(system->batches);
    ps_cpu_free(system->normal);
    ps_cpu_free(system->bases);
    ps_cpu_free(system->diagonal);
    ps_cpu_system_release(&system->cpu);
    ps_cpu_free(system);
}

ps_code ps_fast_system_create(ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_system **handle, ps_error *error) {
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
    if (code != PS_OK && system) ps_fast_system_destroy(&system->cpu.base);
    return code;
}

ps_code ps_fast_system_set_weights(ps_system *handle, const double *weights, ps_error *error) {
    ps_fast_system *system = (ps_fast_system *)handle;
    PS_TRY(ps_cpu_system_set_weights(handle, weights, error));
    for (int64_t slot = 0; slot < system->cpu.desc.n_active; slot++) system->weights[slot] = (float)system->cpu.weights[slot];
    return PS_OK;
}

ps_code ps_fast_system_prepare(ps_system *handle, ps_error *error) {
    ps_fast_system *system = (ps_fast_system *)handle;
    if (ps_fast_has(system, PS_METHOD_PHASE | PS_METHOD_COMPLEX)) {
        PS_TRY(ps_fast_normal(system, error));
        PS_TRY(ps_fast_bases(system, error));
    }
    return PS_OK;
}

const ps_backend_ops ps_backend_cpu_fast = PS_CPU_OPS(fast, "cpu-fast");
