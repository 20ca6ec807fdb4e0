#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/memory.h"

static void *copy_array(const void *source, int64_t n, size_t size) {
    void *copy = ps_cpu_allocate((size_t)n, size);
    if (copy && n > 0) memcpy(copy, source, (size_t)n * size);
    return copy;
}

/* The arrays over pixels, taken through the slot order. */
static ps_code copy_pixels(ps_cpu_system *system, const ps_system_desc *desc, const int32_t *order, ps_error *error) {
    size_t n = (size_t)desc->n_active;
    int32_t *active = ps_cpu_allocate(n, sizeof *active);
    double *k_row = ps_cpu_allocate(n, sizeof *k_row), *k_column = ps_cpu_allocate(n, sizeof *k_column);
    system->desc.active = active;
    system->desc.k_row = k_row;
    system->desc.k_column = k_column;
    system->slot_pixel = ps_cpu_allocate(n, sizeof *system->slot_pixel);
    system->weights = ps_cpu_allocate(n, sizeof *system->weights);
    if (!active || !k_row || !k_column || !system->slot_pixel || !system->weights)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu active pixels", n);
    for (int64_t slot = 0; slot < desc->n_active; slot++) {
        int32_t pixel = order ? order[slot] : (int32_t)slot;
        system->slot_pixel[slot] = pixel;
        active[slot] = desc->active[pixel];
        k_row[slot] = desc->k_row[pixel];
        k_column[slot] = desc->k_column[pixel];
        system->weights[slot] = 1.0;
    }
    return PS_OK;
}

static ps_code copy_aliases(ps_cpu_system *system, const ps_system_desc *desc, ps_error *error) {
    ps_system_desc *own = &system->desc;
    own->frequencies = copy_array(desc->frequencies, desc->n_frequencies, sizeof *desc->frequencies);
    own->fine_row = copy_array(desc->fine_row, desc->n_aliases, sizeof *desc->fine_row);
    own->fine_column = copy_array(desc->fine_column, desc->n_aliases, sizeof *desc->fine_column);
    own->q_row = copy_array(desc->q_row, desc->n_aliases, sizeof *desc->q_row);
    own->q_column = copy_array(desc->q_column, desc->n_aliases, sizeof *desc->q_column);
    own->prior_phase = copy_array(desc->prior_phase, desc->n_aliases, sizeof *desc->prior_phase);
    own->prior_complex = copy_array(desc->prior_complex, desc->n_aliases, sizeof *desc->prior_complex);
    if (!own->frequencies || !own->fine_row || !own->fine_column || !own->q_row || !own->q_column || !own->prior_phase ||
        !own->prior_complex)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld aliases", (long long)desc->n_aliases);
    return PS_OK;
}

ps_code ps_cpu_system_init(ps_cpu_system *system, ps_backend *backend, const ps_system_desc *desc, ps_methods methods, const int32_t *order,
                           ps_error *error) {
    system->backend = (const ps_cpu_backend *)backend;
    system->methods = methods;
    system->desc = *desc;
    system->desc.frequencies = NULL;
    system->desc.fine_row = system->desc.fine_column = NULL;
    system->desc.q_row = system->desc.q_column = NULL;
    system->desc.prior_phase = system->desc.prior_complex = NULL;
    system->desc.active = NULL;
    system->desc.k_row = system->desc.k_column = NULL;
    PS_TRY(copy_pixels(system, desc, order, error));
    return copy_aliases(system, desc, error);
}

void ps_cpu_system_release(ps_cpu_system *system) {
    const ps_system_desc *desc = &system->desc;
    const void *arrays[] = {desc->active, desc->k_row,    desc->k_column,    desc->frequencies,   desc->fine_row,     desc->fine_column,
                            desc->q_row,  desc->q_column, desc->prior_phase, desc->prior_complex, system->slot_pixel, system->weights};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) ps_cpu_free((void *)arrays[i]);
}

ps_code ps_cpu_system_set_weights(ps_system *handle, const double *weights, ps_error *error) {
    (void)error;
    ps_cpu_system *system = (ps_cpu_system *)handle;
    for (int64_t slot = 0; slot < system->desc.n_active; slot++) system->weights[slot] = weights[system->slot_pixel[slot]];
    return PS_OK;
}

ps_code ps_cpu_system_form_scales(ps_cpu_system *system, ps_cpu_diagonal diagonal, ps_error *error) {
    double amplitude = 0.0, phase = 0.0, aliases = 0.0;
    for (int64_t i = 1; i < system->desc.n_frequencies; i++) {
        const ps_frequency *f = &system->desc.frequencies[i];
        for (int64_t a = 0; a < f->n_aliases; a++) {
            amplitude += f->multiplicity * diagonal(system, i, a, false);
            phase += f->multiplicity * diagonal(system, i, a, true);
        }
        aliases += f->multiplicity * (double)f->n_aliases;
    }
    system->scale_amplitude = aliases > 0.0 ? amplitude / aliases : 0.0;
    system->scale_phase = aliases > 0.0 ? phase / aliases : 0.0;
    bool good = system->scale_phase > 0.0 && isfinite(system->scale_phase);
    if (system->methods & PS_METHOD_COMPLEX) good = good && system->scale_amplitude > 0.0 && isfinite(system->scale_amplitude);
    if (good) return PS_OK;
    return PS_FAIL(error, PS_E_NUMERIC,
                   "the mean transfer is %g for amplitude and %g for phase, expected more than 0: these optics show nothing",
                   system->scale_amplitude, system->scale_phase);
}

ps_code ps_cpu_system_scales(ps_system *handle, ps_methods method, double *amplitude, double *phase, ps_error *error) {
    (void)error;
    const ps_cpu_system *system = (const ps_cpu_system *)handle;
    *amplitude = method == PS_METHOD_COMPLEX ? system->scale_amplitude : system->scale_phase;
    *phase = system->scale_phase;
    return PS_OK;
}

size_t ps_cpu_system_bytes(const ps_system_desc *desc) {
    size_t per_pixel = 2 * sizeof(int32_t) + 3 * sizeof(double);
    size_t per_alias = 2 * sizeof(int32_t) + 4 * sizeof(double);
    return (size_t)desc->n_active * per_pixel + (size_t)desc->n_aliases * per_alias + (size_t)desc->n_frequencies * sizeof(ps_frequency);
}

int64_t ps_cpu_half_index(const ps_system_desc *desc, const ps_frequency *frequency, bool *conjugate) {
    int64_t half = ps_cpu_half_columns(desc);
    *conjugate = frequency->column >= half;
    if (!*conjugate) return frequency->row * half + frequency->column;
    return (desc->scan_rows - frequency->row) % desc->scan_rows * half + (desc->scan_columns - frequency->column);
}

int64_t ps_cpu_max_aliases(const ps_system_desc *desc, bool solved) {
    int64_t most = 0;
    for (int64_t i = solved ? 1 : 0; i < desc->n_frequencies; i++)
        if (desc->frequencies[i].n_aliases > most) most = desc->frequencies[i].n_aliases;
    return most;
}

int64_t ps_cpu_zero_alias(const ps_system_desc *desc) {
    for (int64_t a = 0; a < desc->n_aliases; a++)
        if (desc->fine_row[a] == 0 && desc->fine_column[a] == 0) return a;
    return -1;
}
