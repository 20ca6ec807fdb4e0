#include <complex.h>
#include <fftw3.h>
#include <string.h>

#include "core/assert.h"
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

static int64_t image_floats(const ps_system_desc *desc) {
    return rounded(ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc));
}

static int64_t line_floats(int64_t n) {
    return rounded(2 * (n / 2 + 1)) + rounded(n);
}

static int64_t thread_floats(const ps_system_desc *desc) {
    return half_floats(desc) + image_floats(desc) + line_floats(ps_cpu_fine_columns(desc)) + line_floats(ps_cpu_fine_rows(desc));
}

size_t ps_fast_image_bytes(const ps_system_desc *desc) {
    return (size_t)thread_floats(desc) * sizeof(float);
}

/* A line's half-spectrum, then the line. */
static float *line_memory(const ps_fast_imager *imager, int thread, bool along_column) {
    float *lines = imager->memory + thread * imager->thread_floats + imager->half_floats + imager->image_floats;
    return along_column ? lines + line_floats(ps_cpu_fine_columns(imager->desc)) : lines;
}

size_t ps_fast_imager_bytes(const ps_system_desc *desc) {
    return (size_t)desc->n_aliases * (2 * sizeof(int64_t) + sizeof(float));
}

static void fill_places(const ps_system_desc *desc, ps_fast_imager *imager) {
    int64_t rows = ps_cpu_fine_rows(desc), columns = ps_cpu_fine_columns(desc), width = columns / 2 + 1;
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        for (int64_t a = f->first_alias; a < f->first_alias + f->n_aliases; a++) {
            int64_t row = desc->fine_row[a], column = desc->fine_column[a];
            int64_t minus_row = (rows - row) % rows, minus_column = (columns - column) % columns;
            imager->plus[a] = column < width ? row * width + column : -1;
            imager->minus[a] = minus_column < width ? minus_row * width + minus_column : -1;
            imager->share[a] = 0.5f * (float)f->multiplicity;
        }
    }
}

static ps_code allocate_imager(int n_threads, ps_fast_imager *imager, ps_error *error) {
    size_t aliases = (size_t)imager->desc->n_aliases;
    imager->memory = ps_cpu_allocate((size_t)n_threads, ps_fast_image_bytes(imager->desc));
    imager->plus = ps_cpu_allocate(aliases, sizeof *imager->plus);
    imager->minus = ps_cpu_allocate(aliases, sizeof *imager->minus);
    imager->share = ps_cpu_allocate(aliases, sizeof *imager->share);
    if (imager->memory && imager->plus && imager->minus && imager->share) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %d images", n_threads);
}

static struct fftwf_plan_s *plan_line(int64_t n, float *memory) {
    return fftwf_plan_dft_c2r_1d((int)n, (fftwf_complex *)memory, memory + rounded(2 * (n / 2 + 1)), FFTW_ESTIMATE);
}

ps_code ps_fast_imager_init(const ps_system_desc *desc, int n_threads, ps_fast_imager *imager, ps_error *error) {
    int64_t rows = ps_cpu_fine_rows(desc), columns = ps_cpu_fine_columns(desc);
    *imager = (ps_fast_imager){
        .desc = desc, .half_floats = half_floats(desc), .image_floats = image_floats(desc), .thread_floats = thread_floats(desc)};
    PS_TRY(allocate_imager(n_threads, imager, error));
    fill_places(desc, imager);
    imager->plan = fftwf_plan_dft_c2r_2d((int)rows, (int)columns, (fftwf_complex *)imager->memory, imager->memory + imager->half_floats,
                                         FFTW_ESTIMATE);
    imager->row_plan = plan_line(columns, line_memory(imager, 0, false));
    imager->column_plan = plan_line(rows, line_memory(imager, 0, true));
    if (imager->plan && imager->row_plan && imager->column_plan) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot plan the inverse transform of an image");
}

void ps_fast_imager_release(ps_fast_imager *imager) {
    if (imager->plan) fftwf_destroy_plan(imager->plan);
    if (imager->row_plan) fftwf_destroy_plan(imager->row_plan);
    if (imager->column_plan) fftwf_destroy_plan(imager->column_plan);
    ps_cpu_free(imager->memory);
    ps_cpu_free(imager->plus);
    ps_cpu_free(imager->minus);
    ps_cpu_free(imager->share);
}

const float *ps_fast_image(const ps_fast_imager *imager, int thread, const float *coefficients, int64_t stride) {
    PS_ASSERT(thread >= 0 && stride > 0);
    float *memory = imager->memory + thread * imager->thread_floats, *real = memory + imager->half_floats;
    float complex *half = (float complex *)memory;
    memset(half, 0, (size_t)imager->half_floats * sizeof(float));
    for (int64_t a = 0; a < imager->desc->n_aliases; a++) {
        float re = imager->share[a] * coefficients[a * 2 * stride], im = imager->share[a] * coefficients[(a * 2 + 1) * stride];
        if (imager->plus[a] >= 0) half[imager->plus[a]] += re + I * im;
        if (imager->minus[a] >= 0) half[imager->minus[a]] += re - I * im;
    }
    fftwf_execute_dft_c2r(imager->plan, half, real);
    return real;
}

/* value/2 at a point of a line of n, and its conjugate at its partner, as far as they lie in the half-line. */
static void place_on_line(int64_t n, int64_t at, float complex value, float complex *half) {
    int64_t minus = (n - at) % n;
    if (at < n / 2 + 1) half[at] += 0.5f * value;
    if (minus < n / 2 + 1) half[minus] += 0.5f * conjf(value);
}

ps_fast_lines ps_fast_nyquist(const ps_fast_imager *imager, int thread, const float *coefficients, int64_t stride) {
    const ps_system_desc *desc = imager->desc;
    int64_t rows = ps_cpu_fine_rows(desc), columns = ps_cpu_fine_columns(desc);
    float *row = line_memory(imager, thread, false), *column = line_memory(imager, thread, true);
    memset(row, 0, (size_t)(line_floats(columns) + line_floats(rows)) * sizeof *row);
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        for (int64_t a = f->first_alias; f->multiplicity == 1 && a < f->first_alias + f->n_aliases; a++) {
            float complex value = coefficients[(a * 2 + 1) * stride] - I * coefficients[a * 2 * stride];
            if (2 * desc->fine_row[a] == rows)
                place_on_line(columns, desc->fine_column[a], value, (float complex *)row);
            else if (2 * desc->fine_column[a] == columns)
                place_on_line(rows, desc->fine_row[a], value, (float complex *)column);
        }
    }
    ps_fast_lines lines = {row + rounded(2 * (columns / 2 + 1)), column + rounded(2 * (rows / 2 + 1))};
    fftwf_execute_dft_c2r(imager->row_plan, (float complex *)row, (float *)lines.along_row);
    fftwf_execute_dft_c2r(imager->column_plan, (float complex *)column, (float *)lines.along_column);
    return lines;
}
