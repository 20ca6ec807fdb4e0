#include <assert.h>
#include <string.h>

#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"

/* b of section 5's phase method where its solution x would stand; the scan's zero frequency is left out as it is there. */
ps_code ps_reference_right_side_image(ps_frame *handle, float *image_f32, double *image_f64, ps_error *error) {
    const ps_cpu_frame *frame = (const ps_cpu_frame *)handle;
    const ps_system_desc *desc = &frame->system->desc;
    int64_t n = ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc);
    ps_code code = PS_OK;
    assert(handle->is_reduced);
    double complex *image = ps_cpu_allocate_zero((size_t)n, sizeof *image);
    PS_GO_ALLOC(error, image);
    for (int64_t i = 1; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        ps_reference_place(desc, f, frame->right_phase + f->first_alias, image);
    }
    PS_GO(ps_reference_image(desc, image, error));
    for (int64_t i = 0; i < n; i++) {
        if (image_f32) image_f32[i] = (float)creal(image[i]);
        if (image_f64) image_f64[i] = creal(image[i]);
    }
done:
    ps_cpu_free(image);
    return code;
}
