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
    trial t;
    problem_answer expected;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 3, &t);
    problem_answer_of(t.b, &t.p, NULL, &expected);
    ps_frame *frame;
    REQUIRE_OK(ps_frame_create(t.run.system, PS_U16, &frame, &error));
    static const int64_t chunks[][2] = {{40, 37}, {0, 3}, {11, 29}, {3, 8}, {77, 0}};
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++)
        REQUIRE_OK(ps_frame_upload(frame, chunks[i][0], chunks[i][1], t.p.counts + chunks[i][0] * t.p.n_pixels, &error));
    problem_reduce(&t.run, frame);
    trial_require(&t, frame, "puts", &expected);
    problem_answer_free(&expected);
    ps_frame_destroy(frame);
    trial_end(&t);
}

static void frames_do_not_depend_on_their_batch(void **state) {
    enum { BATCH = 3 };
    trial t;
    trial_begin(state, &problem_sizes[PROBLEM_MANY_PIXELS], 4, &t);
    ps_frame *frames[BATCH];
    problem_answer alone[BATCH], together;
    double dose[BATCH];
    for (int i = 0; i < BATCH; i++) {
        problem_counts(&t.p, 10u + (unsigned)i, t.p.counts);
        frames[i] = problem_frame(&t.run, PS_U16, t.p.counts);
        dose[i] = problem_dose(&t.run, frames[i]);
        REQUIRE_OK(ps_frame_reduce(&frames[i], 1, &dose[i], &error));
        problem_ask(&t.run, frames[i], &alone[i]);
    }
    REQUIRE_OK(ps_frame_reduce(frames, BATCH, dose, &error));
    for (int i = 0; i < BATCH; i++) {
        problem_ask(&t.run, frames[i], &together);
        problem_require_same(t.b, "batch", &together, &alone[i], true);
        problem_answer_free(&together);
        problem_answer_free(&alone[i]);
        ps_frame_destroy(frames[i]);
    }
    trial_end(&t);
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
    REQUIRE_OK(ps_backend_memory_plan(b->ops, desc, PROBLEM_ALL, PS_U16, 0, 1, &roomy, &error));
    problem_require_refused(ps_backend_memory_plan(b->ops, desc, PROBLEM_ALL, PS_U16, 1000, 1, &tight, &e), &e, PS_E_MEMORY, "budget");
    size_t budget = roomy.peak_bytes;
    while (ps_backend_memory_plan(b->ops, desc, PROBLEM_ALL, PS_U16, budget - budget / 64, 1, &tight, NULL) == PS_OK) budget -= budget / 64;
    REQUIRE_OK(ps_backend_memory_plan(b->ops, desc, PROBLEM_ALL, PS_U16, budget, 1, &tight, &error));
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
    REQUIRE_OK(ps_backend_memory_plan(b->ops, &p.plan.desc, PROBLEM_ALL, PS_U16, 0, 1, &one, &error));
    REQUIRE_OK(ps_backend_memory_plan(b->ops, &p.plan.desc, PROBLEM_ALL, PS_U16, 0, 10, &ten, &error));
    assert_int_equal(one.frames_per_batch, 1);
    assert_int_equal(ten.frames_per_batch, 10);
    assert_true(ten.peak_bytes > one.peak_bytes);
    REQUIRE_OK(ps_backend_memory_plan(b->ops, &p.plan.desc, PROBLEM_ALL, PS_U16, (one.peak_bytes + ten.peak_bytes) / 2, 10, &some, &error));
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
    trial t;
    problem_answer expected;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 8, &t);
    problem_answer_of(t.b, &t.p, NULL, &expected);
    int64_t n = t.p.n_positions * t.p.n_pixels;
    double *converted = malloc((size_t)n * sizeof *converted);
    for (ps_dtype dtype = 0; dtype < PS_N_DTYPES; dtype++) {
        convert_counts(t.p.counts, n, dtype, converted);
        ps_frame *frame = problem_frame(&t.run, dtype, converted);
        problem_reduce(&t.run, frame);
        trial_require(&t, frame, ps_dtype_name(dtype), &expected);
        ps_frame_destroy(frame);
    }
    free(converted);
    problem_answer_free(&expected);
    trial_end(&t);
}

/* Sums asked for without images, strengths asked for one by one, and floats instead of doubles. */
static void parts_of_a_solution_agree_with_the_whole(void **state) {
    trial t;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 12, &t);
    int64_t fine = 7 * 11 * 9, all = PROBLEM_STRENGTHS * fine;
    double *whole = malloc((size_t)(2 * all) * sizeof *whole), sums[4 * PROBLEM_STRENGTHS], residual, effective_dof;
    float *single = malloc((size_t)fine * sizeof *single);
    ps_frame *frame = problem_frame(&t.run, PS_U16, t.p.counts);
    problem_reduce(&t.run, frame);
    ps_solution everything = {
        .phase_f64 = whole, .log_amplitude_f64 = whole + all, .residual = sums, .effective_dof = sums + PROBLEM_STRENGTHS};
    REQUIRE_OK(ps_system_solve(frame, PS_METHOD_COMPLEX, PROBLEM_STRENGTHS, problem_strengths, &everything, &error));
    ps_solution only_sums = {.residual = sums + 2 * PROBLEM_STRENGTHS, .effective_dof = sums + 3 * PROBLEM_STRENGTHS};
    REQUIRE_OK(ps_system_solve(frame, PS_METHOD_COMPLEX, PROBLEM_STRENGTHS, problem_strengths, &only_sums, &error));
    require_within(t.b->ops->name, "parts", "sums without images",
                   relative_difference(2 * PROBLEM_STRENGTHS, sums + 2 * PROBLEM_STRENGTHS, sums), t.b->tolerance.normal);
    for (int i = 0; i < PROBLEM_STRENGTHS; i++) {
        ps_solution one = {.log_amplitude_f32 = single, .residual = &residual, .effective_dof = &effective_dof};
        REQUIRE_OK(ps_system_solve(frame, PS_METHOD_COMPLEX, 1, &problem_strengths[i], &one, &error));
        assert_true(residual == sums[i] && effective_dof == sums[PROBLEM_STRENGTHS + i]);
        for (int64_t k = 0; k < fine; k++) assert_true(single[k] == (float)whole[all + i * fine + k]);
    }
    REQUIRE_OK(ps_system_solve(frame, PS_METHOD_COMPLEX, 0, NULL, &only_sums, &error));
    ps_frame_destroy(frame);
    free(whole);
    free(single);
    trial_end(&t);
}

static void nothing_is_left_behind(void **state) {
    const contract_backend *b = *state;
    problem p;
    problem_answer answer;
    size_t before = ps_cpu_memory_in_use();
    problem_create(&problem_sizes[0], 18, &p);
    problem_answer_of(b, &p, NULL, &answer);
    ps_frame_destroy(NULL);
    ps_system_destroy(NULL);
    ps_backend_close(NULL);
    assert_int_equal(ps_cpu_memory_in_use(), before);
    problem_answer_free(&answer);
    problem_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_of_puts_does_not_matter),
        cmocka_unit_test(frames_do_not_depend_on_their_batch),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(a_tight_budget_is_kept_and_changes_nothing),
        cmocka_unit_test(a_batch_is_planned_within_the_budget),
        cmocka_unit_test(every_element_type_gives_the_same),
        cmocka_unit_test(parts_of_a_solution_agree_with_the_whole),
        cmocka_unit_test(nothing_is_left_behind),
    };
    return contract_run(tests, sizeof tests / sizeof tests[0]) != 0;
}
