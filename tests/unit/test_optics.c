/* Geometry, wavelength, aperture and aberrations against analytic values and the stored cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference_case.h"

static void assert_close(double found, double expected, double tolerance) {
    if (!(fabs(found - expected) <= tolerance)) fail_msg("found %.17g, expected %.17g within %g", found, expected, tolerance);
}

static void wavelength_is_relativistic(void **state) {
    (void)state;
    assert_close(ps_wavelength_A(300e3), 0.0196874890, 5e-11);
    assert_close(ps_wavelength_A(200e3), 0.0250793405, 5e-10);
    assert_close(ps_wavelength_A(60e3), 0.0486610, 5e-7);
}

static ps_optics plain_optics(void) {
    return (ps_optics){
        .voltage_V = 300e3, .semiangle_mrad = 10, .scan_step_A = {1, 1}, .detector_pitch_mrad = {2, 3}, .detector_center_px = {1, 2}};
}

enum { ROWS = 3, COLUMNS = 5 };

/* k in mrad of pixel (2, 4): one pixel along row and two along column from the centre. */
static void corner_mrad(const ps_optics *optics, double *row, double *column) {
    double k_row[ROWS * COLUMNS], k_column[ROWS * COLUMNS];
    ps_optics_k(optics, ROWS, COLUMNS, k_row, k_column);
    *row = 1e3 * ps_wavelength_A(optics->voltage_V) * k_row[2 * COLUMNS + 4];
    *column = 1e3 * ps_wavelength_A(optics->voltage_V) * k_column[2 * COLUMNS + 4];
}

static void geometry_turns_transposes_and_flips(void **state) {
    (void)state;
    ps_optics optics = plain_optics();
    double row, column;
    corner_mrad(&optics, &row, &column);
    assert_close(row, 2, 1e-12);
    assert_close(column, 6, 1e-12);
    optics.rotation_deg = 90;
    corner_mrad(&optics, &row, &column);
    assert_close(row, -6, 1e-12);
    assert_close(column, 2, 1e-12);
    optics.rotation_deg = 0;
    optics.detector_transpose = true;
    optics.detector_flip[0] = true;
    corner_mrad(&optics, &row, &column);
    assert_close(row, -6, 1e-12);
    assert_close(column, 2, 1e-12);
}

static void aperture_is_one_pixel_soft(void **state) {
    (void)state;
    ps_optics optics = plain_optics();
    ps_probe probe;
    ps_optics_probe(&optics, &probe);
    double per_mrad = 1e-3 / probe.wavelength_A;
    assert_true(ps_probe_aperture(&probe, 0, 0) == 1.0);
    assert_true(ps_probe_aperture(&probe, 8.9 * per_mrad, 0) == 1.0);
    assert_true(ps_probe_aperture(&probe, 11.1 * per_mrad, 0) == 0.0);
    assert_close(ps_probe_aperture(&probe, 10 * per_mrad, 0), 0.5, 1e-12);
    assert_close(ps_probe_aperture(&probe, 10.5 * per_mrad, 0), 0.25, 1e-12);
    assert_close(ps_probe_aperture(&probe, 0, 10.75 * per_mrad), 0.25, 1e-12);
}

static void chi_has_every_term(void **state) {
    (void)state;
    double alpha = 0.02, phi = 0.6;
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        ps_probe probe = {.wavelength_A = 0.02};
        int n = ps_aberration_orders[i][0], m = ps_aberration_orders[i][1];
        probe.C_A[i] = 1e5;
        probe.angle_rad[i] = m ? 0.35 : 0.0;
        double k = alpha / probe.wavelength_A;
        double expected = 2 * M_PI / 0.02 * 1e5 * pow(alpha, n + 1) / (n + 1) * cos(m * (phi - 0.35));
        double found = ps_probe_chi(&probe, k * cos(phi), k * sin(phi));
        assert_close(found, expected, 1e-13 * (1 + fabs(expected)));
    }
}

static void check_case(const char *name, const ps_optics *optics) {
    hid_t file = reference_open(name);
    if (file < 0) skip();
    hsize_t shape[3];
    double *k = reference_read(file, "expected/k_inv_A", shape), *aperture = reference_read(file, "expected/aperture", shape);
    double *chi = reference_read(file, "expected/chi", shape);
    size_t n = shape[0] * shape[1];
    double *k_row = malloc(n * sizeof *k_row), *k_column = malloc(n * sizeof *k_column);
    ps_probe probe;
    ps_optics_probe(optics, &probe);
    ps_optics_k(optics, (int64_t)shape[0], (int64_t)shape[1], k_row, k_column);
    for (size_t i = 0; i < n; i++) {
        assert_close(k_row[i], k[i], 1e-12);
        assert_close(k_column[i], k[n + i], 1e-12);
        assert_close(ps_probe_aperture(&probe, k_row[i], k_column[i]), aperture[i], 1e-12);
        assert_close(ps_probe_chi(&probe, k_row[i], k_column[i]), chi[i], 1e-12 * (1 + fabs(chi[i])));
    }
    free(k);
    free(aperture);
    free(chi);
    free(k_row);
    free(k_column);
    H5Fclose(file);
}

static void case_a_agrees(void **state) {
    (void)state;
    ps_optics optics = reference_optics_a();
    check_case("case_a", &optics);
}

static void case_b_agrees(void **state) {
    (void)state;
    ps_optics optics = reference_optics_b();
    check_case("case_b", &optics);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wavelength_is_relativistic),
        cmocka_unit_test(geometry_turns_transposes_and_flips),
        cmocka_unit_test(aperture_is_one_pixel_soft),
        cmocka_unit_test(chi_has_every_term),
        cmocka_unit_test(case_a_agrees),
        cmocka_unit_test(case_b_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
