#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/memory.h"

static ps_code check_frequencies(const ps_system_desc *desc, ps_error *error) {
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        bool inside = f->row >= 0 && f->row < desc->scan_rows && f->column >= 0 && f->column < desc->scan_columns;
        bool aliases =
            f->n_aliases >= 0 && f->n_aliases <= PS_MAX_ALIASES && f->first_alias >= 0 && f->first_alias + f->n_aliases <= desc->n_aliases;
        if (!inside || !aliases || f->multiplicity < 1 || f->multiplicity > 2)
            return PS_FAIL(error, PS_E_INTERNAL, "frequency %lld is (%d, %d) with %d aliases from %lld, multiplicity %d", (long long)i,
                           f->row, f->column, f->n_aliases, (long long)f->first_alias, f->multiplicity);
    }
    return PS_OK;
}

static ps_code check_desc(const ps_system_desc *desc, ps_error *error) {
    if (desc->n_active < 1 || desc->n_frequencies < 1 || desc->scan_rows < 1 || desc->scan_columns < 1 || desc->upsampling < 1)
        return PS_FAIL(error, PS_E_INTERNAL, "empty system: %lld active pixels, %lld frequencies, scan %lld x %lld, upsampling %lld",
                       (long long)desc->n_active, (long long)desc->n_frequencies, (long long)desc->scan_rows, (long long)desc->scan_columns,
                       (long long)desc->upsampling);
    return check_frequencies(desc, error);
}

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
    PS_TRY(check_desc(desc, error));
    system->base.ops = backend->ops;
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
    ps_cpu_system *system = (ps_cpu_system *)handle;
    for (int64_t pixel = 0; pixel < system->desc.n_active; pixel++)
        if (!(weights[pixel] > 0.0) || isinf(weights[pixel]))
            return PS_FAIL(error, PS_E_ARGUMENT, "weight of active pixel %lld is %g, expected a positive number", (long long)pixel,
                           weights[pixel]);
    for (int64_t slot = 0; slot < system->desc.n_active; slot++) system->weights[slot] = weights[system->slot_pixel[slot]];
    system->prepared = false;
    return PS_OK;
}

static const char *method_name(ps_methods method) {
    return method == PS_METHOD_PHASE ? "phase" : method == PS_METHOD_COMPLEX ? "complex" : method == PS_METHOD_SSB ? "ssb" : "unknown";
}

ps_code ps_cpu_system_require(const ps_cpu_system *system, ps_methods methods, ps_error *error) {
    for (ps_methods bit = PS_METHOD_PHASE; bit <= PS_METHOD_SSB; bit <<= 1)
        if ((methods & bit) && !(system->methods & bit))
            return PS_FAIL(error, PS_E_ARGUMENT, "the system was created without the %s method", method_name(bit));
    if ((methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX)) && !system->prepared)
        return PS_FAIL(error, PS_E_ARGUMENT, "the system is not prepared");
    return PS_OK;
}

ps_code ps_cpu_scales_require(const ps_cpu_system *system, double amplitude, double phase, ps_error *error) {
    bool good = phase > 0.0 && isfinite(phase);
    if (system->methods & PS_METHOD_COMPLEX) good = good && amplitude > 0.0 && isfinite(amplitude);
    if (good) return PS_OK;
    return PS_FAIL(error, PS_E_NUMERIC,
                   "the mean transfer is %g for amplitude and %g for phase, expected more than 0: these optics show nothing", amplitude,
                   phase);
}

ps_code ps_cpu_frequency_require(const ps_cpu_system *system, int64_t frequency, ps_error *error) {
    if (frequency < 0 || frequency >= system->desc.n_frequencies)
        return PS_FAIL(error, PS_E_ARGUMENT, "frequency %lld, expected 0 to %lld", (long long)frequency,
                       (long long)system->desc.n_frequencies - 1);
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
