/* Images from Fourier coefficients on the fine grid: gather them into a half-plane, one inverse transform.
 *
 * A half-plane's cell Q takes the coefficient that is at Q and the one at -Q (maps made once per system), so that lines with a
 * fine-grid Nyquist frequency, whose partners are not each other's conjugates, come out as the real part of the full transform too: real
 * part of the image:      (x(Q) + conj(x(-Q)))/2 imaginary part of the wave:  (v(Q) - conj(v(-Q)))/(2i);  real part: (v(Q) + conj(v(-Q)))/2
 * One cell a thread; bytes: two maps, the coefficients once or twice, the half-plane once. Bound by memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/operations.h"

enum { THREADS = 256 };

/* A map's entry: 0 none, alias + 1 as it is, -(alias + 1) by way of the partner. */
__device__ inline double2 coefficient(const double2 *x, int32_t entry, double sign) {
    if (entry == 0) return make_double2(0.0, 0.0);
    double2 value = x[entry > 0 ? entry - 1 : -entry - 1];
    return entry > 0 ? value : make_double2(sign * value.x, -sign * value.y);
}

static __global__ void __launch_bounds__(THREADS) gather_kernel(const double2 *x, const int32_t *source, const int32_t *partner, int64_t n,
                                                                ps_cuda_image_kind kind, float2 *plane, int32_t *flag) {
    int64_t cell = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (cell >= n) return;
    double sign = kind == PS_CUDA_IMAGE_REAL ? 1.0 : -1.0;
    double2 here = coefficient(x, source[cell], sign), there = coefficient(x, partner[cell], sign);
    double2 even = make_double2(0.5 * (here.x + there.x), 0.5 * (here.y - there.y));
    double2 odd = make_double2(0.5 * (here.y + there.y), -0.5 * (here.x - there.x));
    double2 value = kind == PS_CUDA_WAVE_IMAGINARY ? odd : even;
    if (!isfinite(value.x) || !isfinite(value.y)) *flag = 1;
    plane[cell] = make_float2((float)value.x, (float)value.y);
}

int64_t ps_cuda_image_floats(const ps_cuda_system *system) {
    return ps_cuda_fine_rows(&system->desc) * 2 * ps_cuda_fine_half(&system->desc);
}

size_t ps_cuda_image_work(const ps_cuda_system *system) {
    ps_cuda_transform transform = ps_cuda_image_transform(system, 1);
    return ps_cuda_transform_work(&transform);
}

ps_code ps_cuda_image(ps_cuda_system *system, const double2 *x, ps_cuda_image_kind kind, float *image, unsigned char *work,
                      ps_error *error) {
    ps_cuda_transform transform = ps_cuda_image_transform(system, 1);
    int64_t n = ps_cuda_image_floats(system) / 2;
    PS_CUDA_LAUNCH(error, gather_kernel, (unsigned)ps_cuda_blocks(n, THREADS), THREADS, 0, system->backend->compute, x,
                   system->d_image_source, system->d_image_partner, n, kind, (float2 *)image, system->d_flag);
    return ps_cuda_transform_run(&transform, &system->inverse, image, work, system->backend->compute, error);
}

ps_code ps_cuda_flag_clear(ps_cuda_system *system, ps_error *error) {
    return PS_CUDA(error, cudaMemsetAsync(system->d_flag, 0, sizeof(int32_t), system->backend->compute));
}

ps_code ps_cuda_flag_check(ps_cuda_system *system, const char *what, ps_error *error) {
    int32_t flag = 0;
    PS_TRY(PS_CUDA(error, cudaMemcpyAsync(&flag, system->d_flag, sizeof flag, cudaMemcpyDeviceToHost, system->backend->compute)));
    PS_TRY(PS_CUDA(error, cudaStreamSynchronize(system->backend->compute)));
    if (flag) return PS_FAIL(error, PS_E_NUMERIC, "cuda: %s", what);
    return PS_OK;
}

/* full: [fine_rows, fine_columns] of a map's entries. */
static void fill_plane(const ps_system_desc *desc, int32_t *full) {
    int64_t rows = ps_cuda_fine_rows(desc), columns = ps_cuda_fine_columns(desc);
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        for (int64_t a = f->first_alias; a < f->first_alias + f->n_aliases; a++) {
            int64_t row = desc->fine_row[a], column = desc->fine_column[a];
            full[row * columns + column] = (int32_t)(a + 1);
            if (f->multiplicity == 2) full[(rows - row) % rows * columns + (columns - column) % columns] = -(int32_t)(a + 1);
        }
    }
}

ps_code ps_cuda_image_maps(const ps_system_desc *desc, int32_t *source, int32_t *partner, ps_error *error) {
    int64_t rows = ps_cuda_fine_rows(desc), columns = ps_cuda_fine_columns(desc), half = ps_cuda_fine_half(desc);
    int32_t *full = (int32_t *)calloc((size_t)(rows * columns), sizeof *full);
    if (!full)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld x %lld fine frequencies", (long long)rows, (long long)columns);
    fill_plane(desc, full);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < half; column++) {
            source[row * half + column] = full[row * columns + column];
            partner[row * half + column] = full[(rows - row) % rows * columns + (columns - column) % columns];
        }
    free(full);
    return PS_OK;
}
