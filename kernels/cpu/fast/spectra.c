/* g = FFT over scan of counts / (positions * dose), docs/physics.md section 3, transposed so that a frequency's pixels lie together.
 *
 * A tile of slots at a time: counts less their mean become float scans, each is transformed by FFTW (real to half-plane), and the
 * TILE values of every frequency are written side by side. Without its mean, a scan's rounding errors are those of its contrast. */
#include <complex.h>
#include <fftw3.h>
#include <omp.h>
#include <string.h>

#include "kernels/cpu/fast/fast.h"
#include "kernels/cpu/memory.h"

enum { ALIGN_FLOATS = 16 };

/* Floats between the scans of a tile, and complex numbers between their half-planes: multiples of a cache line, so that one plan fits all.
 */
static int64_t scan_stride(const ps_system_desc *desc) {
    return (ps_cpu_positions(desc) + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static int64_t half_stride(const ps_system_desc *desc) {
    return (desc->scan_rows * ps_cpu_half_columns(desc) + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static size_t thread_floats(const ps_system_desc *desc) {
    return (size_t)(PS_FAST_TILE * (scan_stride(desc) + 2 * half_stride(desc)));
}

size_t ps_fast_spectra_bytes(const ps_system_desc *desc) {
    return (size_t)ps_cpu_max_threads() * thread_floats(desc) * sizeof(float);
}

/* to: floats of slot `slot` of the first frequency; the imaginary plane follows at `width`. spectra: [TILE, half_stride]. */
static void scatter(const ps_fast_frame *frame, int64_t slot, int64_t n, const float complex *spectra, int64_t stride, int64_t width,
                    float *to) {
    const ps_system_desc *desc = &frame->cpu.system->desc;
    int64_t half = desc->scan_rows * ps_cpu_half_columns(desc), apart = half_stride(desc);
    float scale = (float)(1.0 / ((double)ps_cpu_positions(desc) * frame->cpu.dose));
    for (int64_t i = 0; i < half; i++)
        for (int64_t p = 0; p < PS_FAST_TILE; p++) {
            float complex value = p < n ? spectra[p * apart + i] : 0.0f;
            to[i * stride + p] = scale * crealf(value);
            to[i * stride + width + p] = scale * cimagf(value);
        }
    for (int64_t p = 0; p < n; p++) {
        to[p] = (float)(frame->cpu.mean[slot + p] / frame->cpu.dose);
        to[width + p] = 0.0f;
    }
}

static void transform_tile(const ps_fast_frame *frame, int64_t slot, fftwf_plan plan, int64_t stride, int64_t width, float *scratch,
                           float *to) {
    const ps_system_desc *desc = &frame->cpu.system->desc;
    int64_t left = desc->n_active - slot, n = left < PS_FAST_TILE ? left : PS_FAST_TILE, apart = scan_stride(desc);
    float complex *spectra = (float complex *)(scratch + PS_FAST_TILE * apart);
    ps_cpu_scans_f32(&frame->cpu, slot, n, true, apart, scratch);
    for (int64_t p = 0; p < n; p++) fftwf_execute_dft_r2c(plan, scratch + p * apart, spectra + p * half_stride(desc));
    scatter(frame, slot, n, spectra, stride, width, to);
}

ps_code ps_fast_spectra(const ps_fast_frame *frame, int64_t first, int64_t n, int64_t stride, float *half, ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)frame->cpu.system;
    const ps_system_desc *desc = &system->cpu.desc;
    int n_threads = system->cpu.backend->n_threads;
    size_t per_thread = thread_floats(desc);
    ps_code code = PS_OK;
    fftwf_plan plan = NULL;
    float *scratch = ps_cpu_allocate((size_t)n_threads * per_thread, sizeof *scratch);
    PS_GO_ALLOC(error, scratch);
    plan = fftwf_plan_dft_r2c_2d((int)desc->scan_rows, (int)desc->scan_columns, scratch,
                                 (float complex *)(scratch + PS_FAST_TILE * scan_stride(desc)), FFTW_ESTIMATE);
    PS_GO_ALLOC(error, plan);
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
    for (int64_t at = 0; at < n; at += PS_FAST_TILE) {
        int64_t block = at / PS_FAST_BLOCK, width = ps_fast_block_width(system, first / PS_FAST_BLOCK + block);
        float *to = half + block * 2 * PS_FAST_BLOCK + at % PS_FAST_BLOCK;
        transform_tile(frame, first + at, plan, stride, width, scratch + (size_t)omp_get_thread_num() * per_thread, to);
    }
done:
    if (plan) fftwf_destroy_plan(plan);
    ps_cpu_free(scratch);
    return code;
}
