/* Trial optics over a band, kernels/trials.h: g of the band stays on the device, and a call sends its trials, a few hundred bytes each, and
 * fetches their values. trials_single.cu and trials_many.cu have the kernels. A call with more trials than the sums have room for goes in
 * pieces, which changes no value. */
#include "kernels/trials.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/layout.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/trial_transfer.cuh"

static const size_t sums_bytes_most = (size_t)64 << 20;
static const int64_t most_trials = 1 << 14;

typedef struct {
    ps_band base;
    ps_cuda_backend *backend;
    int64_t n_frequencies, most_aliases, batch; /* trials at a time */
    int64_t *first_alias, *first_entry;         /* host, [n_frequencies + 1] */
    ps_cuda_trial *h_trials;                    /* [batch] */
    void *memory;                               /* one block; what follows lies in it */
    size_t memory_bytes;
    ps_cuda_band_arrays d;
    ps_cuda_trial_sums sums;
    ps_cuda_trial *d_trials; /* [batch] */
    double *d_explained;     /* [batch] */
} cuda_band;

static void destroy(ps_band *handle) {
    cuda_band *band = (cuda_band *)handle;
    cudaSetDevice(band->backend->device);
    ps_cuda_free(band->backend, band->memory, band->memory_bytes);
    free(band->first_alias);
    free(band->first_entry);
    free(band->h_trials);
    free(band);
}

static bool is_single(const cuda_band *band) {
    return band->most_aliases == 1;
}

/* n_entries of the matrices, n_aliases in all; where each frequency has one alias both are the number of frequencies. */
static size_t bytes_of_trial(bool is_single, int64_t n_chunks, int64_t n_entries, int64_t n_aliases) {
    size_t sums = is_single ? (size_t)(n_aliases * n_chunks) * sizeof(double3) : (size_t)(n_entries + n_aliases) * sizeof(double2);
    return sums + sizeof(ps_cuda_trial) + sizeof(double);
}

/* Trials at a time. */
static int64_t batch_of(size_t bytes) {
    int64_t batch = (int64_t)(sums_bytes_most / bytes);
    return batch < 1 ? 1 : batch > most_trials ? most_trials : batch;
}

static void carve(cuda_band *band, ps_cuda_arena *arena) {
    int64_t n = band->n_frequencies, aliases = band->first_alias[n], batch = band->batch;
    band->d.pixels = ps_cuda_take<int2>(arena, band->d.n_pixels);
    band->d.spectra = ps_cuda_take<float2>(arena, n * band->d.n_pixels);
    band->d.q_row = ps_cuda_take<double>(arena, aliases);
    band->d.q_column = ps_cuda_take<double>(arena, aliases);
    band->d.first_alias = ps_cuda_take<int64_t>(arena, n + 1);
    band->d.first_entry = ps_cuda_take<int64_t>(arena, n + 1);
    band->d_trials = ps_cuda_take<ps_cuda_trial>(arena, batch);
    band->d_explained = ps_cuda_take<double>(arena, batch);
    if (is_single(band)) {
        band->sums.sums = ps_cuda_take<double3>(arena, batch * n * band->d.n_chunks);
    } else {
        band->sums.normal = ps_cuda_take<double2>(arena, batch * band->first_entry[n]);
        band->sums.right = ps_cuda_take<double2>(arena, batch * aliases);
    }
}

static ps_code count(const ps_band_desc *desc, cuda_band *band, ps_error *error) {
    int64_t n = desc->n_frequencies;
    band->n_frequencies = n;
    band->d.n_pixels = desc->n_pixels;
    band->d.n_chunks = ps_cuda_blocks(desc->n_pixels, PS_TRIAL_CHUNK);
    band->d.strength = desc->strength;
    band->first_alias = (int64_t *)malloc((size_t)(n + 1) * sizeof *band->first_alias);
    band->first_entry = (int64_t *)calloc((size_t)n + 1, sizeof *band->first_entry);
    if (!band->first_alias || !band->first_entry) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a band");
    memcpy(band->first_alias, desc->first_alias, (size_t)(n + 1) * sizeof *band->first_alias);
    for (int64_t i = 0; i < n; i++) {
        int64_t aliases = desc->first_alias[i + 1] - desc->first_alias[i];
        band->first_entry[i + 1] = band->first_entry[i] + aliases * aliases;
        if (aliases > band->most_aliases) band->most_aliases = aliases;
    }
    band->batch = batch_of(bytes_of_trial(is_single(band), band->d.n_chunks, band->first_entry[n], band->first_alias[n]));
    band->h_trials = (ps_cuda_trial *)malloc((size_t)band->batch * sizeof *band->h_trials);
    return band->h_trials ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for trial optics");
}

static ps_code send_data(const ps_band_desc *desc, const cuda_band *band, ps_error *error) {
    int64_t n = desc->n_frequencies, pixels = desc->n_pixels;
    ps_code code = PS_OK;
    int2 *places = (int2 *)malloc((size_t)pixels * sizeof *places);
    float2 *spectra = (float2 *)malloc((size_t)(n * pixels) * sizeof *spectra);
    PS_GO_ALLOC(error, places);
    PS_GO_ALLOC(error, spectra);
    for (int64_t i = 0; i < pixels; i++) places[i] = make_int2(desc->row[i], desc->column[i]);
    for (int64_t i = 0; i < n * pixels; i++) spectra[i] = make_float2((float)desc->spectra[2 * i], (float)desc->spectra[2 * i + 1]);
    PS_GO(ps_cuda_send(band->d.pixels, places, pixels, error));
    PS_GO(ps_cuda_send(band->d.spectra, spectra, n * pixels, error));
    PS_GO(ps_cuda_send(band->d.q_row, desc->q_row, desc->first_alias[n], error));
    PS_GO(ps_cuda_send(band->d.q_column, desc->q_column, desc->first_alias[n], error));
    PS_GO(ps_cuda_send(band->d.first_alias, desc->first_alias, n + 1, error));
    code = ps_cuda_send(band->d.first_entry, (const int64_t *)band->first_entry, n + 1, error);
done:
    free(places);
    free(spectra);
    return code;
}

static ps_code create(ps_backend *backend, const ps_band_desc *desc, ps_band **handle, ps_error *error) {
    ps_cuda_arena arena = {NULL, 0};
    ps_code code = PS_OK;
    cuda_band *band = (cuda_band *)calloc(1, sizeof *band);
    if (!band) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a band");
    band->backend = (ps_cuda_backend *)backend;
    PS_GO(ps_cuda_enter(band->backend, error));
    PS_GO(count(desc, band, error));
    carve(band, &arena);
    PS_GO(ps_cuda_allocate(band->backend, arena.used, "g of a band of frequencies", &band->memory, error));
    band->memory_bytes = arena.used;
    arena.base = (unsigned char *)band->memory;
    arena.used = 0;
    carve(band, &arena);
    PS_GO(send_data(desc, band, error));
    *handle = &band->base;
done:
    if (code != PS_OK) destroy(&band->base);
    return code;
}

/* The highest power of chi. */
static int degree_of(const ps_probe *probe) {
    int degree = 0;
    for (int i = 0; i < PS_N_ABERRATIONS; i++)
        if (probe->C_A[i] != 0.0 && ps_aberration_orders[i][0] + 1 > degree) degree = ps_aberration_orders[i][0] + 1;
    return degree;
}

static void fill_trial(const ps_trial *trial, ps_cuda_trial *to) {
    const ps_probe *probe = &trial->probe;
    double k_max = probe->semiangle_rad / probe->wavelength_A;
    const double direction_u[2] = {k_max, 0.0}, direction_v[2] = {0.0, k_max};
    ps_cuda_geometry g;
    ps_cuda_geometry_build(probe, direction_u, direction_v, &g);
    memset(to, 0, sizeof *to);
    memcpy(to->chi, g.chi, sizeof to->chi);
    for (int i = 0; i < 3; i++) {
        to->x[i] = trial->to_k[0][i] / k_max;
        to->y[i] = trial->to_k[1][i] / k_max;
    }
    to->q_scale = 1.0 / (trial->step_scale * k_max);
    to->rate = probe->thickness_A * probe->wavelength_A * k_max * k_max;
    for (int i = 0; i < 2; i++) to->drift[i] = probe->thickness_A * k_max * probe->tilt_rad[i];
    double row = probe->pitch_rad[0] / probe->semiangle_rad, column = probe->pitch_rad[1] / probe->semiangle_rad;
    to->pitch2 = (float)(row * row);
    to->more2 = (float)(column * column - row * row);
    to->is_thick = probe->thickness_A != 0.0;
    to->degree = degree_of(probe);
}

/* At most a batch of them. */
static ps_code explain_batch(cuda_band *band, int64_t n_frequencies, int64_t n, const ps_trial *trials, double *explained,
                             ps_error *error) {
    cudaStream_t stream = band->backend->compute;
    int degree = 0;
    for (int64_t i = 0; i < n; i++) {
        fill_trial(&trials[i], &band->h_trials[i]);
        if (band->h_trials[i].degree > degree) degree = band->h_trials[i].degree; /* a zero more in front changes no bit */
    }
    band->sums.n_entries = band->first_entry[n_frequencies];
    band->sums.n_aliases = band->first_alias[n_frequencies];
    PS_TRY(PS_CUDA(error,
                   cudaMemcpyAsync(band->d_trials, band->h_trials, (size_t)n * sizeof *band->h_trials, cudaMemcpyHostToDevice, stream)));
    if (is_single(band))
        PS_TRY(ps_cuda_trials_single(stream, &band->d, &band->sums, n_frequencies, n, degree, band->d_trials, band->d_explained, error));
    else
        PS_TRY(ps_cuda_trials_many(stream, &band->d, &band->sums, n_frequencies, band->most_aliases, n, band->d_trials, band->d_explained,
                                   error));
    PS_TRY(PS_CUDA(error, cudaMemcpyAsync(explained, band->d_explained, (size_t)n * sizeof *explained, cudaMemcpyDeviceToHost, stream)));
    return PS_CUDA(error, cudaStreamSynchronize(stream));
}

static ps_code explain(ps_band *handle, int64_t n_frequencies, int64_t n_trials, const ps_trial *trials, double *explained,
                       ps_error *error) {
    cuda_band *band = (cuda_band *)handle;
    ps_code code = PS_OK;
    PS_TRY(ps_cuda_enter(band->backend, error));
    pthread_mutex_lock(&band->backend->compute_lock);
    for (int64_t at = 0; code == PS_OK && at < n_trials; at += band->batch) {
        int64_t n = n_trials - at < band->batch ? n_trials - at : band->batch;
        code = explain_batch(band, n_frequencies, n, trials + at, explained + at, error);
    }
    pthread_mutex_unlock(&band->backend->compute_lock);
    return code;
}

/* Fewer aliases may leave room for another trial at a time, but never for more than the most. */
static size_t bytes(int64_t n_pixels, int64_t n_frequencies, int64_t n_aliases) {
    enum { ARRAYS = 10, ALIGNMENT = 256 };
    int64_t all = n_frequencies * n_aliases;
    size_t trial = bytes_of_trial(n_aliases == 1, ps_cuda_blocks(n_pixels, PS_TRIAL_CHUNK), all * n_aliases, all);
    size_t all_trials = (size_t)most_trials * trial, trials = all_trials < sums_bytes_most ? all_trials : sums_bytes_most;
    return (size_t)n_pixels * sizeof(int2) + (size_t)(n_frequencies * n_pixels) * sizeof(float2) + (size_t)all * 2 * sizeof(double) +
           (size_t)(n_frequencies + 1) * 2 * sizeof(int64_t) + (trials > trial ? trials : trial) + ARRAYS * ALIGNMENT;
}

extern "C" const ps_trial_ops ps_trials_cuda = {create, destroy, explain, bytes};
