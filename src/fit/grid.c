#include "fit/grid.h"

#include <math.h>
#include <stdlib.h>

static int64_t count(const double range[2], double step) {
    return step > 0.0 && range[1] > range[0] ? (int64_t)floor((range[1] - range[0]) / step + 1e-9) + 1 : 1;
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
