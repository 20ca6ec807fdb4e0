#include "contract/problem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "contract/compare.h"

const problem_size problem_sizes[PROBLEM_SIZES] = {
    {"even scan", 8, 6, 14, 15, 2},      {"prime scan", 7, 11, 13, 12, 3},     {"one row", 1, 12, 12, 13, 2},
    {"one column", 9, 1, 12, 12, 2},     {"no upsampling", 12, 10, 12, 12, 1}, {"two positions", 1, 2, 9, 9, 3},
    {"many pixels", 4, 5, 41, 43, 2},    {"few pixels", 6, 5, 4, 5, 2},        {"large primes", 19, 17, 10, 11, 2},
    {"powers of two", 16, 32, 9, 10, 1}, {"three and five", 30, 48, 8, 9, 1},  {"odd rows", 15, 24, 9, 8, 2},
    {"long rows", 4, 400, 6, 7, 1},      {"long columns", 640, 6, 6, 6, 1},    {"odd columns", 36, 25, 8, 8, 1},
    {"longer rows", 6, 640, 6, 7, 1},
};
const ps_strength problem_strengths[PROBLEM_STRENGTHS] = {{0.02, 0.02}, {0.3, 0.1}, {0.1, 0.1}, {3.0, 1.0}, {0.7, 0.7}};

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

void problem_counts(const problem *p, unsigned seed, uint16_t *counts) {
    uint32_t state = seed * 2654435761u + 1u;
    for (int64_t i = 0; i < p->n_positions; i++)
        for (int64_t pixel = 0; pixel < p->n_pixels; pixel++) {
            double wave = sin(0.9 * (double)i + 0.31 * (double)pixel) + cos(0.13 * (double)i * (double)(pixel % 7));
            counts[i * p->n_pixels + pixel] = (uint16_t)(100.0 + 2.0 * wave + (double)(next_random(&state) % 5));
        }
}

void problem_create(const problem_size *size, unsigned seed, problem *p) {
    *p = (problem){.optics = {.voltage_V = 300000,
                              .semiangle_mrad = 25,
                              .scan_step_A = {0.42, 0.38},
                              .rotation_deg = 31,
                              .C_A = {-70, 25, 500, 300, 9000},
                              .angle_rad = {0, 0.7, 0.3, -0.4}},
                   .n_positions = size->rows * size->columns,
                   .n_pixels = size->detector_rows * size->detector_columns};
    p->optics.detector_pitch_mrad[0] = 2.1 * 25 / (double)size->detector_rows;
    p->optics.detector_pitch_mrad[1] = 2.2 * 25 / (double)size->detector_columns;
    p->optics.detector_center_px[0] = 0.5 * (double)(size->detector_rows - 1) + 0.2;
    p->optics.detector_center_px[1] = 0.5 * (double)(size->detector_columns - 1) - 0.1;
    ps_plan_options options = {.scan_rows = size->rows,
                               .scan_columns = size->columns,
                               .detector_rows = size->detector_rows,
                               .detector_columns = size->detector_columns,
                               .upsampling = size->upsampling,
                               .smoothness_phase_inv_A = INFINITY,
                               .smoothness_complex_inv_A = 1.5};
    REQUIRE_OK(ps_plan_build(&p->optics, &options, &p->plan, &error));
    p->counts = malloc((size_t)(p->n_positions * p->n_pixels) * sizeof *p->counts);
    problem_counts(p, seed, p->counts);
}

void problem_free(problem *p) {
    ps_plan_free(&p->plan);
    free(p->counts);
}

void problem_open(const contract_backend *under_test, const problem *p, const ps_backend_options *options, const double *weights,
                  problem_run *run) {
    *run = (problem_run){.ops = under_test->ops, .problem = p};
    REQUIRE_OK(ps_backend_open(run->ops, options, &run->backend, &error));
    REQUIRE_OK(ps_system_create(run->backend, &p->plan.desc, PROBLEM_ALL, &run->system, &error));
    if (weights) REQUIRE_OK(ps_system_set_weights(run->system, weights, &error));
    REQUIRE_OK(ps_system_prepare(run->system, &error));
}

void problem_close(problem_run *run) {
    ps_system_destroy(run->system);
    ps_backend_close(run->backend);
}

void trial_begin(void **state, const problem_size *size, unsigned seed, trial *t) {
    t->b = *state;
    problem_create(size, seed, &t->p);
    problem_open(t->b, &t->p, NULL, NULL, &t->run);
}

void trial_end(trial *t) {
    problem_close(&t->run);
    problem_free(&t->p);
}

ps_frame *problem_frame(const problem_run *run, ps_dtype dtype, const void *counts) {
    ps_frame *frame;
    REQUIRE_OK(ps_frame_create(run->system, dtype, &frame, &error));
    REQUIRE_OK(ps_frame_upload(frame, 0, run->problem->n_positions, counts, &error));
    return frame;
}

double problem_dose(const problem_run *run, ps_frame *frame) {
    double dose, *mean = malloc((size_t)run->problem->plan.desc.n_active * sizeof *mean);
    REQUIRE_OK(ps_frame_mean_counts(frame, mean, NULL, &error));
    REQUIRE_OK(ps_plan_dose(&run->problem->plan, mean, NULL, &dose, &error));
    free(mean);
    return dose;
}

double problem_reduce(const problem_run *run, ps_frame *frame) {
    double dose = problem_dose(run, frame);
    REQUIRE_OK(ps_frame_reduce(&frame, 1, &dose, &error));
    return dose;
}

int64_t problem_fine(const problem *p) {
    const ps_system_desc *desc = &p->plan.desc;
    return desc->scan_rows * desc->scan_columns * desc->upsampling * desc->upsampling;
}

/* Room for the next part of n doubles. */
static double *answer_part(problem_answer *answer, const char *name, int64_t n) {
    assert_true(answer->n_parts < PROBLEM_PARTS);
    answer->values = realloc(answer->values, (size_t)(answer->n + n) * sizeof *answer->values);
    double *part = answer->values + answer->n;
    answer->n += n;
    answer->name[answer->n_parts] = name;
    answer->end[answer->n_parts++] = answer->n;
    return part;
}

static void ask_solution(const problem_run *run, ps_frame *frame, ps_methods method, problem_answer *answer) {
    int64_t all = PROBLEM_STRENGTHS * problem_fine(run->problem);
    bool both = method == PS_METHOD_COMPLEX;
    double *images[2] = {malloc((size_t)all * sizeof(double)), malloc((size_t)all * sizeof(double))}, sums[2][PROBLEM_STRENGTHS];
    ps_solution solution = {
        .phase_f64 = images[0], .log_amplitude_f64 = both ? images[1] : NULL, .residual = sums[0], .effective_dof = sums[1]};
    REQUIRE_OK(ps_system_solve(frame, method, PROBLEM_STRENGTHS, problem_strengths, &solution, &error));
    memcpy(answer_part(answer, both ? "complex phase" : "phase", all), images[0], (size_t)all * sizeof(double));
    if (both) memcpy(answer_part(answer, "log-amplitude", all), images[1], (size_t)all * sizeof(double));
    memcpy(answer_part(answer, both ? "complex effective degrees of freedom" : "influence", PROBLEM_STRENGTHS), sums[1], sizeof sums[1]);
    /* a residual is what is left of the data norm, and compared relative to it */
    double *residual = answer_part(answer, both ? "complex residual" : "residual", PROBLEM_STRENGTHS + 1);
    memcpy(residual, sums[0], sizeof sums[0]);
    REQUIRE_OK(ps_frame_data_norm(frame, residual + PROBLEM_STRENGTHS, &error));
    free(images[0]);
    free(images[1]);
}

static void ask_right_sides(const problem_run *run, ps_frame *frame, problem_answer *answer) {
    const ps_system_desc *desc = &run->problem->plan.desc;
    double *part = answer_part(answer, "b", desc->n_aliases * 6);
    memset(part, 0, (size_t)(desc->n_aliases * 6) * sizeof *part);
    for (int64_t i = 1; i < desc->n_frequencies; i++) {
        double *at = part + 6 * desc->frequencies[i].first_alias;
        REQUIRE_OK(ps_frame_get_right_side(frame, PS_METHOD_PHASE, i, at, NULL, &error));
        REQUIRE_OK(ps_frame_get_right_side(frame, PS_METHOD_COMPLEX, i, at + 2 * desc->frequencies[i].n_aliases, NULL, &error));
    }
}

void problem_ask(const problem_run *run, ps_frame *frame, problem_answer *answer) {
    int64_t fine = problem_fine(run->problem);
    *answer = (problem_answer){0};
    ask_solution(run, frame, PS_METHOD_PHASE, answer);
    ask_solution(run, frame, PS_METHOD_COMPLEX, answer);
    ask_right_sides(run, frame, answer);
    double *wave = answer_part(answer, "ssb wave", fine), loss;
    REQUIRE_OK(ps_frame_ssb(frame, PS_SSB_WAVE, NULL, wave, NULL, &error));
    double *phase = answer_part(answer, "ssb phase", fine);
    REQUIRE_OK(ps_frame_ssb(frame, PS_SSB_PHASE, NULL, phase, &loss, &error));
    *answer_part(answer, "ssb loss", 1) = loss;
    REQUIRE_OK(ps_frame_right_side_image(frame, NULL, answer_part(answer, "image of b", fine), &error));
}

void problem_answer_of(const contract_backend *under_test, const problem *p, const ps_backend_options *options, problem_answer *answer) {
    problem_run run;
    problem_open(under_test, p, options, NULL, &run);
    ps_frame *frame = problem_frame(&run, PS_U16, p->counts);
    problem_reduce(&run, frame);
    problem_ask(&run, frame, answer);
    ps_frame_destroy(frame);
    problem_close(&run);
}

void problem_require_same(const contract_backend *b, const char *where, const problem_answer *found, const problem_answer *expected,
                          bool exact) {
    int64_t begin = 0;
    assert_int_equal(found->n, expected->n);
    for (int64_t i = 0; i < expected->n_parts; begin = expected->end[i++]) {
        /* aliases of the zero frequency bring some pixels' waves to 0 somewhere, where they have no phase */
        bool loose = strcmp(expected->name[i], "ssb phase") == 0;
        double (*compare)(int64_t, const double *, const double *) = loose ? relative_mean_difference : relative_difference;
        double difference = compare(expected->end[i] - begin, found->values + begin, expected->values + begin);
        require_within(b->ops->name, where, expected->name[i], difference, exact ? 0.0 : b->tolerance.images);
    }
}

void trial_require(const trial *t, ps_frame *frame, const char *where, const problem_answer *expected) {
    problem_answer found;
    problem_ask(&t->run, frame, &found);
    problem_require_same(t->b, where, &found, expected, true);
    problem_answer_free(&found);
}

void problem_require_refused(ps_code found, ps_error *error, ps_code code, const char *text) {
    assert_int_equal(found, code);
    if (!strstr(error->text, text)) fail_msg("'%s' does not say '%s'", error->text, text);
    ps_error_clear(error);
}

void problem_answer_free(problem_answer *answer) {
    free(answer->values);
}
