#include "kernels/cpu/fast/fast.h"
#include "kernels/cpu/memory.h"

/* How many solved frequencies have each number of aliases. */
static void count_by_aliases(const ps_system_desc *desc, int64_t counts[PS_MAX_ALIASES + 1]) {
    for (int n = 0; n <= PS_MAX_ALIASES; n++) counts[n] = 0;
    for (int64_t i = 1; i < desc->n_frequencies; i++) counts[desc->frequencies[i].n_aliases]++;
}

/* Fills the batches of the frequencies with n aliases, in the order of the list; returns the number of batches so far. */
static int64_t fill_batches(const ps_system_desc *desc, int n, ps_fast_batch *batches, int64_t n_batches) {
    int lane = PS_FAST_LANES;
    for (int64_t i = 1; i < desc->n_frequencies; i++) {
        if (desc->frequencies[i].n_aliases != n) continue;
        if (lane == PS_FAST_LANES) {
            batches[n_batches++].n = n;
            lane = 0;
            for (int l = 0; l < PS_FAST_LANES; l++) batches[n_batches - 1].frequency[l] = -1;
        }
        batches[n_batches - 1].frequency[lane++] = i;
    }
    return n_batches;
}

static void place_matrices(ps_fast_system *system, int64_t *normal, int64_t *bases) {
    *normal = *bases = 0;
    for (int64_t i = 0; i < system->n_batches; i++) {
        ps_fast_batch *batch = &system->batches[i];
        batch->normal = *normal;
        if (ps_fast_has(system, PS_METHOD_PHASE | PS_METHOD_COMPLEX)) *normal += PS_FAST_PACKED(ps_fast_dim(system, batch));
        batch->phase_basis = *bases;
        if (ps_fast_has(system, PS_METHOD_PHASE)) *bases += ps_fast_basis_doubles(batch->n);
        batch->complex_basis = *bases;
        if (ps_fast_has(system, PS_METHOD_COMPLEX)) *bases += ps_fast_basis_doubles(2 * batch->n);
    }
}

ps_code ps_fast_batches_init(ps_fast_system *system, ps_error *error) {
    const ps_system_desc *desc = &system->cpu.desc;
    int64_t counts[PS_MAX_ALIASES + 1], normal, bases;
    count_by_aliases(desc, counts);
    for (int n = 1; n <= PS_MAX_ALIASES; n++) system->n_batches += (counts[n] + PS_FAST_LANES - 1) / PS_FAST_LANES;
    system->batches = ps_cpu_allocate((size_t)system->n_batches, sizeof *system->batches);
    if (!system->batches) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld frequencies", (long long)desc->n_frequencies);
    int64_t filled = 0;
    for (int n = 1; n <= PS_MAX_ALIASES; n++)
        if (counts[n] > 0) filled = fill_batches(desc, n, system->batches, filled);
    place_matrices(system, &normal, &bases);
    system->normal = ps_cpu_allocate((size_t)normal, sizeof *system->normal);
    system->bases = ps_cpu_allocate((size_t)bases, sizeof *system->bases);
    system->diagonal = ps_cpu_allocate((size_t)(2 * desc->n_aliases), sizeof *system->diagonal);
    if (!system->normal || !system->bases || !system->diagonal)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for normal matrices of %lld numbers", (long long)(normal + bases));
    return PS_OK;
}
