#include <complex.h>
#include <fftw3.h>
#include <omp.h>

#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"

/* One slot: counts, forward transform, section 3's normalisation. scan: [n_positions] scratch. */
static void spectrum_of_slot(const ps_cpu_frame *frame, int64_t slot, double dose, fftw_plan plan, double *scan, double complex *spectrum) {
    const ps_system_desc *desc = &frame->system->desc;
    int64_t positions = ps_cpu_positions(desc), half = desc->scan_rows * ps_cpu_half_columns(desc);
    ps_cpu_scans_f64(frame, slot, 1, false, positions, scan);
    fftw_execute_dft_r2c(plan, scan, spectrum);
    for (int64_t i = 0; i < half; i++) spectrum[i] /= (double)positions * dose;
}

ps_code ps_reference_spectra(const ps_cpu_frame *frame, int64_t first, int64_t n, double dose, double complex *spectra, ps_error *error) {
    const ps_system_desc *desc = &frame->system->desc;
    int64_t positions = ps_cpu_positions(desc), half = desc->scan_rows * ps_cpu_half_columns(desc);
    int n_threads = frame->system->backend->n_threads;
    ps_code code = PS_OK;
    fftw_plan plan = NULL;
    double *scans = ps_cpu_allocate((size_t)n_threads * (size_t)positions, sizeof *scans);
    PS_GO_ALLOC(error, scans);
    plan = fftw_plan_dft_r2c_2d((int)desc->scan_rows, (int)desc->scan_columns, scans, spectra, FFTW_ESTIMATE | FFTW_UNALIGNED);
    PS_GO_ALLOC(error, plan);
#pragma omp parallel for schedule(static) num_threads(n_threads)
    for (int64_t i = 0; i < n; i++)
        spectrum_of_slot(frame, first + i, dose, plan, scans + omp_get_thread_num() * positions, spectra + i * half);
done:
    if (plan) fftw_destroy_plan(plan);
    ps_cpu_free(scans);
    return code;
}
