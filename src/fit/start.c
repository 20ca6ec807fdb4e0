#include "fit/start.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "fit/parameters.h"

/* ---- curl of the centre-of-mass field ---- */

/* Sums of the field's curl and divergence over the band before any rotation. */
typedef struct {
    double curl2, divergence2, mixed;
} field_sums;

/* The centre of mass along the axes that detector axes become, in the scan's order before the rotation. */
static void find_moments(const ps_fit_data *data, const ps_optics *optics, bool transpose, int64_t f, double complex moment[2]) {
    const double complex *g = (const double complex *)data->spectra + f * data->n_pixels;
    double complex sums[2] = {0};
    for (int64_t i = 0; i < data->n_pixels; i++) {
        sums[0] += g[i] * (data->row[i] - optics->detector_center_px[0]);
        sums[1] += g[i] * (data->column[i] - optics->detector_center_px[1]);
    }
    for (int axis = 0; axis < 2; axis++) {
        int from = transpose ? 1 - axis : axis;
        moment[axis] = (optics->detector_flip[axis] ? -1.0 : 1.0) * optics->detector_pitch_mrad[from] * sums[from];
    }
}

static field_sums sum_field(const ps_fit_data *data, const ps_optics *optics, bool transpose) {
    field_sums s = {0};
    for (int64_t f = 0; f < data->n_frequencies; f++) {
        double complex m[2];
        double q = hypot(data->q_row[f], data->q_column[f]), row = data->q_row[f] / q, column = data->q_column[f] / q;
        find_moments(data, optics, transpose, f, m);
        double complex curl = row * m[1] - column * m[0], divergence = row * m[0] + column * m[1];
        s.curl2 += creal(curl * conj(curl));
        s.divergence2 += creal(divergence * conj(divergence));
        s.mixed += creal(curl * conj(divergence));
    }
    return s;
}

void ps_fit_find_curl(const ps_fit_data *data, const ps_optics *optics, ps_fit_curl *curl) {
    *curl = (ps_fit_curl){0};
    for (int transpose = 0; transpose < 2; transpose++) { /* |curl cos + divergence sin|^2 at its least */
        field_sums s = sum_field(data, optics, transpose);
        double total = s.curl2 + s.divergence2, angle = 0.5 * atan2(2.0 * s.mixed, s.curl2 - s.divergence2) + M_PI / 2.0;
        double least = 0.5 * (total - hypot(s.curl2 - s.divergence2, 2.0 * s.mixed));
        curl->rotation_deg[transpose] = remainder(angle * 180.0 / M_PI, 180.0);
        curl->curl[transpose] = total > 0.0 ? fmax(least, 0.0) / total : 0.5;
    }
    curl->transpose = curl->curl[1] < curl->curl[0];
    double less = curl->curl[curl->transpose], more = curl->curl[!curl->transpose];
    curl->trust = more > 0.0 ? (1.0 - less / more) * fmax(0.0, 1.0 - 2.0 * less) : 0.0;
}

/* ---- shifts of neighbouring pixels' pictures ---- */

/* Pixel beside each, or -1. grid: [detector_rows, detector_columns] index of a pixel, -1: none. */
static int64_t neighbour(const ps_fit_data *data, const int32_t *grid, int64_t pixel, int axis) {
    int64_t row = data->row[pixel] + (axis == 0), column = data->column[pixel] + (axis == 1);
    return row < data->detector_rows && column < data->detector_columns ? grid[row * data->detector_columns + column] : -1;
}

/* correlation: [n_frequencies] sum over neighbours along an axis of g(q, k') conj(g(q, k)), times |q|: what a shift changes. */
static void correlate(const ps_fit_data *data, const int32_t *grid, int axis, double complex *correlation) {
    for (int64_t f = 0; f < data->n_frequencies; f++) {
        const double complex *g = (const double complex *)data->spectra + f * data->n_pixels;
        double complex sum = 0.0;
        for (int64_t i = 0; i < data->n_pixels; i++) {
            int64_t beside = neighbour(data, grid, i, axis);
            if (beside >= 0) sum += g[beside] * conj(g[i]);
        }
        correlation[f] = sum * hypot(data->q_row[f], data->q_column[f]);
    }
}

static double coherence(const ps_fit_data *data, const double complex *correlation, const double shift_A[2]) {
    double sum = 0.0, most = 0.0;
    for (int64_t f = 0; f < data->n_frequencies; f++) {
        double turns = data->q_row[f] * shift_A[0] + data->q_column[f] * shift_A[1];
        sum += creal(correlation[f] * cexp(-2.0 * M_PI * I * turns));
        most += cabs(correlation[f]);
    }
    return most > 0.0 ? sum / most : 0.0;
}

/* The best of a square grid around shift_A, which moves there. */
static double search_around(const ps_fit_data *data, const double complex *correlation, double step_A, int64_t reach, double shift_A[2]) {
    double best = -2.0, middle[2] = {shift_A[0], shift_A[1]};
    for (int64_t a = -reach; a <= reach; a++)
        for (int64_t b = -reach; b <= reach; b++) {
            const double tried[2] = {middle[0] + (double)a * step_A, middle[1] + (double)b * step_A};
            double value = coherence(data, correlation, tried);
            if (!(value > best)) continue;
            best = value;
            shift_A[0] = tried[0], shift_A[1] = tried[1];
        }
    return best;
}

/* Shifts by which all pictures together would move apart by more than half of the scan cannot be told from others. */
static double find_shift(const ps_fit_data *data, const ps_optics *optics, const double complex *correlation, double shift_A[2]) {
    enum { MOST_REACH = 60, REFINEMENTS = 10 };
    double q_most = 0.0, across_px = 2.0 * optics->semiangle_mrad / fmin(optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1]);
    double extent_A = fmin((double)data->scan_rows * data->step_A[0], (double)data->scan_columns * data->step_A[1]);
    for (int64_t f = 0; f < data->n_frequencies; f++) q_most = fmax(q_most, hypot(data->q_row[f], data->q_column[f]));
    double reach_A = 0.5 * extent_A / across_px, step_A = 1.0 / (8.0 * q_most);
    int64_t reach = (int64_t)fmin(ceil(reach_A / step_A), MOST_REACH);
    shift_A[0] = shift_A[1] = 0.0;
    double best = search_around(data, correlation, step_A, reach, shift_A);
    for (int i = 0; i < REFINEMENTS; i++) best = search_around(data, correlation, step_A *= 0.5, 1, shift_A);
    return best;
}

/* shift: [2][2] along rows and columns of the scan (first index) from one pixel to the next along a detector axis (second). With S the
 * second derivatives of chi, shift = S R F T pitch. */
static void interpret(const ps_optics *optics, const double shift[2][2], ps_fit_shifts *found) {
    double g[2][2], a[2][2];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) g[i][j] = shift[i][j] / (1e-3 * optics->detector_pitch_mrad[j]);
    bool odd_flips = optics->detector_flip[0] != optics->detector_flip[1];
    found->transpose = (g[0][0] * g[1][1] - g[0][1] * g[1][0] < 0.0) != odd_flips; /* det S > 0: more defocus than astigmatism */
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) a[i][j] = (optics->detector_flip[j] ? -1.0 : 1.0) * g[i][found->transpose ? 1 - j : j];
    double angle = atan2(a[1][0] - a[0][1], a[0][0] + a[1][1]), c = cos(angle), s = sin(angle);
    double rows = a[0][0] * c - a[0][1] * s, columns = a[1][0] * s + a[1][1] * c;
    found->rotation_deg = angle * 180.0 / M_PI;
    found->C10_A = 0.5 * (rows + columns);
    found->C12_cos_A = 0.5 * (rows - columns);
    found->C12_sin_A = a[0][0] * s + a[0][1] * c;
}

ps_code ps_fit_find_shifts(const ps_fit_data *data, const ps_optics *optics, ps_fit_shifts *found, ps_error *error) {
    size_t n = (size_t)(data->detector_rows * data->detector_columns);
    double shift[2][2];
    ps_code code = PS_OK;
    int32_t *grid = malloc(n * sizeof *grid);
    double complex *correlation = malloc((size_t)data->n_frequencies * sizeof *correlation);
    *found = (ps_fit_shifts){.trust = 1.0};
    PS_GO_ALLOC(error, grid);
    PS_GO_ALLOC(error, correlation);
    for (size_t i = 0; i < n; i++) grid[i] = -1;
    for (int64_t i = 0; i < data->n_pixels; i++) grid[data->row[i] * data->detector_columns + data->column[i]] = (int32_t)i;
    for (int axis = 0; axis < 2; axis++) {
        static const double none[2] = {0.0, 0.0};
        double along[2];
        correlate(data, grid, axis, correlation);
        double without = coherence(data, correlation, none), with = find_shift(data, optics, correlation, along);
        shift[0][axis] = along[0], shift[1][axis] = along[1];
        found->trust = fmin(found->trust, without < 1.0 ? fmax(0.0, with - fmax(without, 0.0)) / (1.0 - fmax(without, 0.0)) : 0.0);
    }
    interpret(optics, shift, found);
done:
    free(grid);
    free(correlation);
    return code;
}
