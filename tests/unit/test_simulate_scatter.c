/* Scattering against a direct sum in double precision, and against the weak-object model of physics section 3. */
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tasks/simulate/probe_rows.h"
#include "tasks/simulate/scatter.h"
#include "tasks/simulate/setup.h"

enum { SCAN_ROWS = 7, SCAN_COLUMNS = 10, U = 3, ROWS = SCAN_ROWS * U, COLUMNS = SCAN_COLUMNS * U, DETECTOR = 13 };

/* Every aberration, rectangular steps and pitches, a centre off the middle, a rotation. */
static ps_optics full_optics(void) {
    ps_optics optics = {.voltage_V = 200e3,
                        .semiangle_mrad = 15,
                        .scan_step_A = {0.7, 0.6},
                        .detector_pitch_mrad = {4.1, 3.3},
                        .detector_center_px = {5.3, 6.8},
                        .rotation_deg = 37};
    const double C_A[PS_N_ABERRATIONS] = {-200, 60, 3000, 4000, 1e5, 2e5, 1e5, 3e6, 4e6, 5e6, 2e8, 3e8, 3e8, 4e8};
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        optics.C_A[i] = C_A[i];
        optics.angle_rad[i] = ps_aberration_orders[i][1] ? 0.3 * (i + 1) : 0.0;
    }
    return optics;
}

static ps_specimen random_specimen(double phase_rad, double log_amplitude) {
    ps_specimen specimen = {.grid = {ROWS, COLUMNS, {0.7 / U, 0.6 / U}}};
    specimen.phase = malloc(ROWS * COLUMNS * sizeof(double));
    specimen.log_amplitude = malloc(ROWS * COLUMNS * sizeof(double));
    srand(3);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        specimen.phase[i] = phase_rad * (2.0 * rand() / RAND_MAX - 1.0);
        specimen.log_amplitude[i] = log_amplitude * (2.0 * rand() / RAND_MAX - 1.0);
    }
    return specimen;
}

/* Frequency of index i of n, FFT order, in units of 1/extent; the Nyquist index is the negative one. */
static int frequency(int i, int n) {
    return 2 * i >= n ? i - n : i;
}

/* [ROWS, COLUMNS] Fourier coefficients by the definition. */
static double complex *coefficients_of(const double complex *field) {
    double complex *all = calloc(ROWS * COLUMNS, sizeof *all);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        for (int j = 0; j < ROWS * COLUMNS; j++) {
            double turns = (double)(i / COLUMNS * (j / COLUMNS) % ROWS) / ROWS + (double)(i % COLUMNS * (j % COLUMNS) % COLUMNS) / COLUMNS;
            all[i] += field[j] * cexp(-2.0 * M_PI * I * turns) / (ROWS * COLUMNS);
        }
    return all;
}

static double complex probe_at(const ps_probe *probe, double k_row, double k_column) {
    return ps_probe_aperture(probe, k_row, k_column) * cexp(-I * ps_probe_chi(probe, k_row, k_column));
}

static double direct_intensity(const ps_probe *probe, const ps_specimen *specimen, const double complex *object, double k_row,
                               double k_column, int scan_row, int scan_column) {
    double complex wave = 0.0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int n_row = frequency(i / COLUMNS, ROWS), n_column = frequency(i % COLUMNS, COLUMNS);
        double q_row = n_row / (ROWS * specimen->grid.step_A[0]), q_column = n_column / (COLUMNS * specimen->grid.step_A[1]);
        double turns = (double)n_row * scan_row / SCAN_ROWS + (double)n_column * scan_column / SCAN_COLUMNS;
        wave += object[i] * probe_at(probe, k_row - q_row, k_column - q_column) * cexp(2.0 * M_PI * I * turns);
    }
    return creal(wave * conj(wave));
}

static double complex *transmission_of(const ps_specimen *specimen) {
    double complex *field = malloc(ROWS * COLUMNS * sizeof *field);
    for (int i = 0; i < ROWS * COLUMNS; i++) field[i] = cexp(specimen->log_amplitude[i] + I * specimen->phase[i]);
    return field;
}

/* A strong object: nothing is linearised. */
static void intensities_equal_a_direct_sum(void **state) {
    (void)state;
    ps_optics optics = full_optics();
    ps_probe probe;
    ps_optics_probe(&optics, &probe);
    ps_specimen specimen = random_specimen(2.0, 0.5);
    double complex *field = transmission_of(&specimen), *object = coefficients_of(field);
    double k_row[DETECTOR * DETECTOR], k_column[DETECTOR * DETECTOR];
    float intensity[SCAN_ROWS * SCAN_COLUMNS];
    ps_scatter *scatter = NULL;
    ps_optics_k(&optics, DETECTOR, DETECTOR, k_row, k_column);
    assert_int_equal(ps_scatter_create(&probe, &specimen, SCAN_ROWS, SCAN_COLUMNS, 2, &scatter, NULL), PS_OK);
    for (int pixel = 0; pixel < DETECTOR * DETECTOR; pixel += 5) {
        ps_scatter_pixel(scatter, pixel % 2, k_row[pixel], k_column[pixel], intensity);
        for (int p = 0; p < SCAN_ROWS * SCAN_COLUMNS; p++) {
            double expected =
                direct_intensity(&probe, &specimen, object, k_row[pixel], k_column[pixel], p / SCAN_COLUMNS, p % SCAN_COLUMNS);
            if (!(fabs(intensity[p] - expected) <= 2e-6))
                fail_msg("pixel %d, position %d: %g, expected %g", pixel, p, intensity[p], expected);
        }
    }
    ps_scatter_destroy(scatter);
    ps_specimen_free(&specimen);
    free(field);
    free(object);
}

static void vacuum_shows_the_aperture_squared(void **state) {
    (void)state;
    ps_optics optics = full_optics();
    ps_probe probe;
    ps_optics_probe(&optics, &probe);
    ps_specimen specimen = random_specimen(0.0, 0.0);
    double k_row[DETECTOR * DETECTOR], k_column[DETECTOR * DETECTOR], sum = 0.0, expected_sum = 0.0;
    float intensity[SCAN_ROWS * SCAN_COLUMNS];
    ps_scatter *scatter = NULL;
    ps_optics_k(&optics, DETECTOR, DETECTOR, k_row, k_column);
    assert_int_equal(ps_scatter_create(&probe, &specimen, SCAN_ROWS, SCAN_COLUMNS, 1, &scatter, NULL), PS_OK);
    for (int pixel = 0; pixel < DETECTOR * DETECTOR; pixel++) {
        double aperture = ps_probe_aperture(&probe, k_row[pixel], k_column[pixel]);
        ps_scatter_pixel(scatter, 0, k_row[pixel], k_column[pixel], intensity);
        for (int p = 0; p < SCAN_ROWS * SCAN_COLUMNS; p++) assert_true(fabs(intensity[p] - aperture * aperture) <= 2e-6);
        sum += aperture * aperture;
    }
    assert_int_equal(ps_simulate_vacuum_sum(&optics, &expected_sum, NULL), PS_OK);
    assert_true(fabs(sum - expected_sum) <= 1e-12 * sum); /* the detector holds the whole disc */
    ps_scatter_destroy(scatter);
    ps_specimen_free(&specimen);
}

/* g(q, k) of physics section 3 from a~ and phi~, for one pixel and scan frequency, all aliases summed. */
static double complex model_g(const ps_probe *probe, const ps_fine_grid *grid, const double complex *amplitude, const double complex *phase,
                              double k_row, double k_column, int scan_row, int scan_column) {
    double complex g = 0.0, here = probe_at(probe, k_row, k_column);
    for (int r = scan_row; r < ROWS; r += SCAN_ROWS)
        for (int c = scan_column; c < COLUMNS; c += SCAN_COLUMNS) {
            double q_row = frequency(r, ROWS) / (ROWS * grid->step_A[0]), q_column = frequency(c, COLUMNS) / (COLUMNS * grid->step_A[1]);
            double complex t1 = conj(here) * probe_at(probe, k_row - q_row, k_column - q_column);
            double complex t2 = here * conj(probe_at(probe, k_row + q_row, k_column + q_column));
            g += amplitude[r * COLUMNS + c] * (t1 + t2) + phase[r * COLUMNS + c] * I * (t1 - t2);
        }
    return g;
}

static double complex measured_g(const float *intensity, int scan_row, int scan_column) {
    double complex g = 0.0;
    for (int p = 0; p < SCAN_ROWS * SCAN_COLUMNS; p++) {
        double turns = (double)scan_row * (p / SCAN_COLUMNS) / SCAN_ROWS + (double)scan_column * (p % SCAN_COLUMNS) / SCAN_COLUMNS;
        g += intensity[p] * cexp(-2.0 * M_PI * I * turns) / (SCAN_ROWS * SCAN_COLUMNS);
    }
    return g;
}

static double complex *real_coefficients(const double *field) {
    double complex *copy = malloc(ROWS * COLUMNS * sizeof *copy);
    for (int i = 0; i < ROWS * COLUMNS; i++) copy[i] = field[i];
    double complex *all = coefficients_of(copy);
    free(copy);
    return all;
}

/* With a weak object every sign and convention of the model must come out; what is left is of second order. */
static void weak_objects_follow_the_model(void **state) {
    (void)state;
    ps_optics optics = full_optics();
    ps_probe probe;
    ps_optics_probe(&optics, &probe);
    ps_specimen specimen = random_specimen(2e-3, 1e-3);
    double complex *amplitude = real_coefficients(specimen.log_amplitude), *phase = real_coefficients(specimen.phase);
    double k_row[DETECTOR * DETECTOR], k_column[DETECTOR * DETECTOR], largest = 0.0;
    float intensity[SCAN_ROWS * SCAN_COLUMNS];
    ps_scatter *scatter = NULL;
    ps_optics_k(&optics, DETECTOR, DETECTOR, k_row, k_column);
    assert_int_equal(ps_scatter_create(&probe, &specimen, SCAN_ROWS, SCAN_COLUMNS, 1, &scatter, NULL), PS_OK);
    for (int pixel = 2; pixel < DETECTOR * DETECTOR; pixel += 7) {
        ps_scatter_pixel(scatter, 0, k_row[pixel], k_column[pixel], intensity);
        for (int f = 1; f < SCAN_ROWS * SCAN_COLUMNS; f++) {
            double complex found = measured_g(intensity, f / SCAN_COLUMNS, f % SCAN_COLUMNS);
            double complex expected =
                model_g(&probe, &specimen.grid, amplitude, phase, k_row[pixel], k_column[pixel], f / SCAN_COLUMNS, f % SCAN_COLUMNS);
            if (!(cabs(found - expected) <= 2e-6)) fail_msg("pixel %d, frequency %d: off by %g", pixel, f, cabs(found - expected));
            largest = fmax(largest, cabs(expected));
        }
    }
    assert_true(largest > 1e-4);
    ps_scatter_destroy(scatter);
    ps_specimen_free(&specimen);
    free(amplitude);
    free(phase);
}

static void rows_of_chi_agree_with_the_formula(void **state) {
    (void)state;
    enum { N = 101 };
    ps_optics optics = full_optics();
    ps_probe probe;
    ps_chi_polynomial chi;
    float real[N], imaginary[N];
    ps_optics_probe(&optics, &probe);
    ps_chi_polynomial_build(&probe, &chi);
    for (int row = -40; row <= 40; row += 8) {
        double k_row = 0.02 * row, first = -0.97, step = 0.0193, coefficients[PS_CHI_DEGREE + 1];
        ps_chi_polynomial_row(&chi, k_row, coefficients);
        ps_chi_row_waves(coefficients, first, step, N, real, imaginary);
        for (int i = 0; i < N; i++) {
            double expected = ps_probe_chi(&probe, k_row, first + i * step);
            assert_true(hypot(real[i] - cos(expected), imaginary[i] + sin(expected)) <= 3e-7);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intensities_equal_a_direct_sum),
        cmocka_unit_test(vacuum_shows_the_aperture_squared),
        cmocka_unit_test(weak_objects_follow_the_model),
        cmocka_unit_test(rows_of_chi_agree_with_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
