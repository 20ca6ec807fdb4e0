/* kernels/trials.h formula by formula, in float64. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "kernels/cpu/explain.h"
#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"
#include "kernels/trials.h"

typedef struct {
    ps_band base;
    ps_band_desc desc; /* pointers are the band's own */
} reference_band;

/* What one thread needs for a trial. */
typedef struct {
    double complex *probe;    /* [n_pixels] P(k) */
    double *k;                /* [n_pixels, 2] */
    double complex *transfer; /* [most aliases, n_pixels] T_phase */
    double complex *normal, *right;
} scratch;

static void destroy(ps_band *handle) {
    reference_band *band = (reference_band *)handle;
    const void *arrays[] = {band->desc.row,   band->desc.column,   band->desc.first_alias,
                            band->desc.q_row, band->desc.q_column, band->desc.spectra};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) ps_cpu_free((void *)arrays[i]);
    ps_cpu_free(band);
}

static const void *copy(const void *from, int64_t n, size_t size) {
    void *to = ps_cpu_allocate((size_t)n, size);
    if (to) memcpy(to, from, (size_t)n * size);
    return to;
}

static ps_code create(ps_backend *backend, const ps_band_desc *desc, ps_band **handle, ps_error *error) {
    (void)backend;
    reference_band *band = ps_cpu_allocate_zero(1, sizeof *band);
    if (!band) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a band");
    int64_t n = desc->n_frequencies, n_aliases = desc->first_alias[n];
    band->desc = *desc;
    band->desc.row = copy(desc->row, desc->n_pixels, sizeof *desc->row);
    band->desc.column = copy(desc->column, desc->n_pixels, sizeof *desc->column);
    band->desc.first_alias = copy(desc->first_alias, n + 1, sizeof *desc->first_alias);
    band->desc.q_row = copy(desc->q_row, n_aliases, sizeof *desc->q_row);
    band->desc.q_column = copy(desc->q_column, n_aliases, sizeof *desc->q_column);
    band->desc.spectra = copy(desc->spectra, 2 * n * desc->n_pixels, sizeof *desc->spectra);
    if (band->desc.row && band->desc.column && band->desc.first_alias && band->desc.q_row && band->desc.q_column && band->desc.spectra) {
        *handle = &band->base;
        return PS_OK;
    }
    destroy(&band->base);
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a band of %lld frequencies and %lld pixels", (long long)n,
                   (long long)desc->n_pixels);
}

static void place_pixels(const ps_band_desc *desc, const ps_trial *trial, scratch *s) {
    for (int64_t i = 0; i < desc->n_pixels; i++) {
        for (int axis = 0; axis < 2; axis++)
            s->k[2 * i + axis] = trial->to_k[axis][0] * desc->row[i] + trial->to_k[axis][1] * desc->column[i] + trial->to_k[axis][2];
        s->probe[i] = ps_reference_probe(&trial->probe, s->k[2 * i], s->k[2 * i + 1]);
    }
}

/* N and b of one frequency. */
static void sum_frequency(const ps_band_desc *desc, const ps_trial *trial, int64_t frequency, scratch *s, double complex *normal) {
    int64_t first = desc->first_alias[frequency], n = desc->first_alias[frequency + 1] - first, pixels = desc->n_pixels;
    const double complex *g = (const double complex *)desc->spectra + frequency * pixels;
    for (int64_t a = 0; a < n; a++) {
        const double q[2] = {desc->q_row[first + a] / trial->step_scale, desc->q_column[first + a] / trial->step_scale};
        double complex *row = s->transfer + a * pixels, sum = 0.0;
        for (int64_t i = 0; i < pixels; i++) {
            row[i] = ps_reference_phase_transfer(&trial->probe, s->probe[i], s->k + 2 * i, q);
            sum += conj(row[i]) * g[i];
        }
        s->right[first + a] = sum;
        for (int64_t b = 0; b <= a; b++) {
            const double complex *column = s->transfer + b * pixels;
            sum = 0.0;
            for (int64_t i = 0; i < pixels; i++) sum += conj(row[i]) * column[i];
            normal[a * n + b] = sum;
        }
    }
}

static double explain_trial(const ps_band_desc *desc, int64_t n_frequencies, const ps_trial *trial, scratch *s) {
    double complex *normal = s->normal;
    place_pixels(desc, trial, s);
    for (int64_t i = 0; i < n_frequencies; i++) {
        int64_t n = desc->first_alias[i + 1] - desc->first_alias[i];
        sum_frequency(desc, trial, i, s, normal);
        normal += n * n;
    }
    return ps_cpu_explain(n_frequencies, desc->first_alias, desc->strength, s->normal, s->right);
}

static void free_scratch(int n_threads, scratch *threads) {
    for (int i = 0; threads && i < n_threads; i++) {
        void *arrays[] = {threads[i].probe, threads[i].k, threads[i].transfer, threads[i].normal, threads[i].right};
        for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++) ps_cpu_free(arrays[a]);
    }
    ps_cpu_free(threads);
}

static ps_code make_scratch(const ps_band_desc *desc, int64_t n_frequencies, int n_threads, scratch **threads, ps_error *error) {
    size_t pixels = (size_t)desc->n_pixels, aliases = (size_t)desc->first_alias[n_frequencies], most = 1;
    size_t entries = (size_t)ps_cpu_explain_entries(n_frequencies, desc->first_alias);
    for (int64_t i = 0; i < n_frequencies; i++) {
        size_t n = (size_t)(desc->first_alias[i + 1] - desc->first_alias[i]);
        if (n > most) most = n;
    }
    *threads = ps_cpu_allocate_zero((size_t)n_threads, sizeof **threads);
    bool ok = *threads != NULL;
    for (int i = 0; ok && i < n_threads; i++) {
        scratch *s = &(*threads)[i];
        s->probe = ps_cpu_allocate(pixels, sizeof *s->probe);
        s->k = ps_cpu_allocate(2 * pixels, sizeof *s->k);
        s->transfer = ps_cpu_allocate(most * pixels, sizeof *s->transfer);
        s->normal = ps_cpu_allocate(entries, sizeof *s->normal);
        s->right = ps_cpu_allocate(aliases, sizeof *s->right);
        ok = s->probe && s->k && s->transfer && s->normal && s->right;
    }
    return ok ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for trial optics over %zu pixels", pixels);
}

static ps_code explain(ps_band *handle, int64_t n_frequencies, int64_t n_trials, const ps_trial *trials, double *explained,
                       ps_error *error) {
    const reference_band *band = (const reference_band *)handle;
    int n_threads = ps_cpu_max_threads();
    scratch *threads = NULL;
    ps_code code = make_scratch(&band->desc, n_frequencies, n_threads, &threads, error);
    if (code == PS_OK) {
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
        for (int64_t i = 0; i < n_trials; i++)
            explained[i] = explain_trial(&band->desc, n_frequencies, &trials[i], &threads[omp_get_thread_num()]);
    }
    free_scratch(n_threads, threads);
    return code;
}

static size_t bytes(int64_t n_pixels, int64_t n_frequencies, int64_t n_aliases) {
    size_t pixels = (size_t)n_pixels, n = (size_t)n_frequencies, aliases = (size_t)n_aliases;
    return sizeof(reference_band) + pixels * 2 * sizeof(int32_t) + (n + 1) * sizeof(int64_t) + n * aliases * 2 * sizeof(double) +
           n * pixels * 2 * sizeof(double);
}

const ps_trial_ops ps_trials_reference = {.create = create, .destroy = destroy, .explain = explain, .bytes = bytes};
