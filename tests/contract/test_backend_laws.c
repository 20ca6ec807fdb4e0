/* Laws of kernels/backend.h that hold for every backend, on small problems of awkward sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "contract/compare.h"
#include "contract/problem.h"
#include "kernels/cpu/memory.h"

static const problem_size sizes[] = {
    {"even scan", 8, 6, 14, 15, 2},   {"prime scan", 7, 11, 13, 12, 3},     {"one row", 1, 12, 12, 13, 2},
    {"one column", 9, 1, 12, 12, 2},  {"no upsampling", 12, 10, 12, 12, 1}, {"two positions", 1, 2, 9, 9, 3},
    {"many pixels", 4, 5, 41, 43, 2}, {"few pixels", 6, 5, 4, 5, 2},
};
enum { N_SIZES = sizeof sizes / sizeof sizes[0], USUAL = 1, NO_UPSAMPLING = 4, MANY_PIXELS = 6 };

static void assert_refused(ps_code found, ps_error *error, ps_code code, const char *text) {
    assert_int_equal(found, code);
    if (!strstr(error->text, text)) fail_msg("'%s' does not say '%s'", error->text, text);
    ps_error_clear(error);
}

/* The same bits, or within tolerance where a backend promises no more. */
static void require_same(const contract_backend *b, const char *where, const problem_answer *found, const problem_answer *expected,
                         bool exact) {
    assert_int_equal(found->n, expected->n);
    double difference = relative_difference(found->n, found->values, expected->values);
    require_within(b->ops->name, where, "the answer", difference, exact ? 0.0 : b->tolerance.images);
}

static void answers_are_finite_and_repeatable_at_every_size(void **state) {
    const contract_backend *b = *state;
    for (int i = 0; i < N_SIZES; i++) {
        problem p;
        problem_answer first, second;
        problem_create(&sizes[i], 1, &p);
        problem_answer_of(b, &p, NULL, &first);
        problem_answer_of(b, &p, NULL, &second);
        for (int64_t k = 0; k < first.n; k++) assert_true(isfinite(first.values[k]));
        require_same(b, sizes[i].name, &second, &first, true);
        problem_answer_free(&first);
        problem_answer_free(&second);
        problem_free(&p);
    }
}

/* The reference against what is under test: sizes and strengths the stored cases do not have. */
static void answers_agree_with_the_reference(void **state) {
    const contract_backend *b = *state;
    contract_backend reference = {&ps_backend_cpu_reference, b->tolerance};
    for (int i = 0; i < N_SIZES; i++) {
        problem p;
        problem_answer found, expected;
        problem_create(&sizes[i], 2, &p);
        problem_answer_of(b, &p, NULL, &found);
        problem_answer_of(&reference, &p, NULL, &expected);
        require_same(b, sizes[i].name, &found, &expected, false);
        problem_answer_free(&found);
        problem_answer_free(&expected);
        problem_free(&p);
    }
}

static void order_of_puts_does_not_matter(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    problem_answer expected, found;
    problem_create(&sizes[USUAL], 3, &p);
    problem_answer_of(b, &p, NULL, &expected);
    problem_open(b, &p, NULL, NULL, &run);
    ps_frame *frame;
    REQUIRE_OK(b->ops->frame_create(run.system, PS_U16, &frame, &error));
    static const int64_t chunks[][2] = {{40, 37}, {0, 3}, {11, 29}, {3, 8}, {77, 0}};
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++)
        REQUIRE_OK(b->ops->frame_put(frame, chunks[i][0], chunks[i][1], p.counts + chunks[i][0] * p.n_pixels, &error));
    double dose = problem_dose(&run, frame);
    REQUIRE_OK(b->ops->frame_reduce(&frame, 1, &dose, &error));
    problem_ask(&run, frame, &found);
    require_same(b, "puts", &found, &expected, true);
    problem_answer_free(&expected);
    problem_answer_free(&found);
    b->ops->frame_destroy(frame);
    problem_close(&run);
    problem_free(&p);
}

static void frames_do_not_depend_on_their_batch(void **state) {
    enum { BATCH = 3 };
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    problem_create(&sizes[MANY_PIXELS], 4, &p);
    problem_open(b, &p, NULL, NULL, &run);
    ps_frame *frames[BATCH];
    problem_answer alone[BATCH], together;
    double dose[BATCH];
    for (int i = 0; i < BATCH; i++) {
        problem_counts(&p, 10u + (unsigned)i, p.counts);
        frames[i] = problem_frame(&run, PS_U16, p.counts);
        dose[i] = problem_dose(&run, frames[i]);
        REQUIRE_OK(b->ops->frame_reduce(&frames[i], 1, &dose[i], &error));
        problem_ask(&run, frames[i], &alone[i]);
    }
    REQUIRE_OK(b->ops->frame_reduce(frames, BATCH, dose, &error));
    for (int i = 0; i < BATCH; i++) {
        problem_ask(&run, frames[i], &together);
        require_same(b, "batch", &together, &alone[i], true);
        problem_answer_free(&together);
        problem_answer_free(&alone[i]);
        b->ops->frame_destroy(frames[i]);
    }
    problem_close(&run);
    problem_free(&p);
}

static void threads_do_not_change_a_bit(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_answer one, several;
    problem_create(&sizes[MANY_PIXELS], 5, &p);
    int before = omp_get_max_threads();
    omp_set_num_threads(5);
    problem_answer_of(b, &p, &(ps_backend_options){.n_threads = 1}, &one);
    for (int n = 2; n <= 5; n++) {
        problem_answer_of(b, &p, &(ps_backend_options){.n_threads = n}, &several);
        require_same(b, "threads", &several, &one, true);
        problem_answer_free(&several);
    }
    omp_set_num_threads(before);
    problem_answer_free(&one);
    problem_free(&p);
}

static void a_tight_budget_is_kept_and_changes_nothing(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_answer free_answer, tight_answer;
    ps_memory_plan roomy, tight;
    ps_error e = {0};
    problem_create(&sizes[MANY_PIXELS], 6, &p);
    problem_answer_of(b, &p, NULL, &free_answer);
    const ps_system_desc *desc = &p.plan.desc;
    REQUIRE_OK(b->ops->memory_plan(desc, PROBLEM_ALL, PS_U16, 0, 1, &roomy, &error));
    assert_refused(b->ops->memory_plan(desc, PROBLEM_ALL, PS_U16, 1000, 1, &tight, &e), &e, PS_E_MEMORY, "budget");
    size_t budget = roomy.peak_bytes;
    while (b->ops->memory_plan(desc, PROBLEM_ALL, PS_U16, budget - budget / 64, 1, &tight, NULL) == PS_OK) budget -= budget / 64;
    REQUIRE_OK(b->ops->memory_plan(desc, PROBLEM_ALL, PS_U16, budget, 1, &tight, &error));
    assert_true(tight.peak_bytes <= budget);
    assert_true(tight.pixels_per_chunk <= roomy.pixels_per_chunk);
    size_t before = ps_cpu_memory_in_use();
    ps_cpu_memory_reset_peak();
    problem_answer_of(b, &p, &(ps_backend_options){.memory_budget_bytes = budget}, &tight_answer);
    if (ps_cpu_memory_peak() - before > budget) fail_msg("%zu bytes used, %zu allowed", ps_cpu_memory_peak() - before, budget);
    require_same(b, "budget", &tight_answer, &free_answer, b->tolerance.exact_chunks);
    problem_answer_free(&free_answer);
    problem_answer_free(&tight_answer);
    problem_free(&p);
}

static void a_batch_is_planned_within_the_budget(void **state) {
    const contract_backend *b = *state;
    problem p;
    ps_memory_plan one, ten, some;
    problem_create(&sizes[USUAL], 7, &p);
    REQUIRE_OK(b->ops->memory_plan(&p.plan.desc, PROBLEM_ALL, PS_U16, 0, 1, &one, &error));
    REQUIRE_OK(b->ops->memory_plan(&p.plan.desc, PROBLEM_ALL, PS_U16, 0, 10, &ten, &error));
    assert_int_equal(one.frames_per_batch, 1);
    assert_int_equal(ten.frames_per_batch, 10);
    assert_true(ten.peak_bytes > one.peak_bytes);
    REQUIRE_OK(b->ops->memory_plan(&p.plan.desc, PROBLEM_ALL, PS_U16, (one.peak_bytes + ten.peak_bytes) / 2, 10, &some, &error));
    assert_true(some.frames_per_batch >= 1 && some.frames_per_batch <= 10);
    assert_true(some.peak_bytes <= (one.peak_bytes + ten.peak_bytes) / 2);
    problem_free(&p);
}

static void every_element_type_gives_the_same(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    problem_answer expected, found;
    problem_create(&sizes[USUAL], 8, &p);
    problem_answer_of(b, &p, NULL, &expected);
    problem_open(b, &p, NULL, NULL, &run);
    int64_t n = p.n_positions * p.n_pixels;
    double *converted = malloc((size_t)n * sizeof *converted);
    for (ps_dtype dtype = 0; dtype < PS_N_DTYPES; dtype++) {
        switch (dtype) {
#define X(d, type, name)                                                            \
    case d:                                                                         \
        for (int64_t i = 0; i < n; i++) ((type *)converted)[i] = (type)p.counts[i]; \
        break;
            PS_DTYPES(X)
#undef X
        default: break;
        }
        ps_frame *frame = problem_frame(&run, dtype, converted);
        double dose = problem_dose(&run, frame);
        REQUIRE_OK(b->ops->frame_reduce(&frame, 1, &dose, &error));
        problem_ask(&run, frame, &found);
        require_same(b, ps_dtype_name(dtype), &found, &expected, true);
        problem_answer_free(&found);
        b->ops->frame_destroy(frame);
    }
    free(converted);
    problem_answer_free(&expected);
    problem_close(&run);
    problem_free(&p);
}

static void markers_count_as_nothing_and_are_reported(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    problem_create(&sizes[USUAL], 9, &p);
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
    problem_create(&sizes[NO_UPSAMPLING], 11, &p); /* above 1, aliases of the zero frequency show in an SSB image of nothing */
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

/* Sums asked for without images, strengths asked for one by one, and floats instead of doubles. */
static void parts_of_a_solution_agree_with_the_whole(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    problem_create(&sizes[USUAL], 12, &p);
    problem_open(b, &p, NULL, NULL, &run);
    int64_t fine = 7 * 11 * 9, all = PROBLEM_STRENGTHS * fine;
    double *whole = malloc((size_t)(2 * all) * sizeof *whole), sums[4 * PROBLEM_STRENGTHS], residual, influence;
    float *single = malloc((size_t)fine * sizeof *single);
    ps_frame *frame = problem_frame(&run, PS_U16, p.counts);
    double dose = problem_dose(&run, frame);
    REQUIRE_OK(b->ops->frame_reduce(&frame, 1, &dose, &error));
    ps_solution everything = {
        .phase_f64 = whole, .log_amplitude_f64 = whole + all, .residual = sums, .influence = sums + PROBLEM_STRENGTHS};
    REQUIRE_OK(b->ops->solve(frame, PS_METHOD_COMPLEX, PROBLEM_STRENGTHS, problem_strengths, &everything, &error));
    ps_solution only_sums = {.residual = sums + 2 * PROBLEM_STRENGTHS, .influence = sums + 3 * PROBLEM_STRENGTHS};
    REQUIRE_OK(b->ops->solve(frame, PS_METHOD_COMPLEX, PROBLEM_STRENGTHS, problem_strengths, &only_sums, &error));
    require_within(b->ops->name, "parts", "sums without images",
                   relative_difference(2 * PROBLEM_STRENGTHS, sums + 2 * PROBLEM_STRENGTHS, sums), b->tolerance.normal);
    for (int i = 0; i < PROBLEM_STRENGTHS; i++) {
        ps_solution one = {.log_amplitude_f32 = single, .residual = &residual, .influence = &influence};
        REQUIRE_OK(b->ops->solve(frame, PS_METHOD_COMPLEX, 1, &problem_strengths[i], &one, &error));
        assert_true(residual == sums[i] && influence == sums[PROBLEM_STRENGTHS + i]);
        for (int64_t k = 0; k < fine; k++) assert_true(single[k] == (float)whole[all + i * fine + k]);
    }
    REQUIRE_OK(b->ops->solve(frame, PS_METHOD_COMPLEX, 0, NULL, &only_sums, &error));
    b->ops->frame_destroy(frame);
    free(whole);
    free(single);
    problem_close(&run);
    problem_free(&p);
}

/* Equal weights w scale N and its scales by w and leave every image as it was; the same dose twice halves g. */
static void weights_and_dose_scale_as_they_should(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run plain, weighted;
    problem_create(&sizes[USUAL], 13, &p);
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
    problem_create(&sizes[USUAL], 14, &p);
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
    problem_create(&sizes[USUAL], 15, &p);
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
    problem_create(&sizes[USUAL], 16, &p);
    problem_open(b, &p, NULL, NULL, &run);
    weights = calloc((size_t)p.plan.desc.n_active, sizeof *weights);
    REQUIRE_OK(b->ops->frame_create(run.system, PS_U16, &frame, &error));
    assert_refused(b->ops->frame_put(frame, 70, 8, p.counts, &e), &e, PS_E_ARGUMENT, "77");
    assert_refused(b->ops->frame_put(frame, -1, 2, p.counts, &e), &e, PS_E_ARGUMENT, "-1");
    REQUIRE_OK(b->ops->frame_put(frame, 0, 70, p.counts, &error));
    assert_refused(b->ops->frame_put(frame, 69, 2, p.counts, &e), &e, PS_E_ARGUMENT, "twice");
    assert_refused(b->ops->frame_reduce(&frame, 1, &dose, &e), &e, PS_E_ARGUMENT, "70 of 77");
    REQUIRE_OK(b->ops->frame_put(frame, 70, 7, p.counts, &error));
    assert_refused(b->ops->solve(frame, PS_METHOD_PHASE, 1, problem_strengths, &solution, &e), &e, PS_E_ARGUMENT, "reduced");
    assert_refused(b->ops->frame_reduce(&frame, 1, &nothing, &e), &e, PS_E_ARGUMENT, "dose");
    REQUIRE_OK(b->ops->frame_reduce(&frame, 1, &dose, &error));
    assert_refused(b->ops->solve(frame, PS_METHOD_SSB, 1, problem_strengths, &solution, &e), &e, PS_E_ARGUMENT, "method");
    assert_refused(b->ops->solve(frame, PS_METHOD_PHASE, 1, &(ps_strength){1.0, 0.0}, &solution, &e), &e, PS_E_ARGUMENT, "strength");
    assert_refused(b->ops->solve(frame, PS_METHOD_COMPLEX, 1, &(ps_strength){NAN, 1.0}, &solution, &e), &e, PS_E_ARGUMENT, "strength");
    assert_refused(b->ops->system_set_weights(run.system, weights, &e), &e, PS_E_ARGUMENT, "weight");
    assert_refused(b->ops->get_eigenvalues(run.system, p.plan.desc.n_frequencies, image, &e), &e, PS_E_ARGUMENT, "frequency");
    free(weights);
    b->ops->frame_destroy(frame);
    problem_close(&run);
    problem_free(&p);
}

static void counts_that_are_not_finite_are_refused(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    ps_error e = {0};
    problem_create(&sizes[USUAL], 17, &p);
    problem_open(b, &p, NULL, NULL, &run);
    int32_t pixel = p.plan.desc.active[3];
    float *counts = calloc((size_t)(p.n_positions * p.n_pixels), sizeof *counts);
    counts[5 * p.n_pixels + pixel] = NAN;
    ps_frame *frame = problem_frame(&run, PS_F32, counts);
    double *mean = malloc((size_t)p.plan.desc.n_active * sizeof *mean);
    assert_refused(b->ops->frame_means(frame, mean, NULL, &e), &e, PS_E_INPUT, "finite");
    free(mean);
    free(counts);
    b->ops->frame_destroy(frame);
    problem_close(&run);
    problem_free(&p);
}

static void nothing_is_left_behind(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_answer answer;
    size_t before = ps_cpu_memory_in_use();
    problem_create(&sizes[0], 18, &p);
    problem_answer_of(b, &p, NULL, &answer);
    b->ops->frame_destroy(NULL);
    b->ops->system_destroy(NULL);
    b->ops->close(NULL);
    assert_int_equal(ps_cpu_memory_in_use(), before);
    problem_answer_free(&answer);
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
        LAW(order_of_puts_does_not_matter),
        LAW(frames_do_not_depend_on_their_batch),
        LAW(threads_do_not_change_a_bit),
        LAW(a_tight_budget_is_kept_and_changes_nothing),
        LAW(a_batch_is_planned_within_the_budget),
        LAW(every_element_type_gives_the_same),
        LAW(markers_count_as_nothing_and_are_reported),
        LAW(spectrum_of_a_cosine_is_known),
        LAW(counts_without_contrast_give_flat_images),
        LAW(parts_of_a_solution_agree_with_the_whole),
        LAW(weights_and_dose_scale_as_they_should),
        LAW(eigenvalues_belong_to_the_normal_matrix),
        LAW(a_system_without_regularised_methods_needs_no_preparation),
        LAW(misuse_is_refused_with_its_reason),
        LAW(counts_that_are_not_finite_are_refused),
        LAW(nothing_is_left_behind),
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
