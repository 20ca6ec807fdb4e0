#include "drift/correlate.h"

#include <complex.h>
#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "drift/move.h"

enum { SMALLEST_SIDE = 4, NEWTON_STEPS = 20, FARTHEST = 2, MOST_ROUNDS = 5 };

#define ENOUGH_PX 1e-3

/* Both images' common spectrum and what it comes to. */
typedef struct {
    int64_t rows, columns, half; /* half = columns / 2 + 1 */
    double *image;               /* [rows, columns] */
    fftw_complex *spectra[2];    /* [rows, half] */
    double total;                /* of the spectrum's sizes, over the whole plane */
} correlation;

static void release(correlation *c) {
    fftw_free(c->image);
    for (int i = 0; i < 2; i++) fftw_free(c->spectra[i]);
    *c = (correlation){0};
}

static ps_code allocate(int64_t rows, int64_t columns, correlation *c, ps_error *error) {
    *c = (correlation){.rows = rows, .columns = columns, .half = columns / 2 + 1};
    c->image = fftw_alloc_real((size_t)(rows * columns));
    for (int i = 0; i < 2; i++) c->spectra[i] = fftw_alloc_complex((size_t)(rows * c->half));
    if (c->image && c->spectra[0] && c->spectra[1]) return PS_OK;
    release(c);
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to correlate images of %lld x %lld", (long long)rows, (long long)columns);
}

/* 1 inside, falling to 0 over an eighth of the axis at either end: edges that do not meet are no feature. */
static double taper(int64_t at, int64_t n) {
    double width = fmax(1.0, 0.125 * (double)n), from_edge = fmin((double)at, (double)(n - 1 - at)) + 0.5;
    return from_edge >= width ? 1.0 : 0.5 - 0.5 * cos(M_PI * from_edge / width);
}

/* A window of an image into a spectrum. origin: of the window; stride: columns of the whole image. */
static ps_code transform(correlation *c, const float *image, int64_t stride, const int64_t origin[2], fftw_complex *spectrum,
                         ps_error *error) {
    const float *from = image + origin[0] * stride + origin[1];
    double mean = 0.0;
    for (int64_t r = 0; r < c->rows; r++)
        for (int64_t k = 0; k < c->columns; k++) mean += from[r * stride + k];
    mean /= (double)(c->rows * c->columns);
    fftw_plan plan = fftw_plan_dft_r2c_2d((int)c->rows, (int)c->columns, c->image, spectrum, FFTW_ESTIMATE);
    if (!plan) return PS_FAIL(error, PS_E_MEMORY, "cannot plan a transform of %lld x %lld", (long long)c->rows, (long long)c->columns);
    for (int64_t r = 0; r < c->rows; r++)
        for (int64_t k = 0; k < c->columns; k++)
            c->image[r * c->columns + k] = (from[r * stride + k] - mean) * taper(r, c->rows) * taper(k, c->columns);
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    return PS_OK;
}

/* Twice where the other half of the plane has the same frequency's conjugate. */
static double multiplicity(const correlation *c, int64_t column) {
    return column == 0 || 2 * column == c->columns ? 1.0 : 2.0;
}

/* The first spectrum becomes the cross spectrum, or (evens) that with its phase kept and its size evened out: frequencies well above the
 * mean count alike, weaker ones by their power, so that neither a few strong ones nor the many that are noise decide. */
static void cross(correlation *c, bool evens) {
    double mean = 0.0, count = 0.0;
    for (int64_t i = 0; i < c->rows * c->half; i++) {
        c->spectra[0][i] = conj(c->spectra[0][i]) * c->spectra[1][i];
        mean += sqrt(cabs(c->spectra[0][i])) * multiplicity(c, i % c->half);
        count += multiplicity(c, i % c->half);
    }
    mean = mean * mean / (count * count);
    c->total = 0.0;
    for (int64_t i = 0; i < c->rows * c->half; i++) {
        double size = cabs(c->spectra[0][i]);
        double weight = evens && size > 0.0 ? 1.0 / (size + mean) : 1.0;
        c->spectra[0][i] *= weight;
        c->total += size * weight * multiplicity(c, i % c->half);
    }
}

static ps_code correlate(int64_t rows, int64_t columns, const float *const images[2], int64_t stride, const int64_t origins[2][2],
                         bool evens, correlation *c, ps_error *error) {
    PS_TRY(allocate(rows, columns, c, error));
    for (int i = 0; i < 2; i++) PS_TRY(transform(c, images[i], stride, origins[i], c->spectra[i], error));
    cross(c, evens);
    return PS_OK;
}

/* ---- peaks ---- */

static int64_t wrap(int64_t at, int64_t n) {
    return at < 0 ? at + n : at >= n ? at - n : at;
}

static double at(const correlation *c, int64_t row, int64_t column) {
    return c->image[wrap(row, c->rows) * c->columns + wrap(column, c->columns)];
}

static bool is_maximum(const correlation *c, int64_t row, int64_t column) {
    double here = at(c, row, column);
    for (int64_t dr = -1; dr <= 1; dr++)
        for (int64_t dk = -1; dk <= 1; dk++)
            if ((dr || dk) &&
                (at(c, row + dr, column + dk) > here || (at(c, row + dr, column + dk) == here && (dr < 0 || (!dr && dk < 0)))))
                return false;
    return here > 0.0;
}

/* The highest first; of equal ones that found first. */
static void insert(ps_drift_peaks *found, const ps_drift_peak *peak) {
    int place = found->n;
    while (place > 0 && found->peaks[place - 1].height < peak->height) place--;
    if (place == PS_DRIFT_MOST_PEAKS) return;
    if (found->n < PS_DRIFT_MOST_PEAKS) found->n++;
    for (int i = found->n - 1; i > place; i--) found->peaks[i] = found->peaks[i - 1];
    found->peaks[place] = *peak;
}

static double signed_shift(int64_t at, int64_t n) {
    return (double)(2 * at > n ? at - n : at);
}

static void list_peaks(const correlation *c, ps_drift_peaks *found) {
    for (int64_t r = 0; r < c->rows; r++)
        for (int64_t k = 0; k < c->columns; k++)
            if (is_maximum(c, r, k))
                insert(found, &(ps_drift_peak){.shift = {signed_shift(r, c->rows), signed_shift(k, c->columns)},
                                               .height = at(c, r, k) / c->total});
}

ps_code ps_drift_find_peaks(int64_t rows, int64_t columns, const float *first, const float *second, bool is_phase, ps_drift_peaks *found,
                            ps_error *error) {
    static const int64_t origins[2][2] = {{0, 0}, {0, 0}};
    const float *const images[2] = {first, second};
    ps_code code = PS_OK;
    fftw_plan plan = NULL;
    correlation c;
    found->n = 0;
    if (rows < SMALLEST_SIDE || columns < SMALLEST_SIDE) return PS_OK;
    PS_GO(correlate(rows, columns, images, columns, origins, is_phase, &c, error));
    plan = fftw_plan_dft_c2r_2d((int)rows, (int)columns, c.spectra[0], c.image, FFTW_ESTIMATE);
    if (!plan) PS_GO(PS_FAIL(error, PS_E_MEMORY, "cannot plan a transform of %lld x %lld", (long long)rows, (long long)columns));
    fftw_execute(plan);
    if (c.total > 0.0) list_peaks(&c, found);
done:
    if (plan) fftw_destroy_plan(plan);
    release(&c);
    return code;
}

/* ---- to a fraction of a pixel ---- */

/* The correlation at a shift of any size, with first and second derivatives (rr, rk, kk). phase: [rows + half]. */
static double evaluate(const correlation *c, const double shift[2], fftw_complex *phase, double slope[2], double bend[3]) {
    fftw_complex *along_columns = phase + c->rows;
    double value = 0.0, w_row = 2.0 * M_PI / (double)c->rows, w_column = 2.0 * M_PI / (double)c->columns;
    slope[0] = slope[1] = bend[0] = bend[1] = bend[2] = 0.0;
    for (int64_t r = 0; r < c->rows; r++) phase[r] = cexp(I * w_row * signed_shift(r, c->rows) * shift[0]);
    for (int64_t k = 0; k < c->half; k++) along_columns[k] = multiplicity(c, k) * cexp(I * w_column * (double)k * shift[1]);
    for (int64_t r = 0; r < c->rows; r++) {
        double q_row = w_row * signed_shift(r, c->rows);
        for (int64_t k = 0; k < c->half; k++) {
            double q_column = w_column * (double)k;
            fftw_complex term = c->spectra[0][r * c->half + k] * phase[r] * along_columns[k];
            value += creal(term);
            slope[0] -= q_row * cimag(term);
            slope[1] -= q_column * cimag(term);
            bend[0] -= q_row * q_row * creal(term);
            bend[1] -= q_row * q_column * creal(term);
            bend[2] -= q_column * q_column * creal(term);
        }
    }
    return value;
}

/* A step uphill, by Newton's method where the hill is round, else along the slope; at most half a pixel. */
static void find_step(const double slope[2], const double bend[3], double move[2]) {
    double determinant = bend[0] * bend[2] - bend[1] * bend[1], size = hypot(slope[0], slope[1]);
    bool is_round = bend[0] < 0.0 && determinant > 0.0;
    move[0] = is_round ? -(bend[2] * slope[0] - bend[1] * slope[1]) / determinant : size > 0.0 ? 0.5 * slope[0] / size : 0.0;
    move[1] = is_round ? -(bend[0] * slope[1] - bend[1] * slope[0]) / determinant : size > 0.0 ? 0.5 * slope[1] / size : 0.0;
    double length = hypot(move[0], move[1]), kept = length > 0.5 ? 0.5 / length : 1.0;
    move[0] *= kept;
    move[1] *= kept;
}

/* From the pixel to the top of the hill that it stands on. */
static void climb(const correlation *c, fftw_complex *phase, double shift[2]) {
    double slope[2], bend[3], next_slope[2], next_bend[3];
    double value = evaluate(c, shift, phase, slope, bend);
    double part = 1.0; /* of a step that does not climb */
    for (int step = 0; step < NEWTON_STEPS && part > 0.01; step++) {
        double move[2];
        find_step(slope, bend, move);
        double next[2] = {shift[0] + part * move[0], shift[1] + part * move[1]};
        if (hypot(next[0] - shift[0], next[1] - shift[1]) < 1e-4 || fabs(next[0]) > FARTHEST || fabs(next[1]) > FARTHEST) return;
        double risen = evaluate(c, next, phase, next_slope, next_bend);
        if (!(risen > value)) {
            part *= 0.5;
            continue;
        }
        memcpy(shift, next, sizeof next);
        memcpy(slope, next_slope, sizeof slope);
        memcpy(bend, next_bend, sizeof bend);
        value = risen;
        part = 1.0;
    }
}

/* One round: the second image moved back by the shift so far, into room ([2 images]); what is left of the shift is found where both are
 * there, tapered at the same features then. *done: it cannot be improved. */
static ps_code refine_once(int64_t rows, int64_t columns, const float *first, const float *second, double shift[2], float *room, bool *done,
                           ps_error *error) {
    const float *const images[2] = {first, room};
    double rest[2] = {0.0, 0.0};
    ps_code code = PS_OK;
    fftw_complex *phase = NULL;
    correlation c = {0};
    int64_t inside[4];
    ps_drift_move_back(rows, columns, second, shift, room, inside, room + rows * columns);
    const int64_t size[2] = {inside[1] - inside[0], inside[3] - inside[2]},
                  origins[2][2] = {{inside[0], inside[2]}, {inside[0], inside[2]}};
    *done = size[0] < SMALLEST_SIDE || size[1] < SMALLEST_SIDE;
    if (*done) return PS_OK;
    PS_GO(correlate(size[0], size[1], images, columns, origins, false, &c, error));
    phase = fftw_alloc_complex((size_t)(c.rows + c.half));
    PS_GO_ALLOC(error, phase);
    if (c.total > 0.0) climb(&c, phase, rest);
    for (int axis = 0; axis < 2; axis++) shift[axis] += rest[axis];
    *done = hypot(rest[0], rest[1]) < ENOUGH_PX;
done:
    fftw_free(phase);
    release(&c);
    return code;
}

ps_code ps_drift_refine(int64_t rows, int64_t columns, const float *first, const float *second, ps_drift_peak *peak, ps_error *error) {
    float *room = malloc(2 * (size_t)(rows * columns) * sizeof *room);
    double shift[2] = {peak->shift[0], peak->shift[1]};
    ps_code code = room ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to move an image");
    bool done = false;
    for (int round = 0; code == PS_OK && !done && round < MOST_ROUNDS; round++)
        code = refine_once(rows, columns, first, second, shift, room, &done, error);
    bool is_near = fabs(shift[0] - peak->shift[0]) <= FARTHEST && fabs(shift[1] - peak->shift[1]) <= FARTHEST;
    if (code == PS_OK && is_near) memcpy(peak->shift, shift, sizeof shift);
    free(room);
    return code;
}

/* ---- smaller images ---- */

int64_t ps_drift_binning(int64_t rows, int64_t columns) {
    int64_t longest = rows > columns ? rows : columns;
    return (longest + PS_DRIFT_LARGEST_SIDE - 1) / PS_DRIFT_LARGEST_SIDE;
}

void ps_drift_bin(int64_t rows, int64_t columns, const float *image, int64_t factor, float *small) {
    int64_t small_rows = rows / factor, small_columns = columns / factor;
    for (int64_t r = 0; r < small_rows; r++)
        for (int64_t k = 0; k < small_columns; k++) {
            double sum = 0.0;
            for (int64_t i = 0; i < factor * factor; i++) sum += image[(r * factor + i / factor) * columns + k * factor + i % factor];
            small[r * small_columns + k] = (float)(sum / (double)(factor * factor));
        }
}
