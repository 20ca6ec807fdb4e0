/* Images from coefficients at the aliases: the unnormalised inverse transform on the fine grid, its real or imaginary part. */
#ifndef PS_KERNELS_CPU_FAST_IMAGES_H
#define PS_KERNELS_CPU_FAST_IMAGES_H

#include "kernels/cpu/cpu.h"

typedef struct {
    const ps_system_desc *desc;
    float *memory; /* [n_threads] half-plane and image */
    int64_t half_floats, image_floats;
    struct fftwf_plan_s *plan;
} ps_fast_imager;

/* The transform sums c(Q) over the frequencies of the list and, for those that stand for their partner too, conj(c(Q)) at -Q. Its
 * imaginary part is not 0 only where a fine Nyquist line is in the list (physics section 4). */
typedef enum { PS_FAST_REAL, PS_FAST_IMAGINARY } ps_fast_part;

/* On error ps_fast_imager_release cleans up, which is also allowed for a zeroed imager. */
ps_code ps_fast_imager_init(const ps_system_desc *desc, int n_threads, ps_fast_imager *imager, ps_error *error);
void ps_fast_imager_release(ps_fast_imager *imager);
size_t ps_fast_image_bytes(const ps_system_desc *desc); /* of one thread's memory */

/* coefficients: [n_aliases, 2, stride], of which element 0 of each run of `stride` is taken. Returns the image [fine_rows,
 * fine_columns], in the memory of `thread` until its next call. */
const float *ps_fast_image(const ps_fast_imager *imager, int thread, const float *coefficients, int64_t stride, ps_fast_part part);

/* true when every imaginary part is 0. */
bool ps_fast_is_real(const ps_system_desc *desc);

#endif
