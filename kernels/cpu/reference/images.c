#include <complex.h>
#include <fftw3.h>

#include "kernels/cpu/reference/reference.h"

void ps_reference_place(const ps_system_desc *desc, const ps_frequency *f, const double complex *x, double complex *image) {
    int64_t rows = ps_cpu_fine_rows(desc), columns = ps_cpu_fine_columns(desc);
    for (int64_t a = 0; a < f->n_aliases; a++) {
        int64_t row = desc->fine_row[f->first_alias + a], column = desc->fine_column[f->first_alias + a];
        image[row * columns + column] = x[a];
        if (f->multiplicity == 2) image[(rows - row) % rows * columns + (columns - column) % columns] = conj(x[a]);
    }
}

ps_code ps_reference_image(const ps_system_desc *desc, double complex *image, ps_error *error) {
    fftw_plan plan = fftw_plan_dft_2d((int)ps_cpu_fine_rows(desc), (int)ps_cpu_fine_columns(desc), image, image, FFTW_BACKWARD,
                                      FFTW_ESTIMATE | FFTW_UNALIGNED);
    if (!plan) return PS_FAIL(error, PS_E_MEMORY, "cannot plan the inverse transform of an image");
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    return PS_OK;
}
