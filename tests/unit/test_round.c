/* Optics on a lattice: how far they move, what becomes equal, what is special about angles and signs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "optics/round.h"

static const ps_optics_rounding most = {.aberrations_rad = 0.1, .rotation_deg = 0.4};

static ps_optics make(double rotation_deg, double size_A, double turn_rad) {
    ps_optics optics = {.voltage_V = 80000.0, .semiangle_mrad = 25.0, .rotation_deg = rotation_deg};
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        bool is_round = ps_aberration_orders[i][1] == 0;
        optics.C_A[i] = size_A * pow(40.0, ps_aberration_orders[i][0] - 1) * (is_round ? cos(turn_rad) : 1.0);
        optics.angle_rad[i] = is_round ? 0.0 : turn_rad / ps_aberration_orders[i][1];
    }
    return optics;
}

/* chi is what the probe makes of the optics: its largest change at the rim is that of one aberration, as moved says. */
static void nothing_moves_further_than_asked(void **state) {
    (void)state;
    for (int t = 0; t < 60; t++) {
        ps_optics given = make(-177.3 + 6.1 * t, 3.0 + 1.7 * t, 0.3 * t - 9.0), rounded = given;
        ps_optics_rounding moved;
        double k = 1e-3 * given.semiangle_mrad / ps_wavelength_A(given.voltage_V), largest = 0.0;
        ps_optics_round(&most, &rounded, &moved);
        assert_true(fabs(rounded.rotation_deg - given.rotation_deg) <= 0.4 + 1e-12);
        assert_true(fabs(moved.rotation_deg - fabs(rounded.rotation_deg - given.rotation_deg)) <= 1e-12);
        for (int i = 0; i < PS_N_ABERRATIONS; i++) {
            ps_optics a = {.voltage_V = 80000.0, .semiangle_mrad = 25.0}, b = a;
            ps_probe probes[2];
            double change = 0.0;
            a.C_A[i] = given.C_A[i], a.angle_rad[i] = given.angle_rad[i];
            b.C_A[i] = rounded.C_A[i], b.angle_rad[i] = rounded.angle_rad[i];
            ps_optics_probe(&a, &probes[0]);
            ps_optics_probe(&b, &probes[1]);
            for (int s = 0; s < 720; s++) {
                double row = k * cos(s * M_PI / 360.0), column = k * sin(s * M_PI / 360.0);
                change = fmax(change, fabs(ps_probe_chi(&probes[0], row, column) - ps_probe_chi(&probes[1], row, column)));
            }
            assert_true(change <= 0.1 + 1e-9);
            largest = fmax(largest, change);
        }
        assert_true(moved.aberrations_rad <= 0.1 + 1e-9 && fabs(moved.aberrations_rad - largest) <= 1e-3);
    }
}

static void near_ones_become_equal_and_stay(void **state) {
    ps_optics a = make(37.02, 0.0, 0.0), b = make(36.91, 0.0, 0.0), far, again;
    a.C_A[0] = 80.0, a.C_A[1] = 25.0, a.angle_rad[1] = 0.4;
    b.C_A[0] = 80.3, b.C_A[1] = 25.1, b.angle_rad[1] = 0.402 - M_PI; /* the same direction, the other way round */
    far = a;
    far.C_A[0] = 95.0;
    ps_optics_rounding moved;
    (void)state;
    ps_optics_round(&most, &a, &moved);
    ps_optics_round(&most, &b, &moved);
    ps_optics_round(&most, &far, &moved);
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(a.C_A[0] != far.C_A[0]);
    again = a;
    ps_optics_round(&most, &again, &moved);
    assert_true(moved.aberrations_rad <= 1e-9 && moved.rotation_deg <= 1e-9);
}

/* Nothing may depend on which zero or which of two equal angles it is. */
static void small_ones_become_zero(void **state) {
    ps_optics a = make(-0.1, 0.05, 3.1), b = make(0.1, 0.05, -3.1);
    ps_optics_rounding moved;
    (void)state;
    ps_optics_round(&most, &a, &moved);
    ps_optics_round(&most, &b, &moved);
    assert_memory_equal(&a, &b, sizeof a);
    for (int i = 0; i < PS_N_ABERRATIONS; i++) assert_true(a.C_A[i] == 0.0 && a.angle_rad[i] == 0.0 && !signbit(a.C_A[i]));
    assert_false(signbit(a.rotation_deg));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_moves_further_than_asked),
                                       cmocka_unit_test(near_ones_become_equal_and_stay), cmocka_unit_test(small_ones_become_zero)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
