#include "kernels/cpu/fast/dft.h"

#include <fftw3.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/memory.h"

enum { ALIGN_FLOATS = 16, MOST_PRIME = 13, MOST_POINTS = 256 };

static int64_t rounded(int64_t n) {
    return (n + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static int64_t row_width(const ps_system_desc *desc) {
    return rounded(2 * ps_cpu_half_columns(desc));
}

int64_t ps_fast_scan_stride(const ps_system_desc *desc) {
    return rounded(ps_cpu_positions(desc));
}

int64_t ps_fast_half_stride(const ps_system_desc *desc) {
    return rounded(desc->scan_rows * ps_cpu_half_columns(desc));
}

static bool is_slow(int64_t n) {
    for (int64_t prime = 2; prime <= MOST_PRIME; prime++)
        while (n % prime == 0) n /= prime;
    return n > 1;
}

static bool wants_products(const ps_system_desc *desc) {
    bool is_short = desc->scan_rows <= MOST_POINTS && desc->scan_columns <= MOST_POINTS;
    return is_short && (is_slow(desc->scan_rows) || is_slow(desc->scan_columns));
}

/* One array after the transform of rows' columns, two after that along rows. */
int64_t ps_fast_dft_scratch(const ps_system_desc *desc) {
    return wants_products(desc) ? 3 * desc->scan_rows * row_width(desc) : ALIGN_FLOATS;
}

size_t ps_fast_dft_bytes(const ps_system_desc *desc) {
    if (!wants_products(desc)) return 0;
    return (size_t)(desc->scan_columns * row_width(desc) + 2 * desc->scan_rows * desc->scan_rows) * sizeof(float);
}

static void fill_along_columns(const ps_fast_dft *dft) {
    memset(dft->along_columns, 0, (size_t)(dft->columns * dft->width) * sizeof(float));
    for (int64_t a = 0; a < dft->columns; a++)
        for (int64_t b = 0; b < dft->half; b++) {
            double angle = -2.0 * M_PI * (double)(a * b % dft->columns) / (double)dft->columns;
            dft->along_columns[a * dft->width + 2 * b] = (float)cos(angle);
            dft->along_columns[a * dft->width + 2 * b + 1] = (float)sin(angle);
        }
}

static void fill_along_rows(const ps_fast_dft *dft) {
    int64_t n = dft->rows;
    for (int64_t i = 0; i < n * n; i++) {
        double angle = -2.0 * M_PI * (double)(i / n * (i % n) % n) / (double)n;
        dft->along_rows[i] = (float)cos(angle);
        dft->along_rows[n * n + i] = (float)sin(angle);
    }
}

static ps_code init_plan(ps_fast_dft *dft, ps_error *error) {
    ps_code code = PS_OK;
    float *scan = ps_cpu_allocate((size_t)dft->scan_stride, sizeof *scan);
    float complex *spectrum = ps_cpu_allocate((size_t)dft->half_stride, sizeof *spectrum);
    PS_GO_ALLOC(error, scan);
    PS_GO_ALLOC(error, spectrum);
    dft->plan = fftwf_plan_dft_r2c_2d((int)dft->rows, (int)dft->columns, scan, spectrum, FFTW_ESTIMATE);
    PS_GO_ALLOC(error, dft->plan);
done:
    ps_cpu_free(scan);
    ps_cpu_free(spectrum);
    return code;
}

ps_code ps_fast_dft_init(const ps_system_desc *desc, const ps_fast_isa *isa, ps_fast_dft *dft, ps_error *error) {
    *dft = (ps_fast_dft){.isa = isa,
                         .rows = desc->scan_rows,
                         .columns = desc->scan_columns,
                         .half = ps_cpu_half_columns(desc),
                         .scan_stride = ps_fast_scan_stride(desc),
                         .half_stride = ps_fast_half_stride(desc),
                         .width = row_width(desc)};
    if (!wants_products(desc)) return init_plan(dft, error);
    dft->along_columns = ps_cpu_allocate((size_t)(dft->columns * dft->width), sizeof *dft->along_columns);
    dft->along_rows = ps_cpu_allocate((size_t)(2 * dft->rows * dft->rows), sizeof *dft->along_rows);
    if (!dft->along_columns || !dft->along_rows)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for transforms of %lld x %lld points", (long long)dft->rows,
                       (long long)dft->columns);
    fill_along_columns(dft);
    fill_along_rows(dft);
    return PS_OK;
}

void ps_fast_dft_release(ps_fast_dft *dft) {
    if (dft->plan) fftwf_destroy_plan(dft->plan);
    ps_cpu_free(dft->along_columns);
    ps_cpu_free(dft->along_rows);
}

void ps_fast_dft_run(const ps_fast_dft *dft, float *scan, float complex *spectrum, float *scratch) {
    if (!dft->along_columns) {
        fftwf_execute_dft_r2c(dft->plan, scan, spectrum);
        return;
    }
    int64_t rows = dft->rows, width = dft->width;
    float *lines = scratch, *real = scratch + rows * width, *imaginary = real + rows * width; /* products with cos and with sin */
    dft->isa->multiply(rows, width, dft->columns, scan, dft->columns, dft->along_columns, width, lines, width);
    dft->isa->multiply(2 * rows, width, rows, dft->along_rows, rows, lines, width, real, width);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < dft->half; i++) {
            const float *c = real + row * width + 2 * i, *s = imaginary + row * width + 2 * i;
            spectrum[row * dft->half + i] = (c[0] - s[1]) + I * (c[1] + s[0]);
        }
}
