/* What every backend answers: kernels/backend.h, on small problems of awkward sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract/compare.h"
#include "contract/problem.h"

/* What `b` answers, to finite numbers, is what `expected_of` does. */
static void require_same_at_every_size(const contract_backend *b, const contract_backend *expected_of, unsigned seed, bool exact) {
    for (int i = 0; i < PROBLEM_SIZES; i++) {
        problem p;
        problem_answer found, expected;
        problem_create(&problem_sizes[i], seed, &p);
        problem_answer_of(b, &p, NULL, &found);
        problem_answer_of(expected_of, &p, NULL, &expected);
        for (int64_t k = 0; k < found.n; k++) assert_true(isfinite(found.values[k]));
        problem_require_same(b, problem_sizes[i].name, &found, &expected, exact);
        problem_answer_free(&found);
        problem_answer_free(&expected);
        problem_free(&p);
    }
}

static void answers_are_finite_and_repeatable_at_every_size(void **state) {
    require_same_at_every_size(*state, *state, 1, true);
}

/* The reference against what is under test: sizes and strengths the stored cases do not have. */
static void answers_agree_with_the_reference(void **state) {
    const contract_backend *b = *state;
    contract_backend reference = {&ps_backend_cpu_reference, b->tolerance};
    require_same_at_every_size(b, &reference, 2, false);
}

static void invalid_values_count_as_nothing_and_are_reported(void **state) {
    trial t;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 9, &t);
    int64_t active = t.p.plan.desc.n_active, marked_pixel = active / 2;
    double *mean = malloc((size_t)active * sizeof *mean), sum = 0.0;
    int64_t *n_marked = malloc((size_t)active * sizeof *n_marked);
    for (int64_t i = 0; i < t.p.n_positions; i++) {
        uint16_t *count = &t.p.counts[i * t.p.n_pixels + t.p.plan.desc.active[marked_pixel]];
        if (i % 5 == 0)
            *count = UINT16_MAX;
        else
            sum += *count;
    }
    ps_frame *frame = problem_frame(&t.run, PS_U16, t.p.counts);
    REQUIRE_OK(ps_frame_mean_counts(frame, mean, n_marked, &error));
    REQUIRE_OK(ps_frame_mean_counts(frame, NULL, NULL, &error));
    for (int64_t i = 0; i < active; i++) assert_int_equal(n_marked[i], i == marked_pixel ? (t.p.n_positions + 4) / 5 : 0);
    sum /= (double)t.p.n_positions;
    require_within(t.b->ops->name, "markers", "mean", relative_difference(1, &mean[marked_pixel], &sum), 1e-12);
    ps_frame_destroy(frame);
    free(mean);
    free(n_marked);
    trial_end(&t);
}

/* Counts of one cosine over the scan: g is half its amplitude over the dose at that frequency, and 0 elsewhere. */
static void spectrum_of_a_cosine_is_known(void **state) {
    const int64_t row = 2, column = 3;
    trial t;
    trial_begin(state, &(problem_size){"cosine", 8, 11, 12, 12, 2}, 10, &t);
    const ps_system_desc *desc = &t.p.plan.desc;
    double *counts = malloc((size_t)(t.p.n_positions * t.p.n_pixels) * sizeof *counts), dose = 50.0;
    double *found = malloc((size_t)desc->n_active * 2 * sizeof *found), *expected = malloc((size_t)desc->n_active * 2 * sizeof *expected);
    for (int64_t i = 0; i < t.p.n_positions; i++)
        for (int64_t k = 0; k < t.p.n_pixels; k++) {
            double angle = 2 * M_PI * ((double)(i / 11 * row) / 8 + (double)(i % 11 * column) / 11);
            counts[i * t.p.n_pixels + k] = 50.0 + 10.0 * cos(angle + 0.1 * (double)k);
        }
    ps_frame *frame = problem_frame(&t.run, PS_F64, counts);
    for (int64_t f = 0; f < desc->n_frequencies; f++) {
        bool is_there = desc->frequencies[f].row == row && desc->frequencies[f].column == column;
        REQUIRE_OK(ps_frame_get_spectrum(frame, f, dose, found, &error));
        for (int64_t i = 0; i < desc->n_active; i++) {
            double size = f == 0 ? 1.0 : is_there ? 0.1 : 0.0, angle = is_there ? 0.1 * desc->active[i] : 0.0;
            expected[2 * i] = size * cos(angle);
            expected[2 * i + 1] = size * sin(angle);
        }
        require_within(t.b->ops->name, "cosine", "g", relative_difference_complex(desc->n_active, found, expected),
                       t.b->tolerance.right_side);
    }
    ps_frame_destroy(frame);
    free(counts);
    free(found);
    free(expected);
    trial_end(&t);
}

static void counts_without_contrast_give_flat_images(void **state) {
    trial t;
    /* with upsampling, aliases of the zero frequency show in an SSB image of nothing */
    trial_begin(state, &problem_sizes[PROBLEM_NO_UPSAMPLING], 11, &t);
    int64_t fine = problem_fine(&t.p);
    double *image = malloc((size_t)fine * sizeof *image), dose = 7.0, residual, loss;
    for (int level = 0; level <= 1; level++) { /* none at all, and the same everywhere */
        for (int64_t i = 0; i < t.p.n_positions * t.p.n_pixels; i++) t.p.counts[i] = (uint16_t)(7 * level);
        ps_frame *frame = problem_frame(&t.run, PS_U16, t.p.counts);
        REQUIRE_OK(ps_frame_reduce(&frame, 1, &dose, &error));
        for (ps_methods method = PS_METHOD_PHASE; method <= PS_METHOD_COMPLEX; method <<= 1) {
            ps_solution solution = {.phase_f64 = image, .residual = &residual};
            REQUIRE_OK(ps_system_solve(frame, method, 1, problem_strengths, &solution, &error));
            for (int64_t i = 0; i < fine; i++) assert_true(fabs(image[i]) <= 1e-9);
            assert_true(fabs(residual) <= 1e-9);
        }
        REQUIRE_OK(ps_frame_ssb(frame, PS_SSB_PHASE, NULL, image, &loss, &error));
        for (int64_t i = 0; i < fine; i++) assert_true(fabs(image[i]) <= 1e-9);
        assert_true(fabs(loss) <= 1e-9);
        ps_frame_destroy(frame);
    }
    free(image);
    trial_end(&t);
}

/* Equal weights w scale N and its scales by w and leave every image as it was; the same dose twice halves g. */
static void weights_and_dose_scale_as_they_should(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run plain, weighted;
    problem_create(&problem_sizes[PROBLEM_USUAL], 13, &p);
    int64_t active = p.plan.desc.n_active, n = p.plan.desc.frequencies[5].n_aliases;
    double *weights = malloc((size_t)active * sizeof *weights), scales[2], found[2 * PS_MAX_ALIASES], expected[2 * PS_MAX_ALIASES];
    for (int64_t i = 0; i < active; i++) weights[i] = 4.0;
    problem_open(b, &p, NULL, NULL, &plain);
    problem_open(b, &p, NULL, weights, &weighted);
    REQUIRE_OK(ps_system_scales(plain.system, PS_METHOD_COMPLEX, NULL, &scales[0], &error));
    REQUIRE_OK(ps_system_scales(weighted.system, PS_METHOD_COMPLEX, NULL, &scales[1], &error));
    scales[0] *= 4.0;
    require_within(b->ops->name, "weights", "scale", relative_difference(1, &scales[1], &scales[0]), b->tolerance.normal);
    ps_frame *frames[2] = {problem_frame(&plain, PS_U16, p.counts), problem_frame(&weighted, PS_U16, p.counts)};
    double dose[2] = {40.0, 80.0};
    for (int i = 0; i < 2; i++) REQUIRE_OK(ps_frame_reduce(&frames[i], 1, &dose[i], &error));
    REQUIRE_OK(ps_frame_get_right_side(frames[0], PS_METHOD_PHASE, 5, expected, NULL, &error));
    REQUIRE_OK(ps_frame_get_right_side(frames[1], PS_METHOD_PHASE, 5, found, NULL, &error));
    for (int64_t i = 0; i < 2 * n; i++) expected[i] *= 4.0 / 2.0;
    require_within(b->ops->name, "weights", "b", relative_difference_complex(n, found, expected), b->tolerance.right_side);
    for (int i = 0; i < 2; i++) ps_frame_destroy(frames[i]);
    free(weights);
    problem_close(&plain);
    problem_close(&weighted);
    problem_free(&p);
}

/* Eigenvalues are those of prior^-1/2 N prior^-1/2: their sum is its trace, and their squares' its Frobenius norm. */
static void eigenvalues_belong_to_the_normal_matrix(void **state) {
    trial t;
    double normal[2 * PS_MAX_ALIASES * PS_MAX_ALIASES], eigenvalues[PS_MAX_ALIASES];
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 14, &t);
    for (int64_t f = 1; f < t.p.plan.desc.n_frequencies; f++) {
        int64_t n = t.p.plan.desc.frequencies[f].n_aliases;
        double sums[2] = {0}, expected[2] = {0};
        REQUIRE_OK(ps_system_get_normal(t.run.system, PS_METHOD_PHASE, f, normal, &error));
        REQUIRE_OK(ps_system_get_eigenvalues(t.run.system, f, eigenvalues, &error));
        for (int64_t i = 0; i < n; i++) {
            if (i > 0) assert_true(eigenvalues[i] >= eigenvalues[i - 1]);
            sums[0] += eigenvalues[i];
            sums[1] += eigenvalues[i] * eigenvalues[i];
            expected[0] += normal[2 * i * (n + 1)];
        }
        for (int64_t i = 0; i < 2 * n * n; i++) expected[1] += normal[i] * normal[i];
        for (int i = 0; i < 2; i++)
            require_within(t.b->ops->name, "eigenvalues", "sums", relative_difference(1, &sums[i], &expected[i]),
                           t.b->tolerance.eigenvalues);
    }
    trial_end(&t);
}

static void a_system_without_regularised_methods_needs_no_preparation(void **state) {
    const contract_backend *b = *state;
    problem p;
    ps_backend *backend;
    ps_system *system;
    ps_frame *frame;
    ps_error refusal = {0};
    problem_create(&problem_sizes[PROBLEM_USUAL], 15, &p);
    REQUIRE_OK(ps_backend_open(b->ops, &(ps_backend_options){0}, &backend, &error));
    REQUIRE_OK(ps_system_create(backend, &p.plan.desc, PS_METHOD_SSB, &system, &error));
    REQUIRE_OK(ps_frame_create(system, PS_U16, &frame, &error));
    REQUIRE_OK(ps_frame_upload(frame, 0, p.n_positions, p.counts, &error));
    double dose = 40.0, *image = malloc(7 * 11 * 9 * sizeof *image);
    REQUIRE_OK(ps_frame_reduce(&frame, 1, &dose, &error));
    REQUIRE_OK(ps_frame_ssb(frame, PS_SSB_WAVE, NULL, image, NULL, &error));
    ps_solution solution = {.phase_f64 = image};
    assert_int_equal(ps_system_solve(frame, PS_METHOD_PHASE, 1, problem_strengths, &solution, &refusal), PS_E_ARGUMENT);
    assert_non_null(strstr(refusal.text, "phase"));
    free(image);
    ps_frame_destroy(frame);
    ps_system_destroy(system);
    ps_backend_close(backend);
    problem_free(&p);
}

static void counts_that_are_not_finite_are_marked(void **state) {
    trial t;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 17, &t);
    int64_t active = t.p.plan.desc.n_active;
    float *counts = malloc((size_t)(t.p.n_positions * t.p.n_pixels) * sizeof *counts);
    double *mean = malloc((size_t)active * sizeof *mean);
    int64_t *n_marked = malloc((size_t)active * sizeof *n_marked);
    for (int64_t i = 0; i < t.p.n_positions * t.p.n_pixels; i++) counts[i] = 3.0f;
    counts[5 * t.p.n_pixels + t.p.plan.desc.active[3]] = NAN;
    counts[6 * t.p.n_pixels + t.p.plan.desc.active[3]] = -INFINITY;
    ps_frame *frame = problem_frame(&t.run, PS_F32, counts);
    REQUIRE_OK(ps_frame_mean_counts(frame, mean, n_marked, &error));
    for (int64_t i = 0; i < active; i++) {
        assert_int_equal(n_marked[i], i == 3 ? 2 : 0);
        assert_true(fabs(mean[i] - (i == 3 ? 3.0 * 75 / 77 : 3.0)) <= 1e-12);
    }
    free(mean);
    free(counts);
    free(n_marked);
    ps_frame_destroy(frame);
    trial_end(&t);
}

static void a_device_says_what_it_is(void **state) {
    const contract_backend *b = *state;
    ps_backend *backend;
    ps_device_info info;
    REQUIRE_OK(ps_backend_open(b->ops, &(ps_backend_options){0}, &backend, &error));
    ps_backend_info(backend, &info);
    assert_true(info.name[0] && info.precision[0] && info.versions[0]);
    assert_true(info.memory_bytes > 0 && info.n_threads > 0);
    ps_backend_close(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_finite_and_repeatable_at_every_size),
        cmocka_unit_test(answers_agree_with_the_reference),
        cmocka_unit_test(invalid_values_count_as_nothing_and_are_reported),
        cmocka_unit_test(spectrum_of_a_cosine_is_known),
        cmocka_unit_test(counts_without_contrast_give_flat_images),
        cmocka_unit_test(weights_and_dose_scale_as_they_should),
        cmocka_unit_test(eigenvalues_belong_to_the_normal_matrix),
        cmocka_unit_test(a_system_without_regularised_methods_needs_no_preparation),
        cmocka_unit_test(counts_that_are_not_finite_are_marked),
        cmocka_unit_test(a_device_says_what_it_is),
    };
    return contract_run(tests, sizeof tests / sizeof tests[0]) != 0;
}
