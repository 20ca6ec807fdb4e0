/* A random weak object: band-limited noise, phase and log-amplitude independent; the moving defect is a bright blob that wanders. */
#include <complex.h>
#include <fftw3.h>
#include <math.h>
#include <string.h>

#include "tasks/simulate/random.h"
#include "tasks/simulate/specimen.h"

static const double blob_height = 3.0; /* in root mean squares of the phase */

typedef struct {
    const ps_fine_grid *grid;
    double band_inv_A;
    double shift_A[2]; /* drift */
} noise_field;

/* Coefficient of frequency (row, column) before scaling: complex normal, falling off as a half cosine over the band's outer third. */
static double complex coefficient(const noise_field *noise, uint64_t seed, ps_random_use use, int64_t row, int64_t column) {
    double q_row = (double)row / ((double)noise->grid->rows * noise->grid->step_A[0]);
    double q_column = (double)column / ((double)noise->grid->columns * noise->grid->step_A[1]);
    double q = hypot(q_row, q_column) / noise->band_inv_A, normals[2];
    if (q >= 1.0 || q == 0.0) return 0.0;
    double fall = q < 2.0 / 3.0 ? 1.0 : 0.5 + 0.5 * cos(M_PI * (3.0 * q - 2.0));
    ps_random_normals(seed, use, (uint32_t)(int32_t)row, (uint32_t)(int32_t)column, normals);
    return fall * (normals[0] + I * normals[1]) * cexp(-2.0 * M_PI * I * (q_row * noise->shift_A[0] + q_column * noise->shift_A[1]));
}

/* Fills the half of the spectrum that c2r reads. Returns the sum of squares over the full spectrum. */
static double fill_spectrum(const noise_field *noise, uint64_t seed, ps_random_use use, fftw_complex *spectrum) {
    int64_t rows = noise->grid->rows, half = noise->grid->columns / 2 + 1;
    double sum = 0.0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < half; c++) {
            int64_t row = 2 * r < rows ? r : r - rows;
            double complex value = c > 0 || row > 0 ? coefficient(noise, seed, use, row, c) : conj(coefficient(noise, seed, use, -row, 0));
            spectrum[r * half + c] = value;
            sum += (c > 0 ? 2.0 : 1.0) * (creal(value) * creal(value) + cimag(value) * cimag(value));
        }
    return sum;
}

static ps_code add_field(const noise_field *noise, uint64_t seed, ps_random_use use, double root_mean_square, double *field,
                         ps_error *error) {
    ps_code code = PS_OK;
    int64_t rows = noise->grid->rows, columns = noise->grid->columns;
    fftw_plan plan = NULL;
    fftw_complex *spectrum = fftw_alloc_complex((size_t)(rows * (columns / 2 + 1)));
    PS_GO_ALLOC(error, spectrum);
    plan = fftw_plan_dft_c2r_2d((int)rows, (int)columns, spectrum, field, FFTW_ESTIMATE);
    PS_GO_ALLOC(error, plan);
    double sum = fill_spectrum(noise, seed, use, spectrum);
    if (!(sum > 0.0)) {
        code = PS_FAIL(error, PS_E_JOB, "/simulate/scan_shape: a random object of at most %g 1/A has no frequency in so small a scan area",
                       noise->band_inv_A);
        goto done;
    }
    fftw_execute(plan);
    for (int64_t i = 0; i < rows * columns; i++) field[i] *= root_mean_square / sqrt(sum);
done:
    fftw_destroy_plan(plan);
    fftw_free(spectrum);
    return code;
}

/* From the middle of the scan area, `frame` steps of one resolution element each, in random directions. */
static void walk(const ps_job_simulate *job, const noise_field *noise, int64_t frame, double at_A[2]) {
    at_A[0] = 0.5 * (double)noise->grid->rows * noise->grid->step_A[0];
    at_A[1] = 0.5 * (double)noise->grid->columns * noise->grid->step_A[1];
    for (int64_t hop = 0; hop < frame; hop++) {
        double angle = 2.0 * M_PI * ps_random_uniform(job->seed, PS_RANDOM_HOP, (uint32_t)hop, 0);
        at_A[0] += cos(angle) / noise->band_inv_A;
        at_A[1] += sin(angle) / noise->band_inv_A;
    }
    for (int axis = 0; axis < 2; axis++) {
        double extent_A = (double)(axis == 0 ? noise->grid->rows : noise->grid->columns) * noise->grid->step_A[axis];
        at_A[axis] += noise->shift_A[axis];
        at_A[axis] -= floor(at_A[axis] / extent_A) * extent_A;
    }
}

double ps_blob_sigma_A(double band_inv_A) {
    return 0.5 / band_inv_A;
}

static void add_blob(const ps_job_simulate *job, const noise_field *noise, ps_specimen *specimen) {
    const ps_fine_grid *grid = &specimen->grid;
    double sigma_A = ps_blob_sigma_A(noise->band_inv_A), height = blob_height * job->phase_rad;
    double mean =
        height * 2.0 * M_PI * sigma_A * sigma_A / ((double)grid->rows * grid->step_A[0] * (double)grid->columns * grid->step_A[1]);
    ps_gaussian_add(grid, specimen->defect_A, sigma_A, height, specimen->phase);
    for (int64_t i = 0; i < grid->rows * grid->columns; i++) specimen->phase[i] -= mean;
}

ps_code ps_specimen_add_noise(const ps_job_simulate *job, double band_inv_A, int64_t frame, ps_specimen *specimen, ps_error *error) {
    noise_field noise = {.grid = &specimen->grid, .band_inv_A = band_inv_A};
    for (int axis = 0; axis < 2; axis++) noise.shift_A[axis] = (double)frame * job->drift_A[axis];
    PS_TRY(add_field(&noise, job->seed, PS_RANDOM_PHASE, job->phase_rad, specimen->phase, error));
    PS_TRY(add_field(&noise, job->seed, PS_RANDOM_AMPLITUDE, job->log_amplitude, specimen->log_amplitude, error));
    specimen->has_defect = job->moving_defect;
    if (job->moving_defect) {
        walk(job, &noise, frame, specimen->defect_A);
        add_blob(job, &noise, specimen);
    }
    return PS_OK;
}
