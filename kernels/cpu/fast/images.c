#include <complex.h>
#include <fftw3.h>
#include <string.h>

#include "kernels/cpu/fast/fast.h"
#include "kernels/cpu/fast/images.h"
#include "kernels/cpu/memory.h"

enum { ALIGN_FLOATS = 16 };

static int64_t rounded(int64_t floats) {
    return (floats + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static int64_t half_floats(const ps_system_desc *desc) {
    return rounded(2 * ps_cpu_fine_rows(desc) * (ps_cpu_fine_columns(desc) / 2 + 1));
}

size_t ps_fast_image_bytes(const ps_system_desc *desc) {
    return (size_t)(half_floats(desc) + rounded(ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc))) * sizeof(float);
}

ps_code ps_fast_imager_init(const ps_system_desc *desc, int n_threads, ps_fast_imager *imager, ps_error *error) {
    *imager = (ps_fast_imager){.desc = desc, .half_floats = half_floats(desc)};
    imager->image_floats = (int64_t)(ps_fast_image_bytes(desc) / sizeof(float));
    imager->memory = ps_cpu_allocate((size_t)n_threads, ps_fast_image_bytes(desc));
    if (!imager->memory) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %d images", n_threads);
    imager->plan = fftwf_plan_dft_c2r_2d((int)ps_cpu_fine_rows(desc), (int)ps_cpu_fine_columns(desc), (fftwf_complex *)imager->memory,
                                         imager->memory + imager->half_floats, FFTW_ESTIMATE);
    return imager->plan ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot plan the inverse transform of an image");
}

void ps_fast_imager_release(ps_fast_imager *imager) {
    if (imager->plan) fftwf_destroy_plan(imager->plan);
    ps_cpu_free(imager->memory);
}

/* value/2 at Q and its conjugate at -Q, as far as they lie in the half-plane. */
static void place(const ps_system_desc *desc, int64_t alias, float complex value, float complex *half) {
    int64_t rows = ps_cpu_fine_rows(desc), columns = ps_cpu_fine_columns(desc), width = columns / 2 + 1;
    int64_t row = desc->fine_row[alias], column = desc->fine_column[alias];
    int64_t minus_row = (rows - row) % rows, minus_column = (columns - column) % columns;
    if (column < width) half[row * width + column] += 0.5f * value;
    if (minus_column < width) half[minus_row * width + minus_column] += 0.5f * conjf(value);
}

const float *ps_fast_image(const ps_fast_imager *imager, int thread, const float *coefficients, int64_t stride, ps_fast_part part) {
    const ps_system_desc *desc = imager->desc;
    float *memory = imager->memory + thread * imager->image_floats, *real = memory + imager->half_floats;
    float complex *half = (float complex *)memory;
    memset(half, 0, (size_t)imager->half_floats * sizeof(float));
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        if (part == PS_FAST_IMAGINARY && f->multiplicity == 2) continue; /* nothing: the partner's is the conjugate */
        float scale = (float)f->multiplicity;
        for (int64_t a = f->first_alias; a < f->first_alias + f->n_aliases; a++) {
            float re = scale * coefficients[a * 2 * stride], im = scale * coefficients[(a * 2 + 1) * stride];
            place(desc, a, part == PS_FAST_REAL ? re + I * im : im - I * re, half);
        }
    }
    fftwf_execute_dft_c2r(imager->plan, half, real);
    return real;
}

bool ps_fast_is_real(const ps_system_desc *desc) {
    for (int64_t a = 0; a < desc->n_aliases; a++)
        if (2 * desc->fine_row[a] == ps_cpu_fine_rows(desc) || 2 * desc->fine_column[a] == ps_cpu_fine_columns(desc)) return false;
    return true;
}
