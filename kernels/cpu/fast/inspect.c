#include <lapacke.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/fast/fast.h"
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

ps_code ps_fast_get_spectrum(ps_frame *handle, int64_t frequency, double dose, double *spectrum, ps_error *error) {
    ps_cpu_frame *frame = (ps_cpu_frame *)handle;
    const ps_fast_system *system = (const ps_fast_system *)frame->system;
    const ps_system_desc *desc = &system->cpu.desc;
    PS_TRY(ps_cpu_frame_ensure_means(frame, error));
    bool conjugate;
    int64_t index = ps_cpu_half_index(desc, &desc->frequencies[frequency], &conjugate), most = ps_fast_block_width(system, 0);
    double reduced_with = frame->dose;
    ps_code code = PS_OK;
    float *half = ps_cpu_allocate((size_t)(desc->scan_rows * ps_cpu_half_columns(desc) * 2 * most), sizeof *half);
    PS_GO_ALLOC(error, half);
    frame->dose = dose;
    for (int64_t block = 0; block < ps_fast_n_blocks(system); block++) {
        int64_t width = ps_fast_block_width(system, block), first = block * PS_FAST_BLOCK;
        PS_GO(ps_fast_spectra(frame, first, width, 2 * most, half, error));
        const float *from = half + index * 2 * most;
        for (int64_t p = 0; p < width && first + p < desc->n_active; p++) {
            double *to = spectrum + 2 * system->cpu.slot_pixel[first + p];
            to[0] = from[p];
            to[1] = conjugate ? -from[width + p] : from[width + p];
        }
    }
done:
    frame->dose = reduced_with;
    ps_cpu_free(half);
    return code;
}
