/* Shifts between images whose shift is known; lattices; chains of steps; images moved back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "drift/chain.h"
#include "drift/move.h"
#include "drift/trust.h"

enum { ROWS = 61, COLUMNS = 54, BLOBS = 40 };

/* Smooth spots at places that do not repeat (period 0), or of a square lattice; seen from a window at `origin`. */
static void draw(double period, unsigned noise_seed, double noise, const double origin[2], float *image) {
    unsigned state = 12345u + noise_seed;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t k = 0; k < COLUMNS; k++) {
            double y = (double)r - origin[0], x = (double)k - origin[1], value = 0.0;
            if (period > 0.0) value = cos(2.0 * M_PI * y / period) + cos(2.0 * M_PI * x / period);
            for (int b = 0; period <= 0.0 && b < BLOBS; b++) {
                double dy = y - fmod(37.7 * (b + 1), ROWS + 40.0) + 20.0, dx = x - fmod(23.3 * (b + 1) * (b + 1), COLUMNS + 40.0) + 20.0;
                value += exp(-(dy * dy + dx * dx) / (2.0 * 2.2 * 2.2));
            }
            state = state * 1664525u + 1013904223u;
            image[r * COLUMNS + k] = (float)(value + noise * ((double)(state >> 8) / (1 << 24) - 0.5));
        }
}

static double find(double period, double noise, const double shift[2], double found[2]) {
    static const double nowhere[2] = {0.0, 0.0};
    float *first = malloc(sizeof(float) * ROWS * COLUMNS), *second = malloc(sizeof(float) * ROWS * COLUMNS);
    ps_drift_peaks peaks;
    int chosen[2];
    double trust = -1.0;
    draw(period, 1, noise, nowhere, first);
    draw(period, 2, noise, shift, second);
    assert_int_equal(ps_drift_find_peaks(ROWS, COLUMNS, first, second, true, &peaks, NULL), PS_OK);
    assert_true(peaks.n > 0);
    ps_drift_choose(1, &peaks, chosen);
    assert_true(chosen[0] >= 0);
    ps_drift_peak *peak = &peaks.peaks[chosen[0]];
    assert_int_equal(ps_drift_refine(ROWS, COLUMNS, first, second, peak, NULL), PS_OK);
    assert_int_equal(ps_drift_find_trust(ROWS, COLUMNS, first, second, 0.5 * ROWS * COLUMNS, peak->shift, &trust, NULL), PS_OK);
    memcpy(found, peak->shift, sizeof peak->shift);
    free(first);
    free(second);
    return trust;
}

static void shifts_are_found_to_a_part_of_a_pixel(void **state) {
    static const double shifts[][2] = {{0.0, 0.0}, {0.3, -0.4}, {5.5, 2.25}, {-11.2, 7.9}, {1.0, -14.0}};
    (void)state;
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++)
        for (int noisy = 0; noisy < 2; noisy++) {
            double found[2], trust = find(0.0, noisy ? 0.2 : 0.0, shifts[i], found);
            for (int axis = 0; axis < 2; axis++) assert_true(fabs(found[axis] - shifts[i][axis]) <= (noisy ? 0.1 : 0.05));
            assert_true(trust >= 0.6 && trust <= 1.0);
        }
}

/* A perfect lattice does not tell a shift from one by a lattice vector more: the smallest is taken and not trusted. */
static void a_lattice_is_not_trusted(void **state) {
    static const double period = 7.3, shift[2] = {6.0, -1.0};
    double found[2];
    (void)state;
    assert_true(find(period, 0.3, shift, found) <= PS_DRIFT_LOW_TRUST);
    assert_true(fabs(found[0] - (shift[0] - period)) <= 0.2 && fabs(found[1] - shift[1]) <= 0.2);
}

static void images_without_features_have_no_peak(void **state) {
    float *flat = calloc(ROWS * COLUMNS, sizeof *flat);
    ps_drift_peaks peaks = {.n = 9};
    double trust = -1.0;
    (void)state;
    assert_int_equal(ps_drift_find_peaks(ROWS, COLUMNS, flat, flat, true, &peaks, NULL), PS_OK);
    assert_int_equal(peaks.n, 0);
    assert_int_equal(ps_drift_find_trust(ROWS, COLUMNS, flat, flat, 100.0, (double[2]){0.0, 0.0}, &trust, NULL), PS_OK);
    assert_true(trust <= 0.0);
    peaks.n = 9;
    assert_int_equal(ps_drift_find_peaks(1, COLUMNS, flat, flat, true, &peaks, NULL), PS_OK);
    assert_int_equal(peaks.n, 0);
    free(flat);
}

/* Steps of 4 with rivals at -3 (a period of 7): where one step's smaller rival looks better, the neighbours decide. */
static void neighbours_decide_between_equals(void **state) {
    enum { N = 5 };
    ps_drift_peaks steps[N];
    int chosen[2 * N];
    (void)state;
    for (int i = 0; i < N; i++) {
        double move = i == 2 ? 3.6 : 3.2; /* of the third, 3.6 - 7 = -3.4 is smaller */
        steps[i] = (ps_drift_peaks){.n = 3, .peaks = {{{move, 0.0}, 0.9}, {{move - 7.0, 0.0}, 0.89}, {{0.1, 0.1}, 0.3}}};
    }
    ps_drift_choose(N, steps, chosen);
    for (int i = 0; i < N; i++) assert_int_equal(chosen[i], 0);
    steps[1].n = 0;
    ps_drift_choose(N, steps, chosen);
    assert_int_equal(chosen[1], -1);
    assert_int_equal(chosen[2], 0);
}

static void an_image_moves_back_and_nothing_wraps(void **state) {
    static const double nowhere[2] = {0.0, 0.0}, shifts[][2] = {{3.0, -2.0}, {2.4, 5.7}, {-7.25, 0.0}};
    float *image = malloc(sizeof(float) * ROWS * COLUMNS), *moved = malloc(sizeof(float) * ROWS * COLUMNS);
    float *still = malloc(sizeof(float) * ROWS * COLUMNS), *room = malloc(sizeof(float) * ROWS * COLUMNS);
    int64_t inside[4];
    (void)state;
    draw(0.0, 1, 0.0, nowhere, still);
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        draw(0.0, 1, 0.0, shifts[i], image);
        ps_drift_move_back(ROWS, COLUMNS, image, shifts[i], moved, inside, room);
        assert_true(inside[1] - inside[0] >= ROWS - 16 && inside[3] - inside[2] >= COLUMNS - 16);
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t k = 0; k < COLUMNS; k++) {
                bool is_inside = r >= inside[0] && r < inside[1] && k >= inside[2] && k < inside[3];
                double expected = is_inside ? still[r * COLUMNS + k] : 0.0;
                assert_true(fabs(moved[r * COLUMNS + k] - expected) <= 0.01);
            }
    }
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) image[i] = 1.0f;
    ps_drift_move_back(ROWS, COLUMNS, image, (double[2]){0.0, 2.0 * COLUMNS}, moved, inside, room);
    assert_int_equal(inside[1] + inside[3], 0);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) assert_true(moved[i] == 0.0f);
    ps_drift_move_back(ROWS, COLUMNS, image, nowhere, moved, inside, room);
    assert_true(inside[0] == 0 && inside[1] == ROWS && inside[2] == 0 && inside[3] == COLUMNS);
    assert_memory_equal(moved, image, sizeof(float) * ROWS * COLUMNS);
    free(image);
    free(moved);
    free(still);
    free(room);
}

static void large_images_are_made_smaller(void **state) {
    float image[5 * 7], small[2 * 3];
    (void)state;
    assert_int_equal(ps_drift_binning(1024, 3), 1);
    assert_int_equal(ps_drift_binning(3, 1025), 2);
    assert_int_equal(ps_drift_binning(4096, 3072), 4);
    for (int i = 0; i < 35; i++) image[i] = (float)i;
    ps_drift_bin(5, 7, image, 2, small);
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < 3; k++) assert_true(fabs(small[3 * r + k] - (14.0 * r + 2.0 * k + 4.0)) <= 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shifts_are_found_to_a_part_of_a_pixel), cmocka_unit_test(a_lattice_is_not_trusted),
        cmocka_unit_test(images_without_features_have_no_peak),  cmocka_unit_test(neighbours_decide_between_equals),
        cmocka_unit_test(an_image_moves_back_and_nothing_wraps), cmocka_unit_test(large_images_are_made_smaller)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
