/* The image whose Fourier coefficients are b of the phase method: docs/physics.md section 5. b is 0 at the scan's zero frequency, which a
 * reduction skips. */
#include <assert.h>

#include "kernels/cpu/fast/fast.h"
#include "kernels/cpu/fast/images.h"
#include "kernels/cpu/memory.h"

size_t ps_fast_right_side_image_bytes(const ps_system_desc *desc) {
    return (size_t)desc->n_aliases * 2 * sizeof(float) + ps_fast_image_bytes(desc) + ps_fast_imager_bytes(desc);
}

ps_code ps_fast_right_side_image(ps_frame *handle, float *image_f32, double *image_f64, ps_error *error) {
    const ps_cpu_frame *frame = (const ps_cpu_frame *)handle;
    const ps_system_desc *desc = &frame->system->desc;
    const double *right_side = ps_fast_pairs(frame->right_phase);
    ps_fast_imager imager = {0};
    ps_code code = PS_OK;
    assert(handle->is_reduced);
    float *b = ps_cpu_allocate((size_t)(2 * desc->n_aliases), sizeof *b);
    PS_GO_ALLOC(error, b);
    PS_GO(ps_fast_imager_init(desc, 1, &imager, error));
    for (int64_t i = 0; i < 2 * desc->n_aliases; i++) b[i] = (float)right_side[i];
    const float *image = ps_fast_image(&imager, 0, b, 1);
    for (int64_t i = 0; i < ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc); i++) {
        if (image_f32) image_f32[i] = image[i];
        if (image_f64) image_f64[i] = image[i];
    }
done:
    ps_fast_imager_release(&imager);
    ps_cpu_free(b);
    return code;
}
