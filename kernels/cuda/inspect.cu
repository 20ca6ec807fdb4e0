/* What tests and fits look at: one frequency's transfer, N, eigenvalues and right side, spectra and data norms. None but the last two is
 * fast: several spectra are copied out of the store of g, which is not formed again where a reduction left it. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/g_store.cuh"
#include "kernels/cuda/sum.cuh"
#include "kernels/cuda/transfer.cuh"

enum { THREADS = 128 };

struct data_norm_value {
    const ps_cuda_frequency *frequencies;
    const double *data_norm;
    __device__ double operator()(int64_t i) const { return frequencies[i].multiplicity * data_norm[i]; }
};

ps_code ps_cuda_frame_data_norm(ps_frame *handle, double *data_norm, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_system *system = frame->system;
    PS_TRY(ps_cuda_enter(system->backend, error));
    data_norm_value value = {system->d_frequencies, frame->d_data_norm};
    pthread_mutex_lock(&system->backend->compute_lock);
    ps_code code = ps_cuda_sum(system, value, system->desc.n_frequencies, data_norm, error);
    pthread_mutex_unlock(&system->backend->compute_lock);
    return code;
}

/* Side bands without A(k), in double: [n_aliases, n_slots, 2]. A block takes the slots of one band and one alias. */
static __global__ void __launch_bounds__(THREADS) transfer_kernel(const __grid_constant__ ps_cuda_geometry g, ps_cuda_pixels pixels,
                                                                  ps_cuda_aliases aliases, int64_t first_alias, double2 *sides) {
    const ps_cuda_band band = pixels.bands[blockIdx.x];
    int64_t n_slots = (int64_t)pixels.n_tiles * PS_CUDA_LANES, alias = first_alias + blockIdx.y;
    for (int i = threadIdx.x; i < band.n_tiles * PS_CUDA_LANES; i += THREADS) {
        double u = band.u + i % PS_CUDA_BAND_ROWS, v = band.v + i / PS_CUDA_BAND_ROWS;
        int64_t slot = (int64_t)band.first_tile * PS_CUDA_LANES + i;
        for (int side = 0; side < 2; side++) {
            ps_row_terms terms;
            double2 t;
            ps_form_row_terms(g, u, aliases.u[alias], aliases.v[alias], side ? -1.0 : 1.0, &terms);
            ps_transfer(g, terms, v - terms.place, fma(terms.y1, v, terms.y0), pixels.pixels[slot].chi, 1.0, true, &t.x, &t.y);
            sides[((int64_t)blockIdx.y * n_slots + slot) * 2 + side] = t;
        }
    }
}

static ps_code launch_transfer(const ps_cuda_system *system, const ps_frequency *f, double2 *d_sides, ps_error *error) {
    dim3 grid((unsigned)system->layout.n_bands, (unsigned)f->n_aliases);
    PS_CUDA_LAUNCH(error, transfer_kernel, grid, THREADS, 0, system->backend->compute, system->geometry, ps_cuda_system_pixels(system),
                   ps_cuda_system_aliases(system), f->first_alias, d_sides);
    return PS_CUDA(error, cudaStreamSynchronize(system->backend->compute));
}

/* sides: [n_aliases, n_slots, 2] -> transfer: [n_aliases, n_active, 2 (amplitude, phase)] complex. */
static void combine_sides(const ps_cuda_system *system, int64_t n_aliases, const double2 *sides, double *transfer) {
    int64_t n_slots = system->layout.n_slots, n_active = system->desc.n_active;
    for (int64_t a = 0; a < n_aliases; a++)
        for (int64_t slot = 0; slot < n_slots; slot++) {
            int32_t pixel = system->layout.slot_pixel[slot];
            if (pixel < 0) continue;
            const double2 *t = sides + (a * n_slots + slot) * 2;
            double *to = transfer + (a * n_active + pixel) * 4, aperture = system->apertures[pixel];
            to[0] = aperture * (t[0].x + t[1].x);
            to[1] = aperture * (t[0].y + t[1].y);
            to[2] = -aperture * (t[0].y - t[1].y);
            to[3] = aperture * (t[0].x - t[1].x);
        }
}

ps_code ps_cuda_get_transfer(ps_system *handle, int64_t frequency, double *transfer, ps_error *error) {
    ps_cuda_system *system = (ps_cuda_system *)handle;
    PS_TRY(ps_cuda_enter(system->backend, error));
    const ps_frequency *f = &system->frequencies[frequency];
    int64_t n = f->n_aliases * system->layout.n_slots * 2;
    ps_code code = PS_OK;
    double2 *sides = NULL;
    void *d_sides = NULL;
    if (n == 0) return PS_OK;
    PS_TRY(ps_cuda_allocate(system->backend, (size_t)n * sizeof(double2), "one frequency's transfer", &d_sides, error));
    sides = (double2 *)malloc((size_t)n * sizeof *sides);
    PS_GO_ALLOC(error, sides);
    PS_GO(launch_transfer(system, f, (double2 *)d_sides, error));
    PS_GO(ps_cuda_fetch(sides, (const double2 *)d_sides, n, error));
    combine_sides(system, f->n_aliases, sides, transfer);
done:
    free(sides);
    ps_cuda_free(system->backend, d_sides, (size_t)n * sizeof(double2));
    return code;
}

/* Packed lower triangle from row and column `first` on -> full [dim, dim]. */
static void unpack(const double2 *packed, int64_t first, int64_t dim, double *normal) {
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j <= i; j++) {
            int64_t row = first + i, column = first + j;
            double2 entry = packed[row * (row + 1) / 2 + column];
            normal[2 * (i * dim + j)] = normal[2 * (j * dim + i)] = entry.x;
            normal[2 * (i * dim + j) + 1] = entry.y;
            normal[2 * (j * dim + i) + 1] = -entry.y;
        }
}

ps_code ps_cuda_get_normal(ps_system *handle, ps_methods method, int64_t frequency, double *normal, ps_error *error) {
    ps_cuda_system *system = (ps_cuda_system *)handle;
    PS_TRY(ps_cuda_enter(system->backend, error));
    int64_t n = system->frequencies[frequency].n_aliases, dim = method == PS_METHOD_COMPLEX ? 2 * n : n;
    int64_t stored = system->methods & PS_METHOD_COMPLEX ? 2 * n : n, elements = stored * (stored + 1) / 2;
    ps_cuda_frequency f;
    ps_code code = PS_OK;
    memset(normal, 0, (size_t)(dim * dim) * 2 * sizeof *normal);
    if (frequency == 0 || n == 0) return PS_OK;
    double2 *packed = (double2 *)malloc((size_t)elements * sizeof *packed);
    PS_GO_ALLOC(error, packed);
    PS_GO(ps_cuda_fetch(&f, (const ps_cuda_frequency *)system->d_frequencies + frequency, 1, error));
    PS_GO(ps_cuda_fetch(packed, (const double2 *)system->d_normal + f.normal, elements, error));
    unpack(packed, stored - dim, dim, normal);
done:
    free(packed);
    return code;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

ps_code ps_cuda_get_eigenvalues(ps_system *handle, int64_t frequency, double *eigenvalues, ps_error *error) {
    ps_cuda_system *system = (ps_cuda_system *)handle;
    PS_TRY(ps_cuda_enter(system->backend, error));
    const ps_frequency *f = &system->frequencies[frequency];
    memset(eigenvalues, 0, (size_t)f->n_aliases * sizeof *eigenvalues);
    if (frequency == 0 || f->n_aliases == 0) return PS_OK;
    PS_TRY(ps_cuda_fetch(eigenvalues, (const double *)system->d_eigenvalues + f->first_alias, f->n_aliases, error));
    qsort(eigenvalues, (size_t)f->n_aliases, sizeof *eigenvalues, compare_doubles);
    return PS_OK;
}

ps_code ps_cuda_get_right_side(ps_frame *handle, ps_methods method, int64_t frequency, double *right_side, double *data_norm,
                               ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_system *system = frame->system;
    PS_TRY(ps_cuda_enter(system->backend, error));
    const ps_frequency *f = &system->frequencies[frequency];
    int64_t n = f->n_aliases, dim = method == PS_METHOD_COMPLEX ? 2 * n : n;
    memset(right_side, 0, (size_t)dim * 2 * sizeof *right_side);
    if (data_norm) PS_TRY(ps_cuda_fetch(data_norm, (const double *)frame->d_data_norm + frequency, 1, error));
    if (frequency == 0 || n == 0) return PS_OK;
    double2 *to = (double2 *)right_side;
    if (method == PS_METHOD_COMPLEX) PS_TRY(ps_cuda_fetch(to, (const double2 *)frame->d_right_amplitude + f->first_alias, n, error));
    return ps_cuda_fetch(to + dim - n, (const double2 *)frame->d_right_phase + f->first_alias, n, error);
}

/* values: [n_tiles, 32] of the tiles from first_tile on -> spectrum: [n_active] complex. */
static void scatter_spectrum(const ps_cuda_system *system, int64_t first_tile, int64_t n_tiles, const float2 *values, double sign,
                             double dose, double *spectrum) {
    for (int64_t i = 0; i < n_tiles * PS_CUDA_LANES; i++) {
        int32_t pixel = system->layout.slot_pixel[first_tile * PS_CUDA_LANES + i];
        if (pixel < 0) continue;
        spectrum[2 * (int64_t)pixel] = values[i].x / dose;
        spectrum[2 * (int64_t)pixel + 1] = sign * values[i].y / dose;
    }
}

/* Side by side, 32 elements of each of n tiles, which are `step` elements apart on the device. */
template <typename T> static ps_code fetch_lanes(T *values, const T *first, int64_t step, int64_t n, ps_error *error) {
    size_t row = PS_CUDA_LANES * sizeof(T);
    return PS_CUDA(error, cudaMemcpy2D(values, row, first, (size_t)step * sizeof(T), row, (size_t)n, cudaMemcpyDeviceToHost));
}

/* One frequency's values, [n, 32], out of the compact form. */
static ps_code fetch_compact(const ps_cuda_system *system, const ps_cuda_frequency *f, int64_t n, float2 *values, ps_error *error) {
    const ps_cuda_g &g = system->workspace.g;
    int64_t scales_step = (system->desc.scan_rows + 1) * PS_CUDA_LANES, all = n * PS_CUDA_LANES;
    ps_code code = PS_OK;
    short2 *packed = (short2 *)malloc((size_t)all * sizeof *packed);
    float *scales = (float *)malloc((size_t)all * sizeof *scales);
    PS_GO_ALLOC(error, packed);
    PS_GO_ALLOC(error, scales);
    PS_GO(fetch_lanes(packed, (const short2 *)g.packed + f->spectrum * PS_CUDA_LANES, system->n_spectrum * PS_CUDA_LANES, n, error));
    PS_GO(fetch_lanes(scales, (const float *)g.scales + f->scale_row * PS_CUDA_LANES, scales_step, n, error));
    for (int64_t i = 0; i < all; i++) values[i] = make_float2(ps_g_unpack(packed[i].x, scales[i]), ps_g_unpack(packed[i].y, scales[i]));
done:
    free(packed);
    free(scales);
    return code;
}

/* One frequency of the spectra in the store, [n tiles from first on]. */
static ps_code fetch_spectrum(const ps_cuda_system *system, const ps_cuda_frequency *f, int64_t first, int64_t n, double dose,
                              float2 *values, double *spectrum, ps_error *error) {
    const float2 *exact = system->workspace.g.exact;
    if (exact)
        PS_TRY(fetch_lanes(values, exact + f->spectrum * PS_CUDA_LANES, system->n_spectrum * PS_CUDA_LANES, n, error));
    else
        PS_TRY(fetch_compact(system, f, n, values, error));
    scatter_spectrum(system, first, n, values, f->conjugate, dose, spectrum);
    return PS_OK;
}

/* The frame's spectra of n tiles, unless all of them are there from an earlier operation. */
static ps_code fill_store(ps_cuda_frame *frame, int64_t first, int64_t n, ps_error *error) {
    ps_cuda_system *system = frame->system;
    ps_cuda_workspace *workspace = &system->workspace;
    bool whole = n == system->layout.n_tiles;
    if (whole && workspace->owner[0] == frame->serial) return PS_OK;
    for (int64_t i = 0; i < workspace->n_owners; i++) workspace->owner[i] = 0;
    PS_TRY(ps_cuda_spectra(frame, first, n, workspace->g, error));
    PS_TRY(PS_CUDA(error, cudaStreamSynchronize(system->backend->compute)));
    if (whole) workspace->owner[0] = frame->serial;
    return PS_OK;
}

static ps_code fetch_spectra(ps_cuda_frame *frame, int64_t n, const ps_cuda_frequency *frequencies, double dose, float2 *values,
                             double *spectra, ps_error *error) {
    ps_cuda_system *system = frame->system;
    int64_t tiles, all = system->layout.n_tiles;
    PS_TRY(ps_cuda_frame_ensure_means(frame, error));
    PS_TRY(ps_cuda_workspace_ensure(system, 1, &tiles, error));
    for (int64_t first = 0; first < all; first += tiles) {
        int64_t n_tiles = all - first < tiles ? all - first : tiles;
        PS_TRY(fill_store(frame, first, n_tiles, error));
        for (int64_t i = 0; i < n; i++)
            PS_TRY(fetch_spectrum(system, &frequencies[i], first, n_tiles, dose, values, spectra + 2 * i * system->desc.n_active, error));
    }
    return PS_OK;
}

ps_code ps_cuda_get_spectra(ps_frame *handle, int64_t n, const int64_t *wanted, double dose, double *spectra, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_system *system = frame->system;
    ps_code code = PS_OK;
    PS_TRY(ps_cuda_enter(system->backend, error));
    ps_cuda_frequency *frequencies = (ps_cuda_frequency *)malloc((size_t)n * sizeof *frequencies);
    float2 *values = (float2 *)malloc((size_t)system->layout.n_slots * sizeof *values);
    PS_GO_ALLOC(error, frequencies);
    PS_GO_ALLOC(error, values);
    for (int64_t i = 0; i < n; i++)
        PS_GO(ps_cuda_fetch(&frequencies[i], (const ps_cuda_frequency *)system->d_frequencies + wanted[i], 1, error));
    pthread_mutex_lock(&system->backend->compute_lock);
    code = fetch_spectra(frame, n, frequencies, dose, values, spectra, error);
    pthread_mutex_unlock(&system->backend->compute_lock);
done:
    free(frequencies);
    free(values);
    return code;
}

ps_code ps_cuda_get_spectrum(ps_frame *handle, int64_t frequency, double dose, double *spectrum, ps_error *error) {
    return ps_cuda_get_spectra(handle, 1, &frequency, dose, spectrum, error);
}

ps_code ps_cuda_get_data_norms(ps_frame *handle, double *data_norms, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    PS_TRY(ps_cuda_enter(frame->system->backend, error));
    return ps_cuda_fetch(data_norms, (const double *)frame->d_data_norm, frame->system->desc.n_frequencies, error);
}
