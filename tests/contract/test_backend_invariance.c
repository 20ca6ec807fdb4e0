/* What must not change a bit of any backend's answers: order of puts, batches, threads, budgets, element types, parts asked for. */
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

static void order_of_puts_does_not_matter(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    problem_answer expected, found;
    problem_create(&problem_sizes[PROBLEM_USUAL], 3, &p);
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
    problem_require_same(b, "puts", &found, &expected, true);
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
    problem_create(&problem_sizes[PROBLEM_MANY_PIXELS], 4, &p);
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
        problem_require_same(b, "batch", &together, &alone[i], true);
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
    problem_create(&problem_sizes[PROBLEM_MANY_PIXELS], 5, &p);
    int before = omp_get_max_threads();
    omp_set_num_threads(5);
    problem_answer_of(b, &p, &(ps_backend_options){.n_threads = 1}, &one);
    for (int n = 2; n <= 5; n++) {
        problem_answer_of(b, &p, &(ps_backend_options){.n_threads = n}, &several);
        problem_require_same(b, "threads", &several, &one, true);
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
    problem_create(&problem_sizes[PROBLEM_MANY_PIXELS], 6, &p);
    problem_answer_of(b, &p, NULL, &free_answer);
    const ps_system_desc *desc = &p.plan.desc;
    REQUIRE_OK(b->ops->memory_plan(desc, PROBLEM_ALL, PS_U16, 0, 1, &roomy, &error));
    problem_require_refused(b->ops->memory_plan(desc, PROBLEM_ALL, PS_U16, 1000, 1, &tight, &e), &e, PS_E_MEMORY, "budget");
    size_t budget = roomy.peak_bytes;
    while (b->ops->memory_plan(desc, PROBLEM_ALL, PS_U16, budget - budget / 64, 1, &tight, NULL) == PS_OK) budget -= budget / 64;
    REQUIRE_OK(b->ops->memory_plan(desc, PROBLEM_ALL, PS_U16, budget, 1, &tight, &error));
    assert_true(tight.peak_bytes <= budget);
    assert_true(tight.pixels_per_chunk <= roomy.pixels_per_chunk);
    size_t before = ps_cpu_memory_in_use();
    ps_cpu_memory_reset_peak();
    problem_answer_of(b, &p, &(ps_backend_options){.memory_budget_bytes = budget}, &tight_answer);
    if (ps_cpu_memory_peak() - before > budget) fail_msg("%zu bytes used, %zu allowed", ps_cpu_memory_peak() - before, budget);
    problem_require_same(b, "budget", &tight_answer, &free_answer, b->tolerance.exact_chunks);
    problem_answer_free(&free_answer);
    problem_answer_free(&tight_answer);
    problem_free(&p);
}

static void a_batch_is_planned_within_the_budget(void **state) {
    const contract_backend *b = *state;
    problem p;
    ps_memory_plan one, ten, some;
    problem_create(&problem_sizes[PROBLEM_USUAL], 7, &p);
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

/* converted: [n] of dtype, room for doubles. */
static void convert_counts(const uint16_t *counts, int64_t n, ps_dtype dtype, void *converted) {
    switch (dtype) {
#define X(d, type, name)                                                          \
    case d:                                                                       \
        for (int64_t i = 0; i < n; i++) ((type *)converted)[i] = (type)counts[i]; \
        break;
        PS_DTYPES(X)
#undef X
    default: break;
    }
}

static void every_element_type_gives_the_same(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    problem_answer expected, found;
    problem_create(&problem_sizes[PROBLEM_USUAL], 8, &p);
    problem_answer_of(b, &p, NULL, &expected);
    problem_open(b, &p, NULL, NULL, &run);
    int64_t n = p.n_positions * p.n_pixels;
    double *converted = malloc((size_t)n * sizeof *converted);
    for (ps_dtype dtype = 0; dtype < PS_N_DTYPES; dtype++) {
        convert_counts(p.counts, n, dtype, converted);
        ps_frame *frame = problem_frame(&run, dtype, converted);
        double dose = problem_dose(&run, frame);
        REQUIRE_OK(b->ops->frame_reduce(&frame, 1, &dose, &error));
        problem_ask(&run, frame, &found);
        problem_require_same(b, ps_dtype_name(dtype), &found, &expected, true);
        problem_answer_free(&found);
        b->ops->frame_destroy(frame);
    }
    free(converted);
    problem_answer_free(&expected);
    problem_close(&run);
    problem_free(&p);
}

/* Sums asked for without images, strengths asked for one by one, and floats instead of doubles. */
static void parts_of_a_solution_agree_with_the_whole(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_run run;
    problem_create(&problem_sizes[PROBLEM_USUAL], 12, &p);
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

static void nothing_is_left_behind(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_answer answer;
    size_t before = ps_cpu_memory_in_use();
    problem_create(&problem_sizes[0], 18, &p);
    problem_answer_of(b, &p, NULL, &answer);
    b->ops->frame_destroy(NULL);
    b->ops->system_destroy(NULL);
    b->ops->close(NULL);
    assert_int_equal(ps_cpu_memory_in_use(), before);
    problem_answer_free(&answer);
    problem_free(&p);
}

static int test_backend(const contract_backend *b) {
#define LAW(test) cmocka_unit_test_prestate(test, (void *)b)
    const struct CMUnitTest tests[] = {
        LAW(order_of_puts_does_not_matter),
        LAW(frames_do_not_depend_on_their_batch),
        LAW(threads_do_not_change_a_bit),
        LAW(a_tight_budget_is_kept_and_changes_nothing),
        LAW(a_batch_is_planned_within_the_budget),
        LAW(every_element_type_gives_the_same),
        LAW(parts_of_a_solution_agree_with_the_whole),
        LAW(nothing_is_left_behind),
    };
    return cmocka_run_group_tests_name(b->ops->name, tests, NULL, NULL);
}

int main(void) {
    const contract_backend *backends;
    int n = contract_backends(&backends), failed = 0;
    for (int i = 0; i < n; i++) failed += test_backend(&backends[i]);
    return failed != 0;
}
