#include <math.h>
#include <string.h>

#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"

/* Puts value(Q) on the fine grid, and the partner -Q of a frequency that stands for both: gamma(-q) = -conj(gamma(q)). */
static void place(const ps_system_desc *desc, const ps_frequency *f, int64_t alias, double complex value, double complex *image) {
    int64_t rows = ps_cpu_fine_rows(desc), columns = ps_cpu_fine_columns(desc);
    int64_t row = desc->fine_row[alias], column = desc->fine_column[alias];
    image[row * columns + column] = value;
    if (f->multiplicity == 2) image[(rows - row) % rows * columns + (columns - column) % columns] = -conj(value);
}

/* 0 for 0, whatever the signs of its zeros. */
static double angle(double complex z) {
    return atan2(cimag(z) + 0.0, creal(z) + 0.0);
}

static ps_code wave_phase(const ps_cpu_frame *frame, double complex *image, double *phase, ps_error *error) {
    const ps_system_desc *desc = &frame->system->desc;
    int64_t n = ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc);
    memset(image, 0, (size_t)n * sizeof *image);
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        for (int64_t alias = f->first_alias; alias < f->first_alias + f->n_aliases; alias++)
            place(desc, f, alias, frame->ssb[alias], image);
    }
    PS_TRY(ps_reference_image(desc, image, error));
    for (int64_t i = 0; i < n; i++) phase[i] = angle(image[i]);
    return PS_OK;
}

/* The corrected spectrum of one pixel on the fine grid; spectrum: [half-plane], mean: section 6's zero frequency. */
static void correct_pixel(const ps_reference_system *system, int64_t slot, const double complex *spectrum, double mean,
                          double complex *image) {
    const ps_system_desc *desc = &system->cpu.desc;
    memset(image, 0, (size_t)(ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc)) * sizeof *image);
#pragma omp parallel for schedule(static) num_threads(system->cpu.backend->n_threads)
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        bool conjugate;
        double complex g = spectrum[ps_cpu_half_index(desc, f, &conjugate)], t_phase;
        for (int64_t alias = f->first_alias; alias < f->first_alias + f->n_aliases; alias++) {
            ps_reference_transfer(system, alias, slot, 1, NULL, &t_phase);
            double complex gamma = -I * t_phase;
            double size = cabs(gamma);
            place(desc, f, alias, size > PS_REFERENCE_GAMMA_FLOOR ? (conjugate ? conj(g) : g) * conj(gamma) / size : 0.0, image);
        }
    }
    image[0] = mean;
}

/* Mean over pixels of each pixel's phase, and the image mean of the variance over pixels. sums, squares: [fine] */
static ps_code pixel_phases(const ps_cpu_frame *frame, double complex *spectrum, double complex *image, double *sums, double *squares,
                            ps_error *error) {
    const ps_reference_system *system = (const ps_reference_system *)frame->system;
    const ps_system_desc *desc = &system->cpu.desc;
    int64_t n = ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc);
    double mean = ps_cpu_mean_of_means(frame) / frame->dose;
    memset(sums, 0, (size_t)n * sizeof *sums);
    memset(squares, 0, (size_t)n * sizeof *squares);
    for (int64_t slot = 0; slot < desc->n_active; slot++) {
        PS_TRY(ps_reference_spectra(frame, slot, 1, frame->dose, spectrum, error));
        correct_pixel(system, slot, spectrum, mean, image);
        PS_TRY(ps_reference_image(desc, image, error));
#pragma omp parallel for schedule(static) num_threads(system->cpu.backend->n_threads)
        for (int64_t i = 0; i < n; i++) {
            double phase = angle(image[i]);
            sums[i] += phase;
            squares[i] += phase * phase;
        }
    }
    return PS_OK;
}

static double finish_phases(int64_t n_active, int64_t n, double *sums, const double *squares) {
    double loss = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sums[i] /= (double)n_active;
        loss += squares[i] / (double)n_active - sums[i] * sums[i];
    }
    return loss / (double)n;
}

ps_code ps_reference_ssb(ps_frame *handle, ps_ssb_estimator estimator, float *phase_f32, double *phase_f64, double *loss, ps_error *error) {
    const ps_cpu_frame *frame = (const ps_cpu_frame *)handle;
    const ps_system_desc *desc = &frame->system->desc;
    int64_t n = ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc);
    ps_code code = PS_OK;
    double complex *spectrum = ps_cpu_allocate((size_t)(desc->scan_rows * ps_cpu_half_columns(desc)), sizeof *spectrum);
    double complex *image = ps_cpu_allocate((size_t)n, sizeof *image);
    double *sums = ps_cpu_allocate((size_t)n, sizeof *sums), *squares = ps_cpu_allocate((size_t)n, sizeof *squares);
    PS_GO_ALLOC(error, spectrum);
    PS_GO_ALLOC(error, image);
    PS_GO_ALLOC(error, sums);
    PS_GO_ALLOC(error, squares);
    if (estimator == PS_SSB_WAVE) {
        PS_GO(wave_phase(frame, image, sums, error));
    } else {
        PS_GO(pixel_phases(frame, spectrum, image, sums, squares, error));
        double variance = finish_phases(desc->n_active, n, sums, squares);
        if (loss) *loss = variance;
    }
    ps_cpu_write_image(n, sums, phase_f32, phase_f64);
done:
    ps_cpu_free(spectrum);
    ps_cpu_free(image);
    ps_cpu_free(sums);
    ps_cpu_free(squares);
    return code;
}
