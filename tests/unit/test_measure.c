/* The bright-field disc measured on made patterns: whole, clipped, noisy, with bad pixels; and the patterns that hold none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "optics/circle.h"
#include "optics/measure.h"
#include "plan/sample_pattern.h"

enum { MOST = 200 * 200, FINE = 8 };

typedef struct {
    int64_t rows, columns;
    double center[2], radius, pitch[2]; /* radius in units of the pitch */
    double inside, outside;             /* counts per position */
    double noise;                       /* standard deviation */
} made;

/* Uniform in [-1, 1]. */
static double draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 11) / (double)(INT64_C(1) << 52) - 1.0;
}

/* A disc of sharp edge, each pixel the mean over FINE x FINE points of it. */
static void make(const made *m, double *mean) {
    uint64_t state = 5;
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t c = 0; c < m->columns; c++) {
            double distance = hypot(((double)r - m->center[0]) * m->pitch[0], ((double)c - m->center[1]) * m->pitch[1]) - m->radius;
            bool is_at_rim = fabs(distance) < m->pitch[0] + m->pitch[1];
            int n = is_at_rim || distance > 0.0 ? 0 : FINE * FINE;
            for (int i = 0; is_at_rim && i < FINE * FINE; i++) {
                double a = (double)r + (i / FINE + 0.5) / FINE - 0.5 - m->center[0],
                       b = (double)c + (i % FINE + 0.5) / FINE - 0.5 - m->center[1];
                n += hypot(a * m->pitch[0], b * m->pitch[1]) < m->radius;
            }
            double part = (double)n / (FINE * FINE);
            double noise = (draw(&state) + draw(&state) + draw(&state)) * m->noise; /* variance 3 * 1/3 */
            mean[r * m->columns + c] = m->inside * part + m->outside * (1.0 - part) + noise;
        }
}

static ps_disc measure(const made *m, const double *mean, const uint8_t *bad) {
    ps_disc disc;
    ps_error error = {0};
    if (ps_disc_measure(mean, bad, m->rows, m->columns, m->pitch, &disc, &error) != PS_OK) fail_msg("%s", error.text);
    return disc;
}

static void assert_disc(const made *m, const ps_disc *disc, double tolerance_px) {
    double tolerance = tolerance_px * sqrt(m->pitch[0] * m->pitch[1]);
    for (int axis = 0; axis < 2; axis++)
        if (!(fabs(disc->center_px[axis] - m->center[axis]) <= tolerance_px))
            fail_msg("centre (%g, %g), expected (%g, %g)", disc->center_px[0], disc->center_px[1], m->center[0], m->center[1]);
    if (!(fabs(disc->radius - m->radius) <= tolerance)) fail_msg("radius %g, expected %g", disc->radius, m->radius);
}

static const made typical = {64, 70, {30.3, 36.8}, 15.2, {1, 1}, 10, 0.3, 0};

static void a_disc_is_found(void **state) {
    (void)state;
    static double mean[MOST];
    const made cases[] = {typical,
                          {24, 22, {11.3, 10.6}, 2.4, {1, 1}, 1e-3, 0, 0},
                          {200, 190, {90.5, 101.5}, 70.25, {1, 1}, 1e6, 2e5, 0},
                          {96, 48, {44.7, 23.1}, 30.0, {0.9, 1.6}, 3, 0.1, 0},
                          {192, 192, {100, 80}, 0.5, {0.04, 0.04}, 5, 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make(&cases[i], mean);
        ps_disc disc = measure(&cases[i], mean, NULL);
        assert_disc(&cases[i], &disc, 0.06);
        assert_false(disc.is_clipped);
        assert_true(disc.missing == 0.0);
        assert_true(fabs(disc.plateau / cases[i].inside - 1) <= 0.01);
    }
}

static void noise_and_bad_pixels_do_not_move_it(void **state) {
    (void)state;
    static double mean[MOST];
    static uint8_t bad[MOST];
    made m = typical;
    m.noise = 2;
    make(&m, mean);
    for (int i = 0; i < 12; i++) mean[(5 * i + 1) * 70 + (11 * i) % 70] = i % 2 ? 1e9 : 0; /* hot and dead, not known to be */
    memset(bad, 0, sizeof bad);
    for (int64_t c = 0; c < 70; c++)
        for (int64_t r = 31; r < 34; r++) { /* a gap between chips through the disc */
            bad[r * 70 + c] = 1;
            mean[r * 70 + c] = c % 3 ? 65535 : NAN;
        }
    ps_disc disc = measure(&m, mean, bad);
    assert_disc(&m, &disc, 0.35);
}

/* ---- gaps ---- */

typedef enum { GAP_ZERO, GAP_BAD, GAP_NAN } gap_kind;

/* Rows (or columns) [begin, end) of the pattern count nothing. */
static void cut(const made *m, double *mean, uint8_t *bad, bool rows, int64_t begin, int64_t end, gap_kind kind) {
    for (int64_t i = 0; i < m->rows * m->columns; i++) {
        int64_t at = rows ? i / m->columns : i % m->columns;
        if (at < begin || at >= end) continue;
        mean[i] = kind == GAP_NAN ? NAN : 0.0;
        bad[i] = kind == GAP_BAD;
    }
}

/* Turns means into those of Poisson counts (their normal approximation) over so many positions, whole numbers of counts each. */
static void count(const made *m, double positions, double *mean) {
    uint64_t state = 11;
    for (int64_t i = 0; i < m->rows * m->columns; i++) {
        double counts = mean[i] * positions, noise = (draw(&state) + draw(&state) + draw(&state)) * sqrt(counts);
        mean[i] = fmax(round(counts + noise), 0.0) / positions;
    }
}

/* A rim that falls over so many pixels. */
static void soften(const made *m, double width_px, double *mean) {
    for (int64_t i = 0; i < m->rows * m->columns; i++) {
        double a = (double)(i / m->columns) - m->center[0], b = (double)(i % m->columns) - m->center[1];
        double distance = hypot(a * m->pitch[0], b * m->pitch[1]) - m->radius, part = 1.0 / (1.0 + exp(4.0 * distance / width_px));
        mean[i] = m->outside + (m->inside - m->outside) * part;
    }
}

static const made gapped[] = {{64, 70, {30.3, 36.8}, 15.2, {1, 1}, 10, 0.3, 0},
                              {128, 127, {63.5, 63.5}, 33.7, {0.741, 0.741}, 10, 0, 0},
                              {96, 48, {44.7, 23.1}, 30.0, {0.9, 1.6}, 3, 0.1, 0},
                              {160, 150, {77.2, 68.4}, 50.3, {1, 1}, 200, 0.01, 0}};

static void gaps_through_the_disc_do_not_move_it(void **state) {
    (void)state;
    static double mean[MOST];
    static uint8_t bad[MOST];
    for (size_t i = 0; i < sizeof gapped / sizeof *gapped; i++)
        for (int width = i ? 2 : 1; width <= 5; width += i ? 3 : 1)
            for (int shape = 0; shape < 3; shape++) /* a row, a column, a cross */
                for (int offset = -7; offset <= 7; offset += i ? 10 : 7)
                    for (int kind = GAP_ZERO; kind <= GAP_NAN; kind++) {
                        const made *m = &gapped[i];
                        int64_t row = llround(m->center[0]) + offset, column = llround(m->center[1]) + offset;
                        make(m, mean);
                        memset(bad, 0, sizeof bad);
                        if (shape != 1) cut(m, mean, bad, true, row, row + width, kind);
                        if (shape != 0) cut(m, mean, bad, false, column, column + width, kind);
                        ps_disc disc = measure(m, mean, bad);
                        assert_disc(m, &disc, 0.1);
                        assert_false(disc.is_clipped);
                    }
}

static void gaps_and_soft_rims_and_low_doses(void **state) {
    (void)state;
    static double mean[MOST];
    static uint8_t bad[MOST];
    const double widths[] = {1.5, 3, 5}, positions[] = {3, 30, 3000};
    for (size_t i = 0; i < sizeof gapped / sizeof *gapped; i++)
        for (int w = 0; w < 3; w++)
            for (int k = 0; k < 3; k++) {
                made m = gapped[i];
                m.inside = 10;
                m.outside = 0.05;
                soften(&m, widths[w], mean);
                count(&m, positions[k], mean);
                memset(bad, 0, sizeof bad);
                cut(&m, mean, bad, true, 40, 43, GAP_ZERO);
                cut(&m, mean, bad, false, 25, 27, GAP_ZERO);
                ps_disc disc = measure(&m, mean, bad);
                assert_disc(&m, &disc, 0.25);
            }
}

/* A bar from the edge to beyond the middle, a blind quarter, blind rows, hot pixels, and all of it with the detector's edge. */
static void beam_stops_and_blind_modules(void **state) {
    (void)state;
    static double mean[MOST];
    static uint8_t bad[MOST];
    memset(bad, 0, sizeof bad);
    for (int kind = 0; kind < 6; kind++) {
        made m = {96, 100, {47.3, 49.8}, 25.2, {1, 1}, 10, 0.2, 0};
        if (kind == 4) m.center[0] = 12.3;
        make(&m, mean);
        for (int64_t r = 0; r < 96; r++)
            for (int64_t c = 0; c < 100; c++) {
                bool stop = c >= 46 && c < 52 && r < 55, round = hypot((double)r - 47.0, (double)c - 49.0) < 8;
                bool quarter = r < 46 && c < 48, half = r >= 50, edge = r == 30 || r == 31 || c == 60 || c == 61 || c == 62;
                const bool dark[] = {stop, round, quarter, half, edge, stop || quarter};
                if (dark[kind]) mean[r * 100 + c] = 0.0;
            }
        for (int i = 0; i < 8; i++) mean[(11 * i + 3) * 100 + (23 * i + 9) % 100] = 1e4;
        ps_disc disc = measure(&m, mean, bad);
        assert_disc(&m, &disc, 0.15);
        assert_int_equal(disc.is_clipped, kind == 4);
    }
}

static void a_clipped_disc_is_completed(void **state) {
    (void)state;
    static double mean[MOST];
    const made cases[] = {{64, 70, {3.4, 36.8}, 15.2, {1, 1}, 10, 0.3, 0},
                          {64, 70, {60.2, 66.1}, 20.0, {1, 1}, 10, 0.3, 0.5},
                          {40, 100, {20.5, 50.2}, 30.0, {1, 1}, 10, 0.3, 0.2},
                          {40, 60, {2.0, 30.2}, 12.0, {0.5, 0.8}, 10, 0, 0}};
    const double missing[] = {0.34, 0.63, 0.20, 0.43};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make(&cases[i], mean);
        ps_disc disc = measure(&cases[i], mean, NULL);
        assert_disc(&cases[i], &disc, 0.5);
        assert_true(disc.is_clipped);
        if (!(fabs(disc.missing - missing[i]) <= 0.02)) fail_msg("case %zu: missing %g", i, disc.missing);
    }
}

static void assert_none(const double *mean, int64_t rows, int64_t columns, const char *says) {
    const double pitch[2] = {1, 1};
    ps_disc disc;
    ps_error error = {0};
    assert_int_equal(ps_disc_measure(mean, NULL, rows, columns, pitch, &disc, &error), PS_E_INPUT);
    if (!strstr(error.text, says)) fail_msg("'%s' lacks '%s'", error.text, says);
}

static void patterns_without_a_disc_are_refused(void **state) {
    (void)state;
    static double mean[MOST];
    memset(mean, 0, sizeof mean);
    assert_none(mean, 30, 40, "no counts");
    for (int i = 0; i < 1200; i++) mean[i] = 3.0;
    assert_none(mean, 30, 40, "larger than the detector");
    for (int i = 0; i < 1200; i++) mean[i] = 500 + i % 7;
    assert_none(mean, 30, 40, "larger than the detector");
    for (int i = 0; i < 1200; i++) mean[i] = i % 40 > 17 && i % 40 < 22 ? 3.0 : 0.1; /* a stripe */
    assert_none(mean, 30, 40, "");
    for (int i = 0; i < 1200; i++) mean[i] = i / 40 > 4 && i / 40 < 8 && i % 40 > 4 && i % 40 < 35 ? 3.0 : 0.1; /* a bar */
    assert_none(mean, 30, 40, "differs from a disc");
    for (int i = 0; i < 1200; i++) mean[i] = NAN;
    assert_none(mean, 30, 40, "no counts");
    memset(mean, 0, sizeof mean);
    mean[610] = 7;
    assert_none(mean, 30, 40, "no counts");
    mean[0] = 7;
    assert_none(mean, 1, 1, "larger than the detector");
}

/* Pieces on the two sides of a gap that are not of one disc. */
static void pieces_that_make_no_circle_are_refused(void **state) {
    (void)state;
    static double mean[MOST];
    for (int i = 0; i < 80 * 80; i++) {
        int r = i / 80, c = i % 80;
        bool bright = r < 39 ? r > 20 && c > 10 && c < 30 : r > 41 && r < 60 && c > 25 && c < 70;
        mean[i] = r >= 39 && r <= 41 ? 0.0 : bright ? 10.0 : 0.1;
    }
    assert_none(mean, 80, 80, "do not make one circle");
    made m = {80, 80, {40, 40}, 22, {1, 1}, 10, 0.1, 0};
    make(&m, mean);
    for (int i = 0; i < 80 * 80; i++) /* a quarter, whose own area and centroid nearly pass for a disc; the rest is dim */
        if (i / 80 >= 40 || i % 80 >= 40) mean[i] = fmin(mean[i], 1.0);
    assert_none(mean, 80, 80, "");
}

/* A real recording, whose centre and radius were fitted with the reconstruction. */
static void a_recording_agrees_with_its_optics(void **state) {
    (void)state;
    const char *path = PS_SOURCE_DIR "/../shared/data/virus/virus_000_master.h5";
    const double pitch[2] = {0.068084, 0.068084};
    ps_pattern_sample sample;
    ps_disc disc;
    ps_error error = {0};
    if (access(path, R_OK) != 0) skip();
    if (ps_sample_pattern(path, NULL, &sample, &error) != PS_OK) fail_msg("%s", error.text);
    assert_int_equal(sample.n_positions, 16129);
    if (ps_disc_measure(sample.mean, NULL, sample.detector_rows, sample.detector_columns, pitch, &disc, &error) != PS_OK)
        fail_msg("%s", error.text);
    assert_true(fabs(disc.center_px[0] - 19.096) <= 0.15 && fabs(disc.center_px[1] - 20.609) <= 0.15);
    assert_true(fabs(disc.radius / 1.03 - 1) <= 0.015);
    assert_false(disc.is_clipped);
    ps_pattern_sample_free(&sample);
}

static void circles_are_fitted(void **state) {
    (void)state;
    double points[2 * 40], center[2], radius;
    ps_error error = {0};
    for (int i = 0; i < 40; i++) {
        double angle = 0.05 * i;
        points[2 * i] = 1000 + 7 * cos(angle);
        points[2 * i + 1] = -30 + 7 * sin(angle);
    }
    assert_int_equal(ps_circle_fit(points, 40, center, &radius, &error), PS_OK);
    assert_true(fabs(center[0] - 1000) <= 1e-8 && fabs(center[1] + 30) <= 1e-8 && fabs(radius - 7) <= 1e-8);
    points[10] += 20; /* an outlier */
    assert_int_equal(ps_circle_fit(points, 40, center, &radius, &error), PS_OK);
    if (!(fabs(center[0] - 1000) <= 1e-6 && fabs(center[1] + 30) <= 1e-6 && fabs(radius - 7) <= 1e-6))
        fail_msg("%g %g %g", center[0], center[1], radius);
    for (int i = 0; i < 40; i++) points[2 * i] = points[2 * i + 1] = i;
    assert_int_equal(ps_circle_fit(points, 40, center, &radius, &error), PS_E_INPUT);
    ps_error_clear(&error);
    assert_int_equal(ps_circle_fit(points, 3, center, &radius, &error), PS_E_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disc_is_found),
        cmocka_unit_test(noise_and_bad_pixels_do_not_move_it),
        cmocka_unit_test(gaps_through_the_disc_do_not_move_it),
        cmocka_unit_test(gaps_and_soft_rims_and_low_doses),
        cmocka_unit_test(beam_stops_and_blind_modules),
        cmocka_unit_test(a_clipped_disc_is_completed),
        cmocka_unit_test(patterns_without_a_disc_are_refused),
        cmocka_unit_test(pieces_that_make_no_circle_are_refused),
        cmocka_unit_test(a_recording_agrees_with_its_optics),
        cmocka_unit_test(circles_are_fitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
