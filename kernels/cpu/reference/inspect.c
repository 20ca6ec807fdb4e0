#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"

ps_code ps_reference_get_transfer(ps_system *handle, int64_t frequency, double *transfer, ps_error *error) {
    (void)error;
    const ps_reference_system *system = (const ps_reference_system *)handle;
    const ps_frequency *f = &system->cpu.desc.frequencies[frequency];
    int64_t active = system->cpu.desc.n_active;
    double complex *out = (double complex *)transfer;
    for (int64_t a = 0; a < f->n_aliases; a++)
        for (int64_t i = 0; i < active; i++)
            ps_reference_transfer(system, f->first_alias + a, i, 1, out + (a * active + i) * 2, out + (a * active + i) * 2 + 1);
    return PS_OK;
}

ps_code ps_reference_get_normal(ps_system *handle, ps_methods method, int64_t frequency, double *normal, ps_error *error) {
    (void)error;
    const ps_reference_system *system = (const ps_reference_system *)handle;
    int64_t stored = ps_reference_dim(system, frequency), n = system->cpu.desc.frequencies[frequency].n_aliases;
    int64_t dim = method == PS_METHOD_COMPLEX ? 2 * n : n, first = stored - dim;
    const double complex *from = system->normal + system->normal_offset[frequency];
    double complex *to = (double complex *)normal;
    for (int64_t a = 0; a < dim; a++)
        for (int64_t b = 0; b < dim; b++) to[a * dim + b] = frequency == 0 ? 0.0 : from[first + a + (first + b) * stored];
    return PS_OK;
}

ps_code ps_reference_get_eigenvalues(ps_system *handle, int64_t frequency, double *eigenvalues, ps_error *error) {
    (void)error;
    const ps_reference_system *system = (const ps_reference_system *)handle;
    const ps_frequency *f = &system->cpu.desc.frequencies[frequency];
    for (int64_t a = 0; a < f->n_aliases; a++) eigenvalues[a] = frequency == 0 ? 0.0 : system->eigenvalues[f->first_alias + a];
    return PS_OK;
}

ps_code ps_reference_get_spectra(ps_frame *handle, int64_t n, const int64_t *frequencies, double dose, double *spectra, ps_error *error) {
    ps_cpu_frame *frame = (ps_cpu_frame *)handle;
    const ps_system_desc *desc = &frame->system->desc;
    PS_TRY(ps_cpu_frame_ensure_means(frame, error));
    double complex *half = ps_cpu_allocate((size_t)(desc->scan_rows * ps_cpu_half_columns(desc)), sizeof *half);
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, half);
    for (int64_t i = 0; i < desc->n_active; i++) {
        PS_GO(ps_reference_spectra(frame, i, 1, dose, half, error));
        for (int64_t f = 0; f < n; f++) {
            bool conjugate;
            int64_t index = ps_cpu_half_index(desc, &desc->frequencies[frequencies[f]], &conjugate);
            ((double complex *)spectra)[f * desc->n_active + i] = conjugate ? conj(half[index]) : half[index];
        }
    }
done:
    ps_cpu_free(half);
    return code;
}

ps_code ps_reference_get_spectrum(ps_frame *frame, int64_t frequency, double dose, double *spectrum, ps_error *error) {
    return ps_reference_get_spectra(frame, 1, &frequency, dose, spectrum, error);
}
