/* Which pixels and frequencies a plan lists, by rule and against the stored cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "optics/plan.h"
#include "reference_case.h"

static ps_plan_options options_of(int64_t rows, int64_t columns, int64_t detector_rows, int64_t detector_columns) {
    return (ps_plan_options){.scan_rows = rows,
                             .scan_columns = columns,
                             .detector_rows = detector_rows,
                             .detector_columns = detector_columns,
                             .smoothness_phase_inv_A = INFINITY,
                             .smoothness_complex_inv_A = INFINITY};
}

static void build(const ps_optics *optics, const ps_plan_options *options, ps_plan *plan) {
    ps_error error = {0};
    if (ps_plan_build(optics, options, plan, &error) != PS_OK) fail_msg("%s", error.text);
}

static void assert_refused(const ps_optics *optics, const ps_plan_options *options, const char *text) {
    ps_error error = {0};
    ps_plan plan;
    assert_int_equal(ps_plan_build(optics, options, &plan, &error), PS_E_JOB);
    if (!strstr(error.text, text)) fail_msg("'%s' does not say '%s'", error.text, text);
}

/* Every frequency of the full plane is stood for exactly once, by itself or by its partner. */
static void assert_covers_plane(const ps_plan *plan) {
    const ps_system_desc *desc = &plan->desc;
    int *seen = calloc((size_t)(desc->scan_rows * desc->scan_columns), sizeof *seen);
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        const ps_frequency *frequency = &desc->frequencies[i];
        int64_t row = (desc->scan_rows - frequency->row) % desc->scan_rows;
        int64_t column = (desc->scan_columns - frequency->column) % desc->scan_columns;
        seen[frequency->row * desc->scan_columns + frequency->column]++;
        if (frequency->multiplicity == 2) seen[row * desc->scan_columns + column]++;
    }
    for (int64_t i = 0; i < desc->scan_rows * desc->scan_columns; i++) assert_int_equal(seen[i], 1);
    free(seen);
}

/* Rules of docs/physics.md section 4 for one entry's aliases. */
static void assert_entry_follows_rules(const ps_plan *plan, const ps_frequency *frequency, double limit) {
    const ps_system_desc *desc = &plan->desc;
    int64_t fine_rows = desc->scan_rows * desc->upsampling, fine_columns = desc->scan_columns * desc->upsampling, before = -1;
    bool has_nyquist = false;
    for (int64_t i = frequency->first_alias; i < frequency->first_alias + frequency->n_aliases; i++) {
        int64_t index = desc->fine_row[i] * fine_columns + desc->fine_column[i];
        assert_true(index > before);
        before = index;
        assert_int_equal(desc->fine_row[i] % desc->scan_rows, frequency->row);
        assert_int_equal(desc->fine_column[i] % desc->scan_columns, frequency->column);
        assert_true(hypot(desc->q_row[i], desc->q_column[i]) < limit);
        if (2 * desc->fine_row[i] == fine_rows) assert_true(desc->q_row[i] < 0);
        has_nyquist |= 2 * desc->fine_row[i] == fine_rows || 2 * desc->fine_column[i] == fine_columns;
    }
    bool self = (2 * frequency->row) % desc->scan_rows == 0 && (2 * frequency->column) % desc->scan_columns == 0;
    assert_int_equal(frequency->multiplicity, has_nyquist || self ? 1 : 2);
    if (frequency->multiplicity == 2) assert_true(2 * frequency->column <= desc->scan_columns);
}

static void lists_follow_rules_at_many_sizes(void **state) {
    (void)state;
    const int64_t sizes[][2] = {{1, 16}, {16, 1}, {7, 11}, {8, 6}, {12, 13}, {24, 20}, {2, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t upsampling = 1; upsampling <= 4; upsampling++) {
            ps_optics optics = reference_optics_a();
            ps_plan_options options = options_of(sizes[i][0], sizes[i][1], 40, 40);
            options.upsampling = upsampling;
            ps_plan plan;
            build(&optics, &options, &plan);
            assert_covers_plane(&plan);
            assert_int_equal(plan.desc.frequencies[0].row, 0);
            assert_int_equal(plan.desc.frequencies[0].column, 0);
            int64_t total = 0, histogram = 0;
            for (int64_t f = 0; f < plan.desc.n_frequencies; f++) {
                const ps_frequency *frequency = &plan.desc.frequencies[f];
                assert_int_equal(frequency->first_alias, total);
                total += frequency->n_aliases;
                assert_entry_follows_rules(&plan, frequency, 2e-3 * 30.95 / ps_wavelength_A(300e3));
            }
            for (int n = 0; n <= PS_MAX_ALIASES; n++) histogram += plan.alias_histogram[n];
            assert_int_equal(total, plan.desc.n_aliases);
            assert_int_equal(histogram, plan.desc.n_frequencies - 1);
            ps_plan_free(&plan);
        }
}

static void check_case(const char *name, const ps_optics *optics, int64_t upsampling, int64_t n_active) {
    hid_t file = reference_open(name);
    if (file < 0) skip();
    hsize_t shape[2], pixels[2];
    double *expected = reference_read(file, "expected/alias_count", shape);
    free(reference_read(file, "expected/aperture", pixels));
    ps_plan_options options = options_of((int64_t)shape[0], (int64_t)shape[1], (int64_t)pixels[0], (int64_t)pixels[1]);
    ps_plan plan;
    build(optics, &options, &plan);
    assert_int_equal(plan.desc.upsampling, upsampling);
    assert_int_equal(plan.desc.n_active, n_active);
    double total = 0;
    for (size_t i = 1; i < shape[0] * shape[1]; i++) total += expected[i];
    assert_true((double)plan.full_plane_aliases == total);
    for (int64_t i = 0; i < plan.desc.n_frequencies; i++) {
        const ps_frequency *frequency = &plan.desc.frequencies[i];
        assert_true(frequency->n_aliases == expected[frequency->row * plan.desc.scan_columns + frequency->column]);
    }
    ps_plan_free(&plan);
    free(expected);
    H5Fclose(file);
}

static void case_a_agrees(void **state) {
    (void)state;
    ps_optics optics = reference_optics_a();
    check_case("case_a", &optics, 3, 832);
}

static void case_b_agrees(void **state) {
    (void)state;
    ps_optics optics = reference_optics_b();
    check_case("case_b", &optics, 2, 763);
}

static void published_problem_has_its_alias_counts(void **state) {
    (void)state;
    ps_optics optics = reference_optics_s();
    ps_plan_options options = options_of(512, 512, 192, 192);
    ps_plan plan;
    build(&optics, &options, &plan);
    assert_int_equal(plan.desc.upsampling, 3);
    int64_t counts[PS_MAX_ALIASES + 1] = {0}, n = 0;
    for (int64_t i = 1; i < plan.desc.n_frequencies; i++) {
        const ps_frequency *frequency = &plan.desc.frequencies[i];
        if (frequency->multiplicity != 2 || frequency->row == 256 || frequency->column == 256) continue;
        counts[frequency->n_aliases]++;
        n++;
    }
    assert_int_equal(n, 130560);
    const double published[] = {3770, 106424, 19304, 1062};
    for (int i = 0; i < 4; i++)
        if (!(fabs((double)counts[3 + i] - published[i]) <= 0.002 * 130560))
            fail_msg("%d aliases: found %lld frequencies, published %g", 3 + i, (long long)counts[3 + i], published[i]);
    ps_plan_free(&plan);
}

static void large_alias_sets_work_and_too_large_ones_are_refused(void **state) {
    (void)state;
    ps_optics virus = {.voltage_V = 300e3,
                       .semiangle_mrad = 1.03,
                       .scan_step_A = {31.25, 31.25},
                       .detector_pitch_mrad = {0.068084, 0.068084},
                       .detector_center_px = {19.096, 20.609},
                       .rotation_deg = 119.96};
    ps_plan_options options = options_of(127, 127, 38, 40);
    ps_plan plan;
    build(&virus, &options, &plan);
    assert_int_equal(plan.desc.upsampling, 7);
    int most = 0;
    for (int n = 0; n <= PS_MAX_ALIASES; n++)
        if (plan.alias_histogram[n] > 0) most = n;
    assert_int_equal(most, 39);
    ps_plan_free(&plan);
    virus.scan_step_A[0] = virus.scan_step_A[1] = 50;
    assert_refused(&virus, &options, "upsampling 8 or less works");
    virus.scan_step_A[0] = virus.scan_step_A[1] = 31250;
    assert_refused(&virus, &options, "another unit");
}

static void bad_pixels_are_left_out(void **state) {
    (void)state;
    ps_optics optics = reference_optics_a();
    uint8_t bad[40 * 40] = {0};
    ps_plan_options options = options_of(24, 20, 40, 40);
    options.bad = bad;
    bad[0] = 1; /* outside the disc */
    bad[20 * 40 + 20] = 1;
    ps_plan plan;
    build(&optics, &options, &plan);
    assert_int_equal(plan.desc.n_active, 831);
    assert_int_equal(plan.n_left_out, 1);
    for (int64_t i = 0; i < plan.desc.n_active; i++) assert_int_not_equal(plan.desc.active[i], 20 * 40 + 20);
    ps_plan_free(&plan);
    memset(bad, 1, sizeof bad);
    assert_refused(&optics, &options, "no usable pixel");
}

static void prior_follows_smoothness(void **state) {
    (void)state;
    ps_optics optics = reference_optics_b();
    ps_plan_options options = options_of(18, 25, 36, 44);
    options.smoothness_complex_inv_A = 1.3;
    ps_plan plan;
    build(&optics, &options, &plan);
    for (int64_t i = 0; i < plan.desc.n_aliases; i++) {
        double q = hypot(plan.desc.q_row[i], plan.desc.q_column[i]), expected = pow(1 + q * q / 1.69, 2);
        assert_true(plan.desc.prior_phase[i] == 1.0);
        assert_true(fabs(plan.desc.prior_complex[i] - expected) <= 1e-12 * expected);
    }
    ps_plan_free(&plan);
}

static void dose_is_a_median_over_the_disc(void **state) {
    (void)state;
    ps_optics optics = reference_optics_a();
    ps_plan_options options = options_of(24, 20, 40, 40);
    ps_plan plan;
    build(&optics, &options, &plan);
    size_t n = (size_t)plan.desc.n_active;
    double *mean = malloc(n * sizeof *mean), *weights = malloc(n * sizeof *weights), dose;
    int64_t *marked = calloc(n, sizeof *marked), first_bright = -1;
    for (size_t i = 0; i < n; i++) {
        mean[i] = plan.is_bright[i] ? 4.0 : 0.01;
        if (plan.is_bright[i] && first_bright < 0) first_bright = (int64_t)i;
    }
    mean[first_bright] = 1e9;
    marked[first_bright] = 3;
    ps_error error = {0};
    assert_int_equal(ps_plan_dose(&plan, mean, marked, &dose, &error), PS_OK);
    assert_true(dose == 4.0);
    ps_plan_poisson_weights(&plan, mean, dose, weights);
    for (size_t i = 0; i < n; i++) assert_true(fabs(weights[i] - (plan.is_bright[i] ? 4.0 / mean[i] : 20.0)) <= 1e-12);
    for (size_t i = 0; i < n; i++) mean[i] = 0;
    assert_int_equal(ps_plan_dose(&plan, mean, NULL, &dose, &error), PS_E_INPUT);
    free(mean);
    free(weights);
    free(marked);
    ps_plan_free(&plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_follow_rules_at_many_sizes),
        cmocka_unit_test(case_a_agrees),
        cmocka_unit_test(case_b_agrees),
        cmocka_unit_test(published_problem_has_its_alias_counts),
        cmocka_unit_test(large_alias_sets_work_and_too_large_ones_are_refused),
        cmocka_unit_test(bad_pixels_are_left_out),
        cmocka_unit_test(prior_follows_smoothness),
        cmocka_unit_test(dose_is_a_median_over_the_disc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
