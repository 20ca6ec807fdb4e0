#include <complex.h>
#include <fftw3.h>

#include "kernels/cpu/reference/reference.h"

ps_code ps_reference_image(const ps_system_desc *desc, double complex *image, ps_error *error) {
    fftw_plan plan = fftw_plan_dft_2d((int)ps_cpu_fine_rows(desc), (int)ps_cpu_fine_columns(desc), image, image, FFTW_BACKWARD,
                                      FFTW_ESTIMATE | FFTW_UNALIGNED);
    if (!plan) return PS_FAIL(error, PS_E_MEMORY, "cannot plan the inverse transform of an image");
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    return PS_OK;
}
