/* Images from coefficients at the aliases: the unnormalised inverse transform on the fine grid, its real or imaginary part. */
#ifndef PS_KERNELS_CPU_FAST_IMAGES_H
#define PS_KERNELS_CPU_FAST_IMAGES_H

#include "kernels/cpu/cpu.h"

typedef struct {
    const ps_system_desc *desc;
    float *memory; /* [n_threads] half-plane, image, and the half-lines and lines of ps_fast_nyquist */
    int64_t half_floats, image_floats, thread_floats;
    int64_t *plus, *minus; /* [n_aliases] index of Q and of -Q in the half-plane; -1: in the other one */
    float *share;          /* [n_aliases] what of c(Q) goes to each: half, or all where it stands for its partner too */
    struct fftwf_plan_s *plan, *row_plan, *column_plan; /* of an image, of a line along a row, along a column */
} ps_fast_imager;

/* On error ps_fast_imager_release cleans up, which is also allowed for a zeroed imager. */
ps_code ps_fast_imager_init(const ps_system_desc *desc, int n_threads, ps_fast_imager *imager, ps_error *error);
void ps_fast_imager_release(ps_fast_imager *imager);
size_t ps_fast_image_bytes(const ps_system_desc *desc);  /* of one thread's memory */
size_t ps_fast_imager_bytes(const ps_system_desc *desc); /* of what threads share */

/* Real part of the transform of c(Q) over the frequencies of the list and, for those that stand for their partner too, conj(c(Q)) at -Q.
 * coefficients: [n_aliases, 2, stride], of which element 0 of each run of `stride` is taken. Returns the image [fine_rows,
 * fine_columns], in the memory of `thread` until its next call. */
const float *ps_fast_image(const ps_fast_imager *imager, int thread, const float *coefficients, int64_t stride);

/* Imaginary part of the same transform: (-1)^row * along_row[column] + (-1)^column * along_column[row], which only fine Nyquist lines make
 * (physics section 4), because nothing stands for their partners. */
typedef struct {
    const float *along_row, *along_column; /* [fine_columns], [fine_rows]; in the memory of `thread` until its next call */
} ps_fast_lines;
ps_fast_lines ps_fast_nyquist(const ps_fast_imager *imager, int thread, const float *coefficients, int64_t stride);

#endif
