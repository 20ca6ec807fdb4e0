/* Hot pixels found and only those: flat fields, a disc with its rim, clusters, gain scatter, bad pixels as neighbours. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "input/adapters/bad_pixels.h"

enum { ROWS = 41, COLUMNS = 37, N = ROWS * COLUMNS };
static const int64_t n_positions = 10000;

static uint64_t state = 7;
static double next_uniform(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(state >> 11) + 0.5) * 0x1p-53;
}
static double next_normal(void) {
    return sqrt(-2 * log(next_uniform())) * cos(2 * M_PI * next_uniform());
}

/* A disc of `inside` counts on `outside`, with counting noise and a gain that differs from pixel to pixel. */
static void make_disc(double *mean, double radius, double inside, double outside, double gain_scatter) {
    for (int u = 0; u < ROWS; u++)
        for (int v = 0; v < COLUMNS; v++) {
            double d = hypot(u - 19.3, v - 18.1), fraction = fmin(fmax(radius - d + 0.5, 0), 1);
            double expected = (outside + fraction * (inside - outside)) * (1 + gain_scatter * next_normal());
            mean[u * COLUMNS + v] = fmax(expected + sqrt(expected / (double)n_positions) * next_normal(), 0);
        }
}

static int64_t count_hot(const double *mean, const uint8_t *bad, uint8_t *hot) {
    int64_t n = -1;
    ps_error error = {0};
    assert_int_equal(ps_hot_pixels(mean, n_positions, ROWS, COLUMNS, 8, bad, hot, &n, &error), PS_OK);
    return n;
}

static void test_clean_discs_have_none(void **unused) {
    (void)unused;
    double mean[N];
    uint8_t hot[N];
    static const double radii[] = {2, 3.5, 7.3, 15, 60}, gains[] = {0, 0.005, 0.03};
    for (int r = 0; r < 5; r++)
        for (int g = 0; g < 3; g++) {
            make_disc(mean, radii[r], 10, 0.02, gains[g]);
            assert_int_equal(count_hot(mean, NULL, hot), 0);
        }
}

static void test_hot_ones_are_found(void **unused) {
    (void)unused;
    double mean[N];
    uint8_t hot[N];
    static const int places[][2] = {{0, 0}, {20, 18}, {20, 19}, {19, 18}, {5, 30}, {40, 36}, {10, 20}};
    make_disc(mean, 12, 10, 0.02, 0.01);
    for (int i = 0; i < 7; i++) mean[places[i][0] * COLUMNS + places[i][1]] += 25;
    assert_int_equal(count_hot(mean, NULL, hot), 7);
    for (int i = 0; i < 7; i++) assert_int_equal(hot[places[i][0] * COLUMNS + places[i][1]], 1);
}

static void test_bad_pixels_take_no_part(void **unused) {
    (void)unused;
    double mean[N];
    uint8_t hot[N], bad[N] = {0};
    make_disc(mean, 12, 10, 0.02, 0.01);
    mean[300] = 1e6;
    mean[301] = NAN;
    bad[300] = 1;
    assert_int_equal(count_hot(mean, bad, hot), 0);
    memset(mean, 0, sizeof mean);
    assert_int_equal(count_hot(mean, NULL, hot), 0);
    mean[500] = 2.0 / (double)n_positions; /* two counts in a dark place are chance */
    assert_int_equal(count_hot(mean, NULL, hot), 0);
    mean[500] = 20.0 / (double)n_positions;
    assert_int_equal(count_hot(mean, NULL, hot), 1);
}

static void test_bad_arguments(void **unused) {
    (void)unused;
    double mean[1] = {0};
    uint8_t hot[1];
    int64_t n;
    assert_int_equal(ps_hot_pixels(mean, 1, 1, 1, 0, NULL, hot, &n, NULL), PS_E_ARGUMENT);
    assert_int_equal(ps_hot_pixels(mean, 1, 1, 1, NAN, NULL, hot, &n, NULL), PS_E_ARGUMENT);
    assert_int_equal(ps_hot_pixels(mean, 0, 1, 1, 8, NULL, hot, &n, NULL), PS_E_ARGUMENT);
    assert_int_equal(ps_hot_pixels(mean, 1, 1, 1, 8, NULL, hot, &n, NULL), PS_OK);
    assert_int_equal(n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean_discs_have_none),
        cmocka_unit_test(test_hot_ones_are_found),
        cmocka_unit_test(test_bad_pixels_take_no_part),
        cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
