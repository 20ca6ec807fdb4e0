/* Trial optics over a band, kernels/trials.h, with pixels that every trial places anew: where every frequency has one alias, transfer and
 * sums in one pass (isa/explain.c), else the transfer and the products of the other operations. A trial is one thread's work from beginning
 * to end, so that its value does not depend on what else is tried. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "kernels/cpu/explain.h"
#include "kernels/cpu/fast/fast.h"
#include "kernels/cpu/memory.h"
#include "kernels/trials.h"

enum { SUM = 2 * PS_FAST_LANES, BLOCK_TILES = PS_FAST_BLOCK / PS_FAST_TILE };

typedef struct {
    ps_band base;
    const ps_fast_isa *isa;
    int n_threads;
    double strength;
    int64_t n_pixels, padded, n_frequencies, most_aliases;
    double *row, *column;     /* [padded] of the detector, in slot order; padding repeats the last pixel */
    int64_t *first_alias;     /* [n_frequencies + 1] */
    double *q_row, *q_column; /* [aliases] */
    int64_t width;            /* of a block of spectra: a tile where every frequency has one alias, else BLOCK */
    float *spectra;           /* [n_frequencies, padded * 2]: blocks of [2, width] */
} fast_band;

/* What one thread needs for a trial. */
typedef struct {
    double *x, *y, *inside;               /* [padded] */
    float *tile_x, *tile_y, *tile_radius; /* [tiles] */
    float *factor;                        /* [padded] A(k) */
    float *rows;                          /* [most_aliases, 2, BLOCK] */
    double *sums;                         /* [most_aliases, most_aliases + 1, SUM]: N, then b */
    double complex *normal, *right;
    ps_fast_alias *terms; /* [most_aliases] */
} scratch;

static void destroy(ps_band *handle) {
    fast_band *band = (fast_band *)handle;
    void *arrays[] = {band->row, band->column, band->first_alias, band->q_row, band->q_column, band->spectra, band};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) ps_cpu_free(arrays[i]);
}

/* order: [n_pixels] the caller's pixel of each slot. */
static ps_code find_order(const ps_band_desc *desc, int32_t *order, ps_error *error) {
    int32_t most = 0;
    int32_t *active = ps_cpu_allocate((size_t)desc->n_pixels, sizeof *active);
    if (!active) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld pixels", (long long)desc->n_pixels);
    for (int64_t i = 0; i < desc->n_pixels; i++) most = desc->column[i] > most ? desc->column[i] : most;
    for (int64_t i = 0; i < desc->n_pixels; i++) active[i] = desc->row[i] * (most + 1) + desc->column[i];
    const ps_system_desc pixels = {.n_active = desc->n_pixels, .active = active, .detector_columns = most + 1};
    ps_fast_slot_order(&pixels, order);
    ps_cpu_free(active);
    return PS_OK;
}

static void copy_spectrum(const fast_band *band, const int32_t *order, const double *from, float *to) {
    for (int64_t i = 0; i < band->padded; i++) {
        int64_t first = i / band->width * band->width, left = band->padded - first, at = 2 * first + i % band->width;
        int64_t width = left < band->width ? left : band->width;
        bool is_pixel = i < band->n_pixels;
        to[at] = is_pixel ? (float)from[2 * order[i]] : 0.0f;
        to[at + width] = is_pixel ? (float)from[2 * order[i] + 1] : 0.0f;
    }
}

static void copy_band(const ps_band_desc *desc, const int32_t *order, fast_band *band) {
    for (int64_t i = 0; i < band->padded; i++) {
        int32_t pixel = order[i < desc->n_pixels ? i : desc->n_pixels - 1];
        band->row[i] = desc->row[pixel];
        band->column[i] = desc->column[pixel];
    }
    memcpy(band->first_alias, desc->first_alias, (size_t)(desc->n_frequencies + 1) * sizeof *band->first_alias);
    memcpy(band->q_row, desc->q_row, (size_t)desc->first_alias[desc->n_frequencies] * sizeof *band->q_row);
    memcpy(band->q_column, desc->q_column, (size_t)desc->first_alias[desc->n_frequencies] * sizeof *band->q_column);
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        int64_t n = desc->first_alias[i + 1] - desc->first_alias[i];
        if (n > band->most_aliases) band->most_aliases = n;
    }
    band->width = band->most_aliases == 1 ? PS_FAST_TILE : PS_FAST_BLOCK;
    for (int64_t i = 0; i < desc->n_frequencies; i++)
        copy_spectrum(band, order, desc->spectra + 2 * i * desc->n_pixels, band->spectra + 2 * i * band->padded);
}

static ps_code allocate_band(const ps_band_desc *desc, fast_band *band, ps_error *error) {
    size_t padded = (size_t)band->padded, n = (size_t)desc->n_frequencies, aliases = (size_t)desc->first_alias[desc->n_frequencies];
    band->row = ps_cpu_allocate(padded, sizeof *band->row);
    band->column = ps_cpu_allocate(padded, sizeof *band->column);
    band->first_alias = ps_cpu_allocate(n + 1, sizeof *band->first_alias);
    band->q_row = ps_cpu_allocate(aliases, sizeof *band->q_row);
    band->q_column = ps_cpu_allocate(aliases, sizeof *band->q_column);
    band->spectra = ps_cpu_allocate(2 * n * padded, sizeof *band->spectra);
    if (band->row && band->column && band->first_alias && band->q_row && band->q_column && band->spectra) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a band of %zu frequencies and %zu pixels", n, padded);
}

static ps_code create(ps_backend *backend, const ps_band_desc *desc, ps_band **handle, ps_error *error) {
    ps_code code = PS_OK;
    fast_band *band = ps_cpu_allocate_zero(1, sizeof *band);
    int32_t *order = ps_cpu_allocate((size_t)desc->n_pixels, sizeof *order);
    PS_GO_ALLOC(error, band);
    PS_GO_ALLOC(error, order);
    band->isa = ps_fast_isa_choose();
    band->n_threads = ((const ps_cpu_backend *)backend)->n_threads;
    band->strength = desc->strength;
    band->n_pixels = desc->n_pixels;
    band->padded = (desc->n_pixels + PS_FAST_TILE - 1) / PS_FAST_TILE * PS_FAST_TILE;
    band->n_frequencies = desc->n_frequencies;
    PS_GO(find_order(desc, order, error));
    PS_GO(allocate_band(desc, band, error));
    copy_band(desc, order, band);
    *handle = &band->base;
done:
    ps_cpu_free(order);
    if (code != PS_OK && band) destroy(&band->base);
    return code;
}

/* Pixels in units of the aperture's radius, their apertures, and the circles around their tiles. */
static void place_pixels(const fast_band *band, const ps_trial *trial, double k_max, scratch *s, ps_fast_pixels *pixels) {
    double to_x[3], to_y[3];
    for (int i = 0; i < 3; i++) to_x[i] = trial->to_k[0][i] / k_max, to_y[i] = trial->to_k[1][i] / k_max;
    *pixels = (ps_fast_pixels){.n_tiles = band->padded / PS_FAST_TILE,
                               .x = s->x,
                               .y = s->y,
                               .inside = s->inside,
                               .tile_x = s->tile_x,
                               .tile_y = s->tile_y,
                               .tile_radius = s->tile_radius};
    for (int i = 0; i < 2; i++) pixels->pitch[i] = (float)(trial->probe.pitch_rad[i] / trial->probe.semiangle_rad);
    band->isa->place(band->padded, band->row, band->column, to_x, to_y, pixels->pitch, s->x, s->y, s->inside, s->factor);
    for (int64_t i = band->n_pixels; i < band->padded; i++) s->factor[i] = 0.0f;
    ps_fast_fill_tiles(pixels, s->tile_x, s->tile_y, s->tile_radius);
}

typedef struct {
    const fast_band *band;
    const ps_trial *trial;
    ps_fast_pixels pixels;
    ps_fast_polynomial chi;
    double k_max;
} placed_trial;

/* Adds one block's part of N and b of a frequency with n aliases to the sums. */
static void add_block(const placed_trial *t, int64_t frequency, int64_t n, int64_t block, scratch *s) {
    const fast_band *band = t->band;
    bool is_dark[PS_MAX_ALIASES];
    int64_t first = block * PS_FAST_BLOCK, width = band->padded - first < PS_FAST_BLOCK ? band->padded - first : PS_FAST_BLOCK;
    for (int64_t a = 0; a < n; a++)
        is_dark[a] = band->isa->transfer(&t->pixels, &s->terms[a], s->factor, block * BLOCK_TILES, width / PS_FAST_TILE, NULL,
                                         s->rows + a * 2 * width);
    ps_fast_operands operands = {.n_rows = n,
                                 .n_columns = n,
                                 .rows = s->rows,
                                 .columns = s->rows,
                                 .row_stride = 2 * width,
                                 .column_stride = 2 * width,
                                 .width = width,
                                 .row_is_dark = is_dark,
                                 .column_is_dark = is_dark};
    band->isa->products(&operands, true, s->sums);
    operands.n_columns = 1;
    operands.columns = band->spectra + 2 * (frequency * band->padded + first);
    operands.column_is_dark = NULL;
    band->isa->products(&operands, false, s->sums + n * n * SUM);
}

static double complex total(const double *sum) {
    return ps_fast_total(sum) + I * ps_fast_total(sum + PS_FAST_LANES);
}

static void find_terms(const placed_trial *t, int64_t alias, ps_fast_alias *terms) {
    const double q[2] = {t->band->q_row[alias] / t->trial->step_scale, t->band->q_column[alias] / t->trial->step_scale};
    ps_fast_terms_at(&t->trial->probe, t->k_max, &t->chi, &t->chi, q, terms);
}

/* N (its lower triangle) and b of one frequency. */
static void sum_frequency(const placed_trial *t, int64_t frequency, scratch *s, double complex *normal) {
    const fast_band *band = t->band;
    int64_t first = band->first_alias[frequency], n = band->first_alias[frequency + 1] - first;
    for (int64_t a = 0; a < n; a++) find_terms(t, first + a, &s->terms[a]);
    memset(s->sums, 0, (size_t)(n * (n + 1) * SUM) * sizeof *s->sums);
    for (int64_t block = 0; block * PS_FAST_BLOCK < band->padded; block++) add_block(t, frequency, n, block, s);
    for (int64_t a = 0; a < n; a++) {
        for (int64_t b = 0; b <= a; b++) normal[a * n + b] = conj(total(s->sums + (b * n + a) * SUM));
        s->right[first + a] = total(s->sums + (n * n + a) * SUM);
    }
}

/* The same of a frequency of a band in which each has one alias. */
static void sum_single(const placed_trial *t, int64_t frequency, scratch *s, double complex *normal) {
    const fast_band *band = t->band;
    double own, right[2];
    find_terms(t, frequency, s->terms);
    band->isa->explain(&t->pixels, s->terms, s->factor, band->spectra + 2 * frequency * band->padded, &own, right);
    *normal = own;
    s->right[frequency] = right[0] + I * right[1];
}

static double explain_trial(const fast_band *band, int64_t n_frequencies, const ps_trial *trial, scratch *s) {
    placed_trial t = {.band = band, .trial = trial, .k_max = trial->probe.semiangle_rad / trial->probe.wavelength_A};
    double complex *normal = s->normal;
    ps_fast_chi_polynomial(&trial->probe, false, &t.chi);
    place_pixels(band, trial, t.k_max, s, &t.pixels);
    for (int64_t i = 0; i < n_frequencies; i++) {
        int64_t n = band->first_alias[i + 1] - band->first_alias[i];
        if (band->most_aliases == 1)
            sum_single(&t, i, s, normal);
        else
            sum_frequency(&t, i, s, normal);
        normal += n * n;
    }
    return ps_cpu_explain(n_frequencies, band->first_alias, band->strength, s->normal, s->right);
}

static void free_scratch(int n_threads, scratch *threads) {
    for (int i = 0; threads && i < n_threads; i++) {
        scratch *s = &threads[i];
        void *arrays[] = {s->x,      s->y,    s->inside, s->tile_x, s->tile_y, s->tile_radius,
                          s->factor, s->rows, s->sums,   s->normal, s->right,  s->terms};
        for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++) ps_cpu_free(arrays[a]);
    }
    ps_cpu_free(threads);
}

static bool fill_scratch(const fast_band *band, int64_t n_frequencies, scratch *s) {
    size_t padded = (size_t)band->padded, tiles = padded / PS_FAST_TILE, most = (size_t)band->most_aliases;
    s->x = ps_cpu_allocate(padded, sizeof *s->x);
    s->y = ps_cpu_allocate(padded, sizeof *s->y);
    s->inside = ps_cpu_allocate(padded, sizeof *s->inside);
    s->tile_x = ps_cpu_allocate(tiles, sizeof *s->tile_x);
    s->tile_y = ps_cpu_allocate(tiles, sizeof *s->tile_y);
    s->tile_radius = ps_cpu_allocate(tiles, sizeof *s->tile_radius);
    s->factor = ps_cpu_allocate(padded, sizeof *s->factor);
    s->rows = ps_cpu_allocate(most * 2 * PS_FAST_BLOCK, sizeof *s->rows);
    s->sums = ps_cpu_allocate(most * (most + 1) * SUM, sizeof *s->sums);
    s->normal = ps_cpu_allocate((size_t)ps_cpu_explain_entries(n_frequencies, band->first_alias), sizeof *s->normal);
    s->right = ps_cpu_allocate((size_t)band->first_alias[n_frequencies], sizeof *s->right);
    s->terms = ps_cpu_allocate(most, sizeof *s->terms);
    return s->x && s->y && s->inside && s->tile_x && s->tile_y && s->tile_radius && s->factor && s->rows && s->sums && s->normal &&
           s->right && s->terms;
}

static ps_code explain(ps_band *handle, int64_t n_frequencies, int64_t n_trials, const ps_trial *trials, double *explained,
                       ps_error *error) {
    const fast_band *band = (const fast_band *)handle;
    ps_code code = PS_OK;
    scratch *threads = ps_cpu_allocate_zero((size_t)band->n_threads, sizeof *threads);
    bool ok = threads != NULL;
    for (int i = 0; ok && i < band->n_threads; i++) ok = fill_scratch(band, n_frequencies, &threads[i]);
    if (!ok) {
        code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for trial optics over %lld pixels", (long long)band->n_pixels);
    } else {
#pragma omp parallel for schedule(dynamic) num_threads(band->n_threads)
        for (int64_t i = 0; i < n_trials; i++)
            explained[i] = explain_trial(band, n_frequencies, &trials[i], &threads[omp_get_thread_num()]);
    }
    free_scratch(band->n_threads, threads);
    return code;
}

static size_t bytes(int64_t n_pixels, int64_t n_frequencies, int64_t n_aliases) {
    size_t padded = (size_t)((n_pixels + PS_FAST_TILE - 1) / PS_FAST_TILE * PS_FAST_TILE), n = (size_t)n_frequencies;
    return sizeof(fast_band) + padded * 2 * sizeof(double) + (n + 1) * sizeof(int64_t) + n * (size_t)n_aliases * 2 * sizeof(double) +
           n * padded * 2 * sizeof(float);
}

const ps_trial_ops ps_trials_fast = {.create = create, .destroy = destroy, .explain = explain, .bytes = bytes};
