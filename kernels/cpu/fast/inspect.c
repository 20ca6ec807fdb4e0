#include <lapacke.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/fast/keep.h"
#include "kernels/cpu/memory.h"

/* Which batch and lane a solved frequency is in. */
static const ps_fast_batch *find_batch(const ps_fast_system *system, int64_t frequency, int *lane) {
    for (int64_t i = 0; i < system->n_batches; i++)
        for (*lane = 0; *lane < PS_FAST_LANES; ++*lane)
            if (system->batches[i].frequency[*lane] == frequency) return &system->batches[i];
    return NULL;
}

/* rows of one block: [2 n_aliases, 2, width], amplitudes first; transfer: [n_aliases, n_active, 2] complex, caller's pixels. */
static void copy_block(const ps_fast_system *system, int64_t n, int64_t block, const float *rows, double *transfer) {
    int64_t width = ps_fast_block_width(system, block), first = block * PS_FAST_BLOCK, active = system->cpu.desc.n_active;
    for (int64_t row = 0; row < 2 * n; row++)
        for (int64_t p = 0; p < width && first + p < active; p++) {
            double *to = transfer + ((row % n * active + system->cpu.slot_pixel[first + p]) * 2 + row / n) * 2;
            to[0] = rows[row * 2 * width + p];
            to[1] = rows[row * 2 * width + width + p];
        }
}

ps_code ps_fast_get_transfer(ps_system *handle, int64_t frequency, double *transfer, ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)handle;
    int64_t n = system->cpu.desc.frequencies[frequency].n_aliases;
    bool is_dark[2 * PS_MAX_ALIASES];
    float *rows = ps_cpu_allocate((size_t)(4 * n * PS_FAST_BLOCK), sizeof *rows);
    if (!rows) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the transfer of %lld aliases", (long long)n);
    for (int64_t block = 0; block < ps_fast_n_blocks(system); block++) {
        ps_fast_transfer_rows(system, frequency, block, true, system->aperture, rows, is_dark);
        copy_block(system, n, block, rows, transfer);
    }
    ps_cpu_free(rows);
    return PS_OK;
}

ps_code ps_fast_get_normal(ps_system *handle, ps_methods method, int64_t frequency, double *normal, ps_error *error) {
    (void)error;
    const ps_fast_system *system = (const ps_fast_system *)handle;
    int lane;
    const ps_fast_batch *batch = find_batch(system, frequency, &lane);
    int64_t n = system->cpu.desc.frequencies[frequency].n_aliases, dim = method == PS_METHOD_COMPLEX ? 2 * n : n;
    memset(normal, 0, (size_t)(2 * dim * dim) * sizeof *normal);
    if (!batch) return PS_OK;
    int64_t first = ps_fast_dim(system, batch) - dim;
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j <= i; j++) {
            const double *entry =
                system->normal + batch->normal + ((first + i) * (first + i + 1) / 2 + first + j) * 2 * PS_FAST_LANES + lane;
            normal[2 * (i * dim + j)] = normal[2 * (j * dim + i)] = entry[0];
            normal[2 * (i * dim + j) + 1] = entry[PS_FAST_LANES];
            normal[2 * (j * dim + i) + 1] = -entry[PS_FAST_LANES];
        }
    return PS_OK;
}

ps_code ps_fast_get_eigenvalues(ps_system *handle, int64_t frequency, double *eigenvalues, ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)handle;
    int lane;
    const ps_fast_batch *batch = find_batch(system, frequency, &lane);
    double off[PS_MAX_ALIASES];
    int n = system->cpu.desc.frequencies[frequency].n_aliases;
    memset(eigenvalues, 0, (size_t)n * sizeof *eigenvalues);
    if (!batch) return PS_OK;
    const double *reduced = system->bases + batch->phase_basis + PS_FAST_PACKED(n);
    for (int i = 0; i < n; i++) {
        eigenvalues[i] = reduced[i * PS_FAST_LANES + lane];
        off[i] = reduced[(n + i) * PS_FAST_LANES + lane];
    }
    if (LAPACKE_dsterf(n, eigenvalues, off) != 0)
        return PS_FAIL(error, PS_E_NUMERIC, "no eigenvalues for frequency %lld", (long long)frequency);
    return PS_OK;
}

/* One block of pixels, from slot `at` of g's store on, into spectra [n, n_active] complex, caller's pixels. */
static void copy_spectra(const ps_fast_system *system, int64_t block, const ps_fast_g *g, int64_t at, int64_t n, const int64_t *frequencies,
                         double *spectra) {
    const ps_system_desc *desc = &system->cpu.desc;
    int64_t width = ps_fast_block_width(system, block), first = block * PS_FAST_BLOCK;
    for (int64_t i = 0; i < n; i++) {
        bool conjugate;
        float real[PS_FAST_BLOCK], imaginary[PS_FAST_BLOCK];
        int64_t spectrum = ps_cpu_half_index(desc, &desc->frequencies[frequencies[i]], &conjugate);
        ps_fast_g_load(g, spectrum, at, width, width, conjugate ? -1.0f : 1.0f, real, imaginary);
        for (int64_t p = 0; p < width && first + p < desc->n_active; p++) {
            double *to = spectra + 2 * (i * desc->n_active + system->cpu.slot_pixel[first + p]);
            to[0] = real[p];
            to[1] = imaginary[p];
        }
    }
}

static ps_code copy_blocks(ps_cpu_frame *frame, int64_t n, const int64_t *frequencies, double *spectra, ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)frame->system;
    ps_fast_g *spare = frame->g ? NULL : ps_fast_g_create(&system->cpu.desc, ps_fast_block_width(system, 0));
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, spare || frame->g);
    for (int64_t block = 0; block < ps_fast_n_blocks(system); block++) {
        const ps_fast_g *g;
        int64_t at;
        PS_GO(ps_fast_g_of_block(frame, block, spare, &g, &at, error));
        copy_spectra(system, block, g, at, n, frequencies, spectra);
    }
done:
    ps_cpu_free(spare);
    return code;
}

ps_code ps_fast_get_spectra(ps_frame *handle, int64_t n, const int64_t *frequencies, double dose, double *spectra, ps_error *error) {
    ps_cpu_frame *frame = (ps_cpu_frame *)handle;
    PS_TRY(ps_cpu_frame_ensure_means(frame, error));
    struct ps_fast_g *kept = frame->g;
    double reduced_with = frame->dose;
    if (dose != reduced_with) frame->g = NULL; /* what is kept is g at another dose */
    frame->dose = dose;
    ps_code code = copy_blocks(frame, n, frequencies, spectra, error);
    frame->dose = reduced_with;
    frame->g = kept;
    return code;
}

ps_code ps_fast_get_spectrum(ps_frame *frame, int64_t frequency, double dose, double *spectrum, ps_error *error) {
    return ps_fast_get_spectra(frame, 1, &frequency, dose, spectrum, error);
}
