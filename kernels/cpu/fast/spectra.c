/* g = FFT over scan of counts / (positions * dose), docs/physics.md section 3, transposed so that a frequency's pixels lie together.
 *
 * A tile of slots at a time: counts less their mean become float scans, each is transformed, and the TILE values of every frequency
 * are written side by side. Without its mean, a scan's rounding errors are those of its contrast. */
#include <omp.h>

#include "core/assert.h"
#include "kernels/cpu/fast/dft.h"
#include "kernels/cpu/fast/g_store.h"
#include "kernels/cpu/memory.h"

/* Scans, half-planes and the transform's scratch of one tile. */
static size_t thread_floats(const ps_system_desc *desc) {
    return (size_t)(PS_FAST_TILE * (ps_fast_scan_stride(desc) + 2 * ps_fast_half_stride(desc)) + ps_fast_dft_scratch(desc));
}

size_t ps_fast_spectra_bytes(const ps_system_desc *desc) {
    return (size_t)ps_cpu_max_threads() * thread_floats(desc) * sizeof(float) + ps_fast_dft_bytes(desc);
}

/* at: the tile's first slot in the store. */
static void transform_tile(const ps_cpu_frame *frame, int64_t slot, const ps_fast_dft *dft, float *scratch, const ps_fast_g *g, int64_t at,
                           int64_t width) {
    const ps_system_desc *desc = &frame->system->desc;
    int64_t left = desc->n_active - slot, n = left < PS_FAST_TILE ? left : PS_FAST_TILE;
    float complex *spectra = (float complex *)(scratch + PS_FAST_TILE * dft->scan_stride);
    float *spare = (float *)(spectra + PS_FAST_TILE * dft->half_stride), zero[PS_FAST_TILE];
    ps_cpu_scans_f32(frame, slot, n, true, dft->scan_stride, scratch);
    for (int64_t p = 0; p < n; p++) ps_fast_dft_run(dft, scratch + p * dft->scan_stride, spectra + p * dft->half_stride, spare);
    for (int64_t p = 0; p < n; p++) zero[p] = (float)(frame->mean[slot + p] / frame->dose);
    ps_fast_g_put(g, at, width, n, spectra, dft->half_stride, (float)(1.0 / ((double)ps_cpu_positions(desc) * frame->dose)), zero);
}

ps_code ps_fast_spectra(const ps_cpu_frame *frame, int64_t first, int64_t n, const ps_fast_g *g, ps_error *error) {
    PS_ASSERT(first >= 0 && first % PS_FAST_BLOCK == 0 && n > 0 && n <= g->n_slots);
    const ps_fast_system *system = (const ps_fast_system *)frame->system;
    int n_threads = system->cpu.backend->n_threads;
    size_t per_thread = thread_floats(&system->cpu.desc);
    ps_fast_dft dft = {0};
    ps_code code = PS_OK;
    float *scratch = ps_cpu_allocate((size_t)n_threads * per_thread, sizeof *scratch);
    PS_GO_ALLOC(error, scratch);
    PS_GO(ps_fast_dft_init(&system->cpu.desc, system->isa, &dft, error));
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
    for (int64_t at = 0; at < n; at += PS_FAST_TILE) {
        int64_t width = ps_fast_block_width(system, (first + at) / PS_FAST_BLOCK);
        transform_tile(frame, first + at, &dft, scratch + (size_t)omp_get_thread_num() * per_thread, g, at, width);
    }
done:
    ps_fast_dft_release(&dft);
    ps_cpu_free(scratch);
    return code;
}
