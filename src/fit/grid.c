#include "fit/grid.h"

#include <math.h>
#include <stdlib.h>

static int64_t count(const double range[2], double step) {
    return step > 0.0 && range[1] > range[0] ? (int64_t)floor((range[1] - range[0]) / step + 1e-9) + 1 : 1;
}

int64_t ps_fit_grid_points(const ps_fit_rectangle *grid) {
    return count(grid->rotation_deg, grid->rotation_step_deg) * count(grid->C10_A, grid->C10_step_A);
}

static ps_optics at(const ps_optics *base, const ps_fit_rectangle *grid, int64_t rotation, int64_t defocus) {
    ps_optics optics = *base;
    optics.rotation_deg = ps_fit_wrap_deg(grid->rotation_deg[0] + (double)rotation * grid->rotation_step_deg);
    optics.C_A[0] = grid->C10_A[0] + (double)defocus * grid->C10_step_A;
    return optics;
}

ps_code ps_fit_grid_values(ps_fit_spread *spread, int band, const double step_A[2], const ps_optics *base, const ps_fit_rectangle *grid,
                           int64_t *n_rotations, int64_t *n_defoci, double **fractions, ps_error *error) {
    ps_code code = PS_OK;
    int64_t n_r = count(grid->rotation_deg, grid->rotation_step_deg), n_d = count(grid->C10_A, grid->C10_step_A);
    ps_trial *trials = malloc((size_t)(n_r * n_d) * sizeof *trials);
    *fractions = malloc((size_t)(n_r * n_d) * sizeof **fractions);
    PS_GO_ALLOC(error, trials);
    PS_GO_ALLOC(error, *fractions);
    for (int64_t i = 0; i < n_r * n_d; i++) {
        ps_optics optics = at(base, grid, i / n_d, i % n_d);
        ps_fit_trial(&optics, step_A, &trials[i]);
    }
    *n_rotations = n_r;
    *n_defoci = n_d;
    code = ps_fit_spread_try(spread, band, n_r * n_d, trials, *fractions, error);
done:
    free(trials);
    if (code != PS_OK) {
        free(*fractions);
        *fractions = NULL;
    }
    return code;
}

void ps_fit_join_candidate(int most, ps_fit_candidate *candidates, int *n, const ps_fit_candidate *candidate) {
    int place = *n;
    while (place > 0 && candidates[place - 1].fraction < candidate->fraction) place--;
    if (place >= most) return;
    if (*n < most) ++*n;
    for (int i = *n - 1; i > place; i--) candidates[i] = candidates[i - 1];
    candidates[place] = *candidate;
}

/* Not below any of its up to eight neighbours. */
static bool is_peak(const double *fractions, int64_t n_r, int64_t n_d, int64_t row, int64_t column) {
    for (int64_t r = row - 1; r <= row + 1; r++)
        for (int64_t c = column - 1; c <= column + 1; c++)
            if (r >= 0 && r < n_r && c >= 0 && c < n_d && fractions[r * n_d + c] > fractions[row * n_d + column]) return false;
    return true;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ps_fit_median(int64_t n, double *values) {
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

ps_code ps_fit_grid_search(ps_fit_spread *spread, int band, const double step_A[2], const ps_optics *base, const ps_fit_rectangle *grid,
                           int most, ps_fit_candidate *candidates, int *n, ps_error *error) {
    double *fractions = NULL;
    int64_t n_r, n_d;
    PS_TRY(ps_fit_grid_values(spread, band, step_A, base, grid, &n_r, &n_d, &fractions, error));
    for (int64_t i = 0; i < n_r * n_d; i++) {
        const ps_fit_candidate candidate = {.optics = at(base, grid, i / n_d, i % n_d), .fraction = fractions[i]};
        if (is_peak(fractions, n_r, n_d, i / n_d, i % n_d)) ps_fit_join_candidate(most, candidates, n, &candidate);
    }
    free(fractions);
    return PS_OK;
}

/* ---- a glance ---- */

enum { MOST_PEAKS = 32, AROUND = 9 };

/* How clearly the best of the values stands out; their spread is what one half of them lies below the median by. Sorts them. */
static double find_clarity(int64_t n, double *values) {
    static const double quartile = 0.6745; /* of a normal distribution, in standard deviations */
    double median = ps_fit_median(n, values), spread = (median - values[n / 4]) / quartile;
    return spread > 0.0 ? (values[n - 1] - median) / spread : 0.0;
}

/* The best peaks' places, best first. */
static int list_peaks(const double *fractions, int64_t n_r, int64_t n_d, int64_t *peaks) {
    int n = 0;
    for (int64_t i = 0; i < n_r * n_d; i++) {
        if (!is_peak(fractions, n_r, n_d, i / n_d, i % n_d)) continue;
        int place = n;
        while (place > 0 && fractions[peaks[place - 1]] < fractions[i]) place--;
        if (place >= MOST_PEAKS) continue;
        if (n < MOST_PEAKS) n++;
        for (int k = n - 1; k > place; k--) peaks[k] = peaks[k - 1];
        peaks[place] = i;
    }
    return n;
}

/* The place `step` (0 ... AROUND - 1) beside another of the grid, or that one where the grid ends. */
static int64_t beside(int64_t n_r, int64_t n_d, int64_t place, int step) {
    int64_t row = place / n_d + step / 3 - 1, column = place % n_d + step % 3 - 1;
    return row < 0 || row >= n_r || column < 0 || column >= n_d ? place : row * n_d + column;
}

/* The best optics at and around each peak join the candidates; peaks beside each other may come to the same ones, which join once. */
static ps_code join_best(ps_fit_spread *spread, int band, const double step_A[2], const ps_optics *base, const ps_fit_rectangle *grid,
                         int n_peaks, const int64_t *peaks, int most, ps_fit_candidate *candidates, int *n, ps_error *error) {
    ps_trial trials[MOST_PEAKS * AROUND];
    double fractions[MOST_PEAKS * AROUND];
    int64_t joined[MOST_PEAKS], n_d = count(grid->C10_A, grid->C10_step_A), n_r = ps_fit_grid_points(grid) / n_d;
    if (n_peaks < 1) return PS_OK;
    for (int i = 0; i < n_peaks * AROUND; i++) {
        int64_t place = beside(n_r, n_d, peaks[i / AROUND], i % AROUND);
        ps_optics optics = at(base, grid, place / n_d, place % n_d);
        ps_fit_trial(&optics, step_A, &trials[i]);
    }
    PS_TRY(ps_fit_spread_try(spread, band, (int64_t)n_peaks * AROUND, trials, fractions, error));
    for (int p = 0; p < n_peaks; p++) {
        int best = AROUND / 2, known = 0;
        for (int i = 0; i < AROUND; i++)
            if (fractions[p * AROUND + i] > fractions[p * AROUND + best]) best = i;
        joined[p] = beside(n_r, n_d, peaks[p], best);
        while (joined[known] != joined[p]) known++;
        const ps_fit_candidate candidate = {.optics = at(base, grid, joined[p] / n_d, joined[p] % n_d),
                                            .fraction = fractions[p * AROUND + best]};
        if (known == p) ps_fit_join_candidate(most, candidates, n, &candidate);
    }
    return PS_OK;
}

ps_code ps_fit_grid_glance(ps_fit_spread *spread, int thin, int band, const double step_A[2], const ps_optics *base,
                           const ps_fit_rectangle *grid, int most, ps_fit_candidate *candidates, int *n, double *clarity, ps_error *error) {
    double *fractions = NULL;
    int64_t n_r, n_d, peaks[MOST_PEAKS];
    PS_TRY(ps_fit_grid_values(spread, thin, step_A, base, grid, &n_r, &n_d, &fractions, error));
    int n_peaks = list_peaks(fractions, n_r, n_d, peaks);
    *clarity = fmax(*clarity, find_clarity(n_r * n_d, fractions));
    free(fractions);
    return join_best(spread, band, step_A, base, grid, n_peaks, peaks, most, candidates, n, error);
}
