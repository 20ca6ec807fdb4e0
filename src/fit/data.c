#include "fit/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/aliases.h"

void ps_fit_data_free(ps_fit_data *data) {
    void *arrays[] = {data->row, data->column, data->q_row, data->q_column, data->power, data->spectra};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    memset(data, 0, sizeof *data);
}

static ps_code allocate(ps_fit_data *data, ps_error *error) {
    size_t pixels = (size_t)data->n_pixels, n = (size_t)data->n_frequencies;
    data->row = malloc(pixels * sizeof *data->row);
    data->column = malloc(pixels * sizeof *data->column);
    data->q_row = malloc(n * sizeof *data->q_row);
    data->q_column = malloc(n * sizeof *data->q_column);
    data->power = malloc(n * sizeof *data->power);
    data->spectra = malloc(2 * n * pixels * sizeof *data->spectra);
    if (data->row && data->column && data->q_row && data->q_column && data->power && data->spectra) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu frequencies of %zu pixels", n, pixels);
}

typedef struct {
    double score, power;
    int64_t frequency;
} candidate;

static int compare_candidates(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->frequency < y->frequency ? -1 : x->frequency > y->frequency;
}

static void swap(candidate *a, candidate *b) {
    const candidate kept = *a;
    *a = *b;
    *b = kept;
}

/* The best `most` of n to the front, best first: of the many only those few are sorted. */
static void sort_best(int64_t n, int64_t most, candidate *candidates) {
    int64_t low = 0, high = n - 1;
    while (most < n && low < high) { /* those before low belong to the front, those after high do not */
        const candidate pivot = candidates[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (compare_candidates(&candidates[i], &pivot) < 0) i++;
            while (compare_candidates(&candidates[j], &pivot) > 0) j--;
            if (i <= j) swap(&candidates[i++], &candidates[j--]);
        }
        if (most <= j)
            high = j;
        else if (most >= i)
            low = i;
        else
            break;
    }
    qsort(candidates, (size_t)(most < n ? most : n), sizeof *candidates, compare_candidates);
}

/* candidates: [n_frequencies]; those with something to tell, the first `most` of them best first. */
static ps_code rank_frequencies(ps_frame *frame, const ps_plan *plan, double noise_power, int64_t most, candidate *candidates, int64_t *n,
                                ps_error *error) {
    const ps_system_desc *desc = &plan->desc;
    double *power = malloc((size_t)desc->n_frequencies * sizeof *power);
    if (!power)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the power of %lld frequencies", (long long)desc->n_frequencies);
    ps_code code = ps_frame_get_data_norms(frame, power, error);
    *n = 0;
    for (int64_t i = 1; code == PS_OK && i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        if (f->n_aliases != 1 || f->multiplicity != 2) continue;
        double q = hypot(desc->q_row[f->first_alias], desc->q_column[f->first_alias]);
        if (power[i] > noise_power) candidates[(*n)++] = (candidate){(power[i] - noise_power) * q, power[i], i};
    }
    free(power);
    sort_best(*n, most, candidates);
    return code;
}

static ps_code fill(ps_frame *frame, const ps_plan *plan, const candidate *candidates, ps_fit_data *data, ps_error *error) {
    const ps_system_desc *desc = &plan->desc;
    int64_t *chosen = malloc((size_t)data->n_frequencies * sizeof *chosen);
    if (!chosen) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a list of frequencies");
    for (int64_t i = 0; i < data->n_frequencies; i++) {
        int64_t alias = desc->frequencies[candidates[i].frequency].first_alias;
        chosen[i] = candidates[i].frequency;
        data->power[i] = candidates[i].power;
        data->q_row[i] = desc->q_row[alias];
        data->q_column[i] = desc->q_column[alias];
    }
    for (int64_t i = 0; i < data->n_pixels; i++) {
        data->row[i] = (int32_t)(desc->active[i] / desc->detector_columns);
        data->column[i] = (int32_t)(desc->active[i] % desc->detector_columns);
    }
    ps_code code = ps_frame_get_spectra(frame, data->n_frequencies, chosen, data->dose, data->spectra, error);
    free(chosen);
    return code;
}

/* The more pixels see a frequency, the fewer frequencies tell as much. */
int64_t ps_fit_data_frequencies(int64_t most, int64_t n_pixels) {
    enum { DATA = 200000, FEWEST = 60, MOST = 1000 };
    int64_t n = DATA / n_pixels;
    return most > 0 ? most : n < FEWEST ? FEWEST : n > MOST ? MOST : n;
}

ps_code ps_fit_data_take(ps_frame *frame, const ps_plan *plan, double dose, int64_t most, ps_fit_data *data, ps_error *error) {
    const ps_system_desc *desc = &plan->desc;
    double positions = (double)desc->scan_rows * (double)desc->scan_columns;
    ps_code code = PS_OK;
    int64_t n = 0;
    most = ps_fit_data_frequencies(most, desc->n_active);
    *data = (ps_fit_data){.n_pixels = desc->n_active,
                          .dose = dose,
                          .step_A = {desc->scan_step_A[0], desc->scan_step_A[1]},
                          .scan_rows = desc->scan_rows,
                          .scan_columns = desc->scan_columns,
                          .detector_rows = desc->detector_rows,
                          .detector_columns = desc->detector_columns};
    double *mean = malloc((size_t)desc->n_active * sizeof *mean);
    candidate *candidates = malloc((size_t)desc->n_frequencies * sizeof *candidates);
    PS_GO_ALLOC(error, mean);
    PS_GO_ALLOC(error, candidates);
    PS_GO(ps_frame_mean_counts(frame, mean, NULL, error));
    for (int64_t i = 0; i < desc->n_active; i++) data->noise_power += mean[i] / (dose * dose * positions);
    PS_GO(ps_frame_reduce(&frame, 1, &dose, error));
    PS_GO(rank_frequencies(frame, plan, data->noise_power, most, candidates, &n, error));
    if (n == 0) {
        code = PS_FAIL(error, PS_E_INPUT,
                       "no scan frequency of the %lld x %lld positions holds more than the noise of %g counts: there is nothing that could "
                       "tell the optics",
                       (long long)desc->scan_rows, (long long)desc->scan_columns, dose);
        goto done;
    }
    data->n_frequencies = n < most ? n : most;
    PS_GO(allocate(data, error));
    PS_GO(fill(frame, plan, candidates, data, error));
done:
    free(mean);
    free(candidates);
    if (code != PS_OK) ps_fit_data_free(data);
    return code;
}

/* ---- the same on every rank ---- */

static ps_code broadcast(const ps_cluster *cluster, void *values, size_t bytes, ps_error *error) {
    enum { PIECE = 1 << 28 };
    for (size_t at = 0; at < bytes; at += PIECE) {
        size_t n = bytes - at < PIECE ? bytes - at : PIECE;
        PS_TRY(PS_MPI(error, MPI_Bcast((char *)values + at, (int)n, MPI_BYTE, 0, cluster->communicator)));
    }
    return PS_OK;
}

ps_code ps_fit_data_share(const ps_cluster *cluster, ps_fit_data *data, ps_error *error) {
    ps_fit_data head = *data;
    if (cluster->n_ranks == 1) return PS_OK;
    PS_TRY(broadcast(cluster, &head, sizeof head, error));
    ps_code code = PS_OK;
    if (cluster->rank != 0) {
        head.row = head.column = NULL;
        head.q_row = head.q_column = head.power = head.spectra = NULL;
        *data = head;
        code = allocate(data, error);
    }
    PS_TRY(ps_cluster_agree(cluster, code, error));
    size_t pixels = (size_t)data->n_pixels, n = (size_t)data->n_frequencies;
    PS_TRY(broadcast(cluster, data->row, pixels * sizeof *data->row, error));
    PS_TRY(broadcast(cluster, data->column, pixels * sizeof *data->column, error));
    PS_TRY(broadcast(cluster, data->q_row, n * sizeof *data->q_row, error));
    PS_TRY(broadcast(cluster, data->q_column, n * sizeof *data->q_column, error));
    PS_TRY(broadcast(cluster, data->power, n * sizeof *data->power, error));
    return broadcast(cluster, data->spectra, 2 * n * pixels * sizeof *data->spectra, error);
}

/* ---- bands ---- */

/* One pixel in `stride`, scattered: a lattice of them would make other defoci look alike. */
static bool is_kept(const ps_fit_data *data, int64_t pixel, int64_t stride) {
    uint32_t mixed = (uint32_t)data->row[pixel] * 0x9e3779b1u ^ (uint32_t)data->column[pixel] * 0x85ebca77u;
    mixed = (mixed ^ mixed >> 15) * 0x2c1b3c6du;
    mixed = (mixed ^ mixed >> 12) * 0x297a2d39u;
    return stride == 1 || (mixed ^ mixed >> 15) % (uint32_t)stride == 0;
}

typedef struct {
    int32_t *row, *column, *kept; /* of kept pixels, also their index; none where all are kept */
    double *spectra;
    ps_fit_aliases aliases;
} band_arrays;

static void free_arrays(band_arrays *a) {
    free(a->row);
    free(a->column);
    free(a->kept);
    free(a->spectra);
    ps_fit_aliases_free(&a->aliases);
}

/* The spectra of the kept pixels side by side. */
static void copy_spectra(const ps_fit_data *data, int64_t n_frequencies, int64_t n_kept, const int32_t *kept, double *spectra) {
    for (int64_t f = 0; f < n_frequencies; f++) {
        const double *from = data->spectra + 2 * f * data->n_pixels;
        double *to = spectra + 2 * f * n_kept;
        for (int64_t i = 0; i < n_kept; i++) memcpy(to + 2 * i, from + 2 * (int64_t)kept[i], 2 * sizeof *to);
    }
}

static ps_code thin_out(const ps_fit_data *data, int64_t n_frequencies, int64_t stride, band_arrays *a, int64_t *n_kept, ps_error *error) {
    size_t pixels = (size_t)data->n_pixels;
    int64_t n = 0;
    a->row = malloc(pixels * sizeof *a->row);
    a->column = malloc(pixels * sizeof *a->column);
    a->kept = malloc(pixels * sizeof *a->kept);
    if (!a->row || !a->column || !a->kept) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a band");
    for (int64_t i = 0; i < data->n_pixels; i++) {
        if (!is_kept(data, i, stride)) continue;
        a->row[n] = data->row[i], a->column[n] = data->column[i];
        a->kept[n++] = (int32_t)i;
    }
    if (n == 0) return PS_FAIL(error, PS_E_INTERNAL, "no pixel is left of %lld", (long long)data->n_pixels);
    a->spectra = malloc(2 * (size_t)(n_frequencies * n) * sizeof *a->spectra);
    if (!a->spectra) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a band");
    copy_spectra(data, n_frequencies, n, a->kept, a->spectra);
    *n_kept = n;
    return PS_OK;
}

ps_code ps_fit_data_band(const ps_fit_data *data, ps_backend *backend, const ps_optics *optics, int64_t upsampling, int64_t n_frequencies,
                         int64_t most_pixels, double strength, ps_band **band, double *power, ps_error *error) {
    ps_code code = PS_OK;
    band_arrays arrays = {0};
    double pitch_mrad = fmax(optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1]);
    double limit = 2e-3 * (optics->semiangle_mrad + 0.5 * pitch_mrad) / ps_wavelength_A(optics->voltage_V);
    int64_t n_kept = data->n_pixels, stride = most_pixels > 0 ? (data->n_pixels + most_pixels - 1) / most_pixels : 1;
    if (stride > 1) PS_GO(thin_out(data, n_frequencies, stride, &arrays, &n_kept, error));
    PS_GO(ps_fit_aliases_list(n_frequencies, data->q_row, data->q_column, data->step_A, upsampling, limit, &arrays.aliases, error));
    const ps_band_desc desc = {.n_pixels = n_kept,
                               .row = stride > 1 ? arrays.row : data->row,
                               .column = stride > 1 ? arrays.column : data->column,
                               .n_frequencies = n_frequencies,
                               .first_alias = arrays.aliases.first,
                               .q_row = arrays.aliases.q_row,
                               .q_column = arrays.aliases.q_column,
                               .spectra = stride > 1 ? arrays.spectra : data->spectra,
                               .strength = strength};
    *power = 0.0;
    for (int64_t i = 0; i < 2 * n_frequencies * n_kept; i++) *power += desc.spectra[i] * desc.spectra[i];
    code = ps_band_create(backend, &desc, band, error);
done:
    free_arrays(&arrays);
    return code;
}
