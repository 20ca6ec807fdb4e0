#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/layout.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/sum.cuh"
#include "kernels/cuda/tasks.h"

static ps_code check_counts(const ps_system_desc *desc, ps_error *error) {
    if (desc->n_aliases < INT32_MAX && desc->n_frequencies < INT32_MAX) return PS_OK;
    return PS_FAIL(error, PS_E_ARGUMENT, "cuda: %lld frequencies with %lld aliases, at most %d are possible",
                   (long long)desc->n_frequencies, (long long)desc->n_aliases, INT32_MAX - 1);
}

static void count_classes(ps_cuda_system *system) {
    for (int64_t i = 1; i < system->desc.n_frequencies; i++) {
        int32_t n = system->frequencies[i].n_aliases;
        if (n == 0) continue;
        ps_cuda_class *c = &system->classes[ps_cuda_class_of(n)];
        c->n++;
        if (n > c->n_aliases) c->n_aliases = n;
    }
    for (int i = 1; i < PS_CUDA_CLASSES; i++) system->classes[i].first = system->classes[i - 1].first + system->classes[i - 1].n;
}

static void count_elements(ps_cuda_system *system) {
    for (int64_t i = 1; i < system->desc.n_frequencies; i++) {
        int32_t n = system->frequencies[i].n_aliases;
        system->n_normal += ps_cuda_normal_elements(system, n);
        if (system->methods & PS_METHOD_PHASE) system->n_basis += (int64_t)n * n;
    }
    ps_cuda_walk_tasks(system, [system](ps_cuda_task, bool is_small) {
        system->n_tasks++;
        system->n_small_tasks += is_small;
    });
}

static double aperture_at(const ps_probe *probe, double k_row, double k_column) {
    double k = hypot(k_row, k_column);
    if (k == 0.0) return 1.0;
    double pixel = hypot(k_row * probe->pitch_rad[0], k_column * probe->pitch_rad[1]) / k;
    double a = (probe->semiangle_rad - probe->wavelength_A * k) / pixel + 0.5;
    return a < 0.0 ? 0.0 : a > 1.0 ? 1.0 : a;
}

ps_code ps_cuda_system_describe(const ps_system_desc *desc, ps_methods methods, ps_cuda_system *system, ps_error *error) {
    PS_TRY(check_counts(desc, error));
    system->methods = methods;
    system->desc = *desc;
    system->desc.active = NULL;
    system->desc.k_row = system->desc.k_column = NULL;
    system->desc.frequencies = NULL;
    system->desc.fine_row = system->desc.fine_column = NULL;
    system->desc.q_row = system->desc.q_column = system->desc.prior_phase = system->desc.prior_complex = NULL;
    system->n_positions = ps_cuda_positions(desc);
    system->n_spectrum = ps_cuda_spectrum(desc);
    PS_TRY(ps_cuda_layout_build(desc, &system->layout, &system->geometry, error));
    system->frequencies = (ps_frequency *)malloc((size_t)desc->n_frequencies * sizeof *system->frequencies);
    if (!system->frequencies)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld frequencies", (long long)desc->n_frequencies);
    memcpy(system->frequencies, desc->frequencies, (size_t)desc->n_frequencies * sizeof *system->frequencies);
    system->apertures = (double *)malloc((size_t)desc->n_active * sizeof *system->apertures);
    if (!system->apertures) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld active pixels", (long long)desc->n_active);
    for (int64_t i = 0; i < desc->n_active; i++) system->apertures[i] = aperture_at(&desc->probe, desc->k_row[i], desc->k_column[i]);
    system->zero_alias = -1;
    for (int64_t a = desc->frequencies[0].first_alias; a < desc->frequencies[0].first_alias + desc->frequencies[0].n_aliases; a++)
        if (desc->fine_row[a] == 0 && desc->fine_column[a] == 0) system->zero_alias = a;
    count_classes(system);
    count_elements(system);
    system->n_exact = ps_cuda_system_exact(system, desc, NULL);
    ps_cuda_fft_sizes(system);
    system->scratch_bytes = ps_cuda_scratch_bytes(system);
    return PS_OK;
}

void ps_cuda_system_undescribe(ps_cuda_system *system) {
    ps_cuda_layout_free(&system->layout);
    free(system->frequencies);
    free(system->apertures);
    system->frequencies = NULL;
    system->apertures = NULL;
}

static ps_code build_system(ps_cuda_system *system, const ps_system_desc *desc, ps_methods methods, ps_error *error) {
    PS_TRY(ps_cuda_enter(system->backend, error));
    PS_TRY(ps_cuda_system_describe(desc, methods, system, error));
    ps_cuda_arena arena = {NULL, 0};
    ps_cuda_system_carve(system, &arena);
    system->memory_bytes = arena.used;
    PS_TRY(ps_cuda_allocate(system->backend, arena.used, "the system", &system->memory, error));
    arena.base = (unsigned char *)system->memory;
    arena.used = 0;
    ps_cuda_system_carve(system, &arena);
    return ps_cuda_system_fill(system, desc, error);
}

ps_code ps_cuda_system_create(ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_system **handle, ps_error *error) {
    ps_cuda_system *system = (ps_cuda_system *)calloc(1, sizeof *system);
    if (!system) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a system");
    system->backend = (ps_cuda_backend *)backend;
    ps_code code = build_system(system, desc, methods, error);
    if (code != PS_OK) {
        ps_cuda_system_destroy(&system->base);
        return code;
    }
    *handle = &system->base;
    return PS_OK;
}

void ps_cuda_system_destroy(ps_system *handle) {
    ps_cuda_system *system = (ps_cuda_system *)handle;
    if (!system) return;
    cudaSetDevice(system->backend->device);
    ps_cuda_workspace_release(system);
    ps_cuda_fft_release(system);
    ps_cuda_free(system->backend, system->memory, system->memory_bytes);
    ps_cuda_system_undescribe(system);
    free(system);
}

/* --- weights, preparation, scales --- */

ps_code ps_cuda_system_set_weights(ps_system *handle, const double *weights, ps_error *error) {
    ps_cuda_system *system = (ps_cuda_system *)handle;
    PS_TRY(ps_cuda_enter(system->backend, error));
    return ps_cuda_system_send_pixels(system, weights, error);
}

struct diagonal_value {
    const ps_cuda_frequency *frequencies;
    const double2 *normal;
    bool is_complex, wants_amplitude;
    __device__ double operator()(int64_t i) const {
        const ps_cuda_frequency &f = frequencies[i];
        int first = is_complex && !wants_amplitude ? f.n_aliases : 0;
        double sum = 0.0;
        for (int a = first; f.multiplicity > 0.0 && a < first + f.n_aliases; a++) sum += normal[f.normal + (int64_t)a * (a + 3) / 2].x;
        return f.multiplicity * sum;
    }
};

static ps_code form_scales(ps_cuda_system *system, ps_error *error) {
    bool is_complex = system->methods & PS_METHOD_COMPLEX;
    double aliases = 0.0, amplitude = 0.0, phase = 0.0;
    for (int64_t i = 1; i < system->desc.n_frequencies; i++)
        aliases += (double)system->frequencies[i].multiplicity * system->frequencies[i].n_aliases;
    diagonal_value value = {system->d_frequencies, system->d_normal, is_complex, false};
    PS_TRY(ps_cuda_sum(system, value, system->desc.n_frequencies, &phase, error));
    value.wants_amplitude = true;
    if (is_complex) PS_TRY(ps_cuda_sum(system, value, system->desc.n_frequencies, &amplitude, error));
    system->scale_phase = aliases > 0.0 ? phase / aliases : 0.0;
    system->scale_amplitude = aliases > 0.0 ? amplitude / aliases : 0.0;
    if (!isfinite(system->scale_phase) || !isfinite(system->scale_amplitude))
        return PS_FAIL(error, PS_E_NUMERIC, "the normal matrices are not finite: scales are %g (amplitude) and %g (phase)",
                       system->scale_amplitude, system->scale_phase);
    return PS_OK;
}

static ps_code prepare(ps_cuda_system *system, ps_error *error) {
    if (!(system->methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX))) return PS_OK;
    PS_TRY(ps_cuda_enter(system->backend, error));
    PS_TRY(ps_cuda_normal(system, error));
    PS_TRY(form_scales(system, error));
    if (system->methods & PS_METHOD_PHASE) PS_TRY(ps_cuda_eigenbasis(system, error));
    return PS_CUDA(error, cudaStreamSynchronize(system->backend->compute));
}

ps_code ps_cuda_system_prepare(ps_system *handle, ps_error *error) {
    ps_cuda_system *system = (ps_cuda_system *)handle;
    pthread_mutex_lock(&system->backend->compute_lock);
    ps_code code = prepare(system, error);
    pthread_mutex_unlock(&system->backend->compute_lock);
    return code;
}

ps_code ps_cuda_system_scales(ps_system *handle, ps_methods method, double *amplitude, double *phase, ps_error *error) {
    (void)error;
    const ps_cuda_system *system = (const ps_cuda_system *)handle;
    *amplitude = method == PS_METHOD_COMPLEX ? system->scale_amplitude : system->scale_phase;
    *phase = system->scale_phase;
    return PS_OK;
}
