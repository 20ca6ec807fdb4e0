/* What every backend answers, refuses and leaves behind: kernels/backend.h, on small problems of awkward sizes. */
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

static void answers_are_finite_and_repeatable_at_every_size(void **state) {
    const contract_backend *b = *state;
    for (int i = 0; i < PROBLEM_SIZES; i++) {
        problem p;
        problem_answer first, second;
        problem_create(&problem_sizes[i], 1, &p);
        problem_answer_of(b, &p, NULL, &first);
        problem_answer_of(b, &p, NULL, &second);
        for (int64_t k = 0; k < first.n; k++) assert_true(isfinite(first.values[k]));
        problem_require_same(b, problem_sizes[i].name, &second, &first, true);
        problem_answer_free(&first);
        problem_answer_free(&second);
        problem_free(&p);
    }
}

/* The reference against what is under test: sizes and strengths the stored cases do not have. */
static void answers_agree_with_the_reference(void **state) {
    const contract_backend *b = *state;
    contract_backend reference = {&ps_backend_cpu_reference, b->tolerance};
    for (int i = 0; i < PROBLEM_SIZES; i++) {
        problem p;
        problem_answer found, expected;
        problem_create(&problem_sizes[i], 2, &p);
        problem_answer_of(b, &p, NULL, &found);
        problem_answer_of(&reference, &p, NULL, &expected);
        problem_require_same(b, problem_sizes[i].name, &found, &expected, false);
        problem_answer_free(&found);
        problem_answer_free(&expected);
        problem_free(&p);
    }
}

static void markers_count_as_nothing_and_are_reported(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    problem_create(&problem_sizes[PROBLEM_USUAL], 9, &p);
    problem_open(b, &p, NULL, NULL, &run);
    int64_t active = p.plan.desc.n_active, marked_pixel = active / 2;
    double *mean = malloc((size_t)active * sizeof *mean), sum = 0.0;
    int64_t *n_marked = malloc((size_t)active * sizeof *n_marked);
    for (int64_t i = 0; i < p.n_positions; i++) {
        uint16_t *count = &p.counts[i * p.n_pixels + p.plan.desc.active[marked_pixel]];
        if (i % 5 == 0)
            *count = UINT16_MAX;
        else
            sum += *count;
    }
    ps_frame *frame = problem_frame(&run, PS_U16, p.counts);
    REQUIRE_OK(b->ops->frame_means(frame, mean, n_marked, &error));
    REQUIRE_OK(b->ops->frame_means(frame, NULL, NULL, &error));
    for (int64_t i = 0; i < active; i++) assert_int_equal(n_marked[i], i == marked_pixel ? (p.n_positions + 4) / 5 : 0);
    sum /= (double)p.n_positions;
    require_within(b->ops->name, "markers", "mean", relative_difference(1, &mean[marked_pixel], &sum), 1e-12);
    b->ops->frame_destroy(frame);
    free(mean);
    free(n_marked);
    problem_close(&run);
    problem_free(&p);
}

/* Counts of one cosine over the scan: g is half its amplitude over the dose at that frequency, and 0 elsewhere. */
static void spectrum_of_a_cosine_is_known(void **state) {
    const contract_backend *b = *state;
    const int64_t row = 2, column = 3;
    problem p;
    problem_run run;
    problem_create(&(problem_size){"cosine", 8, 11, 12, 12, 2}, 10, &p);
    problem_open(b, &p, NULL, NULL, &run);
    const ps_system_desc *desc = &p.plan.desc;
    double *counts = malloc((size_t)(p.n_positions * p.n_pixels) * sizeof *counts), dose = 50.0;
    double *found = malloc((size_t)desc->n_active * 2 * sizeof *found), *expected = malloc((size_t)desc->n_active * 2 * sizeof *expected);
    for (int64_t i = 0; i < p.n_positions; i++)
        for (int64_t k = 0; k < p.n_pixels; k++) {
            double angle = 2 * M_PI * ((double)(i / 11 * row) / 8 + (double)(i % 11 * column) / 11);
            counts[i * p.n_pixels + k] = 50.0 + 10.0 * cos(angle + 0.1 * (double)k);
        }
    ps_frame *frame = problem_frame(&run, PS_F64, counts);
    for (int64_t f = 0; f < desc->n_frequencies; f++) {
        bool is_there = desc->frequencies[f].row == row && desc->frequencies[f].column == column;
        REQUIRE_OK(b->ops->get_spectrum(frame, f, dose, found, &error));
        for (int64_t i = 0; i < desc->n_active; i++) {
            double size = f == 0 ? 1.0 : is_there ? 0.1 : 0.0, angle = is_there ? 0.1 * desc->active[i] : 0.0;
            expected[2 * i] = size * cos(angle);
            expected[2 * i + 1] = size * sin(angle);
        }
        require_within(b->ops->name, "cosine", "g", relative_difference_complex(desc->n_active, found, expected), b->tolerance.right_side);
    }
    b->ops->frame_destroy(frame);
    free(counts);
    free(found);
    free(expected);
    problem_close(&run);
    problem_free(&p);
}

static void counts_without_contrast_give_flat_images(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    problem_create(&problem_sizes[PROBLEM_NO_UPSAMPLING], 11,
                   &p); /* above 1, aliases of the zero frequency show in an SSB image of nothing */
    problem_open(b, &p, NULL, NULL, &run);
    const ps_system_desc *desc = &p.plan.desc;
    int64_t fine = desc->scan_rows * desc->scan_columns * desc->upsampling * desc->upsampling;
    double *image = malloc((size_t)fine * sizeof *image), dose = 7.0, residual, loss;
    for (int level = 0; level <= 1; level++) { /* none at all, and the same everywhere */
        for (int64_t i = 0; i < p.n_positions * p.n_pixels; i++) p.counts[i] = (uint16_t)(7 * level);
        ps_frame *frame = problem_frame(&run, PS_U16, p.counts);
        REQUIRE_OK(b->ops->frame_reduce(&frame, 1, &dose, &error));
        for (ps_methods method = PS_METHOD_PHASE; method <= PS_METHOD_COMPLEX; method <<= 1) {
            ps_solution solution = {.phase_f64 = image, .residual = &residual};
            REQUIRE_OK(b->ops->solve(frame, method, 1, problem_strengths, &solution, &error));
            for (int64_t i = 0; i < fine; i++) assert_true(fabs(image[i]) <= 1e-9);
            assert_true(fabs(residual) <= 1e-9);
        }
        REQUIRE_OK(b->ops->ssb(frame, PS_SSB_PHASE, NULL, image, &loss, &error));
        for (int64_t i = 0; i < fine; i++) assert_true(fabs(image[i]) <= 1e-9);
        assert_true(fabs(loss) <= 1e-9);
        b->ops->frame_destroy(frame);
    }
    free(image);
    problem_close(&run);
    problem_free(&p);
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
    REQUIRE_OK(b->ops->system_scales(plain.system, PS_METHOD_COMPLEX, NULL, &scales[0], &error));
    REQUIRE_OK(b->ops->system_scales(weighted.system, PS_METHOD_COMPLEX, NULL, &scales[1], &error));
    scales[0] *= 4.0;
    require_within(b->ops->name, "weights", "scale", relative_difference(1, &scales[1], &scales[0]), b->tolerance.normal);
    ps_frame *frames[2] = {problem_frame(&plain, PS_U16, p.counts), problem_frame(&weighted, PS_U16, p.counts)};
    double dose[2] = {40.0, 80.0};
    for (int i = 0; i < 2; i++) REQUIRE_OK(b->ops->frame_reduce(&frames[i], 1, &dose[i], &error));
    REQUIRE_OK(b->ops->get_right_side(frames[0], PS_METHOD_PHASE, 5, expected, NULL, &error));
    REQUIRE_OK(b->ops->get_right_side(frames[1], PS_METHOD_PHASE, 5, found, NULL, &error));
    for (int64_t i = 0; i < 2 * n; i++) expected[i] *= 4.0 / 2.0;
    require_within(b->ops->name, "weights", "b", relative_difference_complex(n, found, expected), b->tolerance.right_side);
    for (int i = 0; i < 2; i++) b->ops->frame_destroy(frames[i]);
    free(weights);
    problem_close(&plain);
    problem_close(&weighted);
    problem_free(&p);
}

/* Eigenvalues are those of prior^-1/2 N prior^-1/2: their sum is its trace, and their squares' its Frobenius norm. */
static void eigenvalues_belong_to_the_normal_matrix(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    double normal[2 * PS_MAX_ALIASES * PS_MAX_ALIASES], eigenvalues[PS_MAX_ALIASES];
    problem_create(&problem_sizes[PROBLEM_USUAL], 14, &p);
    problem_open(b, &p, NULL, NULL, &run);
    for (int64_t f = 1; f < p.plan.desc.n_frequencies; f++) {
        int64_t n = p.plan.desc.frequencies[f].n_aliases;
        double sums[2] = {0}, expected[2] = {0};
        REQUIRE_OK(b->ops->get_normal(run.system, PS_METHOD_PHASE, f, normal, &error));
        REQUIRE_OK(b->ops->get_eigenvalues(run.system, f, eigenvalues, &error));
        for (int64_t i = 0; i < n; i++) {
            if (i > 0) assert_true(eigenvalues[i] >= eigenvalues[i - 1]);
            sums[0] += eigenvalues[i];
            sums[1] += eigenvalues[i] * eigenvalues[i];
            expected[0] += normal[2 * i * (n + 1)];
        }
        for (int64_t i = 0; i < 2 * n * n; i++) expected[1] += normal[i] * normal[i];
        for (int i = 0; i < 2; i++)
            require_within(b->ops->name, "eigenvalues", "sums", relative_difference(1, &sums[i], &expected[i]), b->tolerance.eigenvalues);
    }
    problem_close(&run);
    problem_free(&p);
}

static void a_system_without_regularised_methods_needs_no_preparation(void **state) {
    const contract_backend *b = *state;
    problem p;
    ps_backend *backend;
    ps_system *system;
    ps_frame *frame;
    ps_error refusal = {0};
    problem_create(&problem_sizes[PROBLEM_USUAL], 15, &p);
    REQUIRE_OK(b->ops->open(&(ps_backend_options){0}, &backend, &error));
    REQUIRE_OK(b->ops->system_create(backend, &p.plan.desc, PS_METHOD_SSB, &system, &error));
    REQUIRE_OK(b->ops->frame_create(system, PS_U16, &frame, &error));
    REQUIRE_OK(b->ops->frame_put(frame, 0, p.n_positions, p.counts, &error));
    double dose = 40.0, *image = malloc(7 * 11 * 9 * sizeof *image);
    REQUIRE_OK(b->ops->frame_reduce(&frame, 1, &dose, &error));
    REQUIRE_OK(b->ops->ssb(frame, PS_SSB_WAVE, NULL, image, NULL, &error));
    ps_solution solution = {.phase_f64 = image};
    assert_int_equal(b->ops->solve(frame, PS_METHOD_PHASE, 1, problem_strengths, &solution, &refusal), PS_E_ARGUMENT);
    assert_non_null(strstr(refusal.text, "phase"));
    free(image);
    b->ops->frame_destroy(frame);
    b->ops->system_destroy(system);
    b->ops->close(backend);
    problem_free(&p);
}

static void misuse_is_refused_with_its_reason(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    ps_error e = {0};
    ps_frame *frame;
    double dose = 40.0, nothing = 0.0, image[7 * 11 * 9], *weights;
    ps_solution solution = {.phase_f64 = image};
    problem_create(&problem_sizes[PROBLEM_USUAL], 16, &p);
    problem_open(b, &p, NULL, NULL, &run);
    weights = calloc((size_t)p.plan.desc.n_active, sizeof *weights);
    REQUIRE_OK(b->ops->frame_create(run.system, PS_U16, &frame, &error));
    problem_require_refused(b->ops->frame_put(frame, 70, 8, p.counts, &e), &e, PS_E_ARGUMENT, "77");
    problem_require_refused(b->ops->frame_put(frame, -1, 2, p.counts, &e), &e, PS_E_ARGUMENT, "-1");
    REQUIRE_OK(b->ops->frame_put(frame, 0, 70, p.counts, &error));
    problem_require_refused(b->ops->frame_put(frame, 69, 2, p.counts, &e), &e, PS_E_ARGUMENT, "twice");
    problem_require_refused(b->ops->frame_reduce(&frame, 1, &dose, &e), &e, PS_E_ARGUMENT, "70 of 77");
    REQUIRE_OK(b->ops->frame_put(frame, 70, 7, p.counts, &error));
    problem_require_refused(b->ops->solve(frame, PS_METHOD_PHASE, 1, problem_strengths, &solution, &e), &e, PS_E_ARGUMENT, "reduced");
    problem_require_refused(b->ops->frame_reduce(&frame, 1, &nothing, &e), &e, PS_E_ARGUMENT, "dose");
    REQUIRE_OK(b->ops->frame_reduce(&frame, 1, &dose, &error));
    problem_require_refused(b->ops->solve(frame, PS_METHOD_SSB, 1, problem_strengths, &solution, &e), &e, PS_E_ARGUMENT, "method");
    problem_require_refused(b->ops->solve(frame, PS_METHOD_PHASE, 1, &(ps_strength){1.0, 0.0}, &solution, &e), &e, PS_E_ARGUMENT,
                            "strength");
    problem_require_refused(b->ops->solve(frame, PS_METHOD_COMPLEX, 1, &(ps_strength){NAN, 1.0}, &solution, &e), &e, PS_E_ARGUMENT,
                            "strength");
    problem_require_refused(b->ops->system_set_weights(run.system, weights, &e), &e, PS_E_ARGUMENT, "weight");
    problem_require_refused(b->ops->get_eigenvalues(run.system, p.plan.desc.n_frequencies, image, &e), &e, PS_E_ARGUMENT, "frequency");
    free(weights);
    b->ops->frame_destroy(frame);
    problem_close(&run);
    problem_free(&p);
}

static void counts_that_are_not_finite_are_marked(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    problem_create(&problem_sizes[PROBLEM_USUAL], 17, &p);
    problem_open(b, &p, NULL, NULL, &run);
    int64_t active = p.plan.desc.n_active;
    float *counts = malloc((size_t)(p.n_positions * p.n_pixels) * sizeof *counts);
    double *mean = malloc((size_t)active * sizeof *mean);
    int64_t *n_marked = malloc((size_t)active * sizeof *n_marked);
    for (int64_t i = 0; i < p.n_positions * p.n_pixels; i++) counts[i] = 3.0f;
    counts[5 * p.n_pixels + p.plan.desc.active[3]] = NAN;
    counts[6 * p.n_pixels + p.plan.desc.active[3]] = -INFINITY;
    ps_frame *frame = problem_frame(&run, PS_F32, counts);
    REQUIRE_OK(b->ops->frame_means(frame, mean, n_marked, &error));
    for (int64_t i = 0; i < active; i++) {
        assert_int_equal(n_marked[i], i == 3 ? 2 : 0);
        assert_true(fabs(mean[i] - (i == 3 ? 3.0 * 75 / 77 : 3.0)) <= 1e-12);
    }
    free(mean);
    free(counts);
    free(n_marked);
    b->ops->frame_destroy(frame);
    problem_close(&run);
    problem_free(&p);
}

static void a_device_says_what_it_is(void **state) {
    const contract_backend *b = *state;
    ps_backend *backend;
    ps_device_info info;
    REQUIRE_OK(b->ops->open(&(ps_backend_options){0}, &backend, &error));
    b->ops->device_info(backend, &info);
    assert_true(info.name[0] && info.precision[0] && info.versions[0]);
    assert_true(info.memory_bytes > 0 && info.n_threads > 0);
    b->ops->close(backend);
}

static int test_backend(const contract_backend *b) {
#define LAW(test) cmocka_unit_test_prestate(test, (void *)b)
    const struct CMUnitTest tests[] = {
        LAW(answers_are_finite_and_repeatable_at_every_size),
        LAW(answers_agree_with_the_reference),
        LAW(markers_count_as_nothing_and_are_reported),
        LAW(spectrum_of_a_cosine_is_known),
        LAW(counts_without_contrast_give_flat_images),
        LAW(weights_and_dose_scale_as_they_should),
        LAW(eigenvalues_belong_to_the_normal_matrix),
        LAW(a_system_without_regularised_methods_needs_no_preparation),
        LAW(misuse_is_refused_with_its_reason),
        LAW(counts_that_are_not_finite_are_marked),
        LAW(a_device_says_what_it_is),
    };
    return cmocka_run_group_tests_name(b->ops->name, tests, NULL, NULL);
}

int main(void) {
    const contract_backend *backends;
    int n = contract_backends(&backends), failed = 0;
    for (int i = 0; i < n; i++) failed += test_backend(&backends[i]);
    return failed != 0;
}
