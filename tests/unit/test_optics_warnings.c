/* Optics that are allowed but make no sense are said, with the unit that would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "optics/warnings.h"
#include "reference_case.h"

enum { MOST = 6, C10 = 0, C30 = 4 };

static void assert_warnings(const ps_optics *optics, int expected, const char *says) {
    char texts[MOST][PS_WARNING_TEXT];
    int n = ps_optics_warnings(optics, MOST, texts);
    if (n != expected) fail_msg("%d warnings, expected %d; the first: %s", n, expected, n ? texts[0] : "");
    if (n > 0 && !strstr(texts[0], says)) fail_msg("'%s' lacks '%s'", texts[0], says);
}

static void good_optics_raise_none(void **state) {
    (void)state;
    const ps_optics all[] = {reference_optics_a(),
                             reference_optics_b(),
                             reference_optics_s(),
                             {.voltage_V = 300000,
                              .semiangle_mrad = 1.03,
                              .scan_step_A = {31.25, 31.25},
                              .detector_pitch_mrad = {0.068084, 0.068084},
                              .C_A = {-128170}}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) assert_warnings(&all[i], 0, "");
}

static void slips_are_named(void **state) {
    (void)state;
    ps_optics optics = reference_optics_s();
    optics.C_A[C10] = -1.3e-8; /* 13 nm, in m */
    assert_warnings(&optics, 1, "C10 of -1.3e-08 A turns the phase by");
    optics.C_A[C10] = 0;
    optics.semiangle_mrad = 10;
    optics.C_A[C30] = 1.2; /* mm */
    assert_warnings(&optics, 1, "is the value in mm?");
    optics.C_A[C30] = 1.2e7;
    assert_warnings(&optics, 0, "");
    optics = reference_optics_s();
    optics.C_A[C10] = 1e5;
    assert_warnings(&optics, 1, "more than half a turn");
    optics = reference_optics_s();
    optics.scan_step_A[1] *= 10;
    assert_warnings(&optics, 1, "scan_step_A of 0.373 x 3.73 is 23 times coarser");
    optics = reference_optics_s();
    optics.thickness_A = 12400;
    assert_warnings(&optics, 1, "is 1240 nm");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_optics_raise_none), cmocka_unit_test(slips_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
