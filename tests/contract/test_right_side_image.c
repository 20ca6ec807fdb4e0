/* The image of b, the phase method's right side: what it is, and that it needs no N and changes nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract/compare.h"
#include "contract/problem.h"

enum { OTHERS = PS_METHODS_PREPARED | PS_METHOD_SSB };

/* [n] exp(2 pi i k / n) */
static double complex *make_roots(int64_t n) {
    double complex *roots = malloc((size_t)n * sizeof *roots);
    for (int64_t k = 0; k < n; k++) roots[k] = cexp(2.0 * M_PI * I * (double)k / (double)n);
    return roots;
}

/* image += Re(value * exp(2 pi i Q.r)) */
static void add_wave(const ps_system_desc *desc, int64_t alias, double complex value, const double complex *row_roots,
                     const double complex *column_roots, double *image) {
    int64_t rows = desc->scan_rows * desc->upsampling, columns = desc->scan_columns * desc->upsampling;
    for (int64_t row = 0; row < rows; row++) {
        double complex along = value * row_roots[desc->fine_row[alias] * row % rows];
        for (int64_t column = 0; column < columns; column++)
            image[row * columns + column] += creal(along * column_roots[desc->fine_column[alias] * column % columns]);
    }
}

/* The inverse transform's real part, summed wave by wave in double from what the backend says of b. A wave and its conjugate partner have
 * the same real part. */
static double *plain_image(const problem *p, ps_frame *frame) {
    const ps_system_desc *desc = &p->plan.desc;
    double complex *row_roots = make_roots(desc->scan_rows * desc->upsampling),
                   *column_roots = make_roots(desc->scan_columns * desc->upsampling);
    double *image = calloc((size_t)problem_fine(p), sizeof *image), b[2 * PS_MAX_ALIASES];
    for (int64_t i = 1; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        REQUIRE_OK(ps_frame_get_right_side(frame, PS_METHOD_MF, i, b, NULL, &error));
        for (int64_t a = 0; a < f->n_aliases; a++)
            add_wave(desc, f->first_alias + a, f->multiplicity * (b[2 * a] + I * b[2 * a + 1]), row_roots, column_roots, image);
    }
    free(row_roots);
    free(column_roots);
    return image;
}

/* A system for some methods, prepared where they need it, with one reduced frame. weights: NULL: uniform. */
typedef struct {
    problem_run run;
    ps_frame *frame;
} reduced;

static void reduce(const contract_backend *b, const problem *p, ps_methods methods, const double *weights, reduced *r) {
    r->run = (problem_run){.ops = b->ops, .problem = p};
    REQUIRE_OK(ps_backend_open(b->ops, NULL, &r->run.backend, &error));
    REQUIRE_OK(ps_system_create(r->run.backend, &p->plan.desc, methods, &r->run.system, &error));
    if (weights) REQUIRE_OK(ps_system_set_weights(r->run.system, weights, &error));
    if (methods & PS_METHODS_PREPARED) REQUIRE_OK(ps_system_prepare(r->run.system, &error));
    r->frame = problem_frame(&r->run, PS_U16, p->counts);
    problem_reduce(&r->run, r->frame);
}

static void release(reduced *r) {
    ps_frame_destroy(r->frame);
    problem_close(&r->run);
}

static double *image_of(const problem *p, ps_frame *frame) {
    double *image = malloc((size_t)problem_fine(p) * sizeof *image);
    REQUIRE_OK(ps_frame_right_side_image(frame, NULL, image, &error));
    return image;
}

static double *made_up_weights(const problem *p) {
    double *weights = malloc((size_t)p->plan.desc.n_active * sizeof *weights);
    for (int64_t i = 0; i < p->plan.desc.n_active; i++) weights[i] = 0.3 + 0.1 * (double)(i % 11);
    return weights;
}

static void it_is_the_sum_of_its_waves_at_every_size(void **state) {
    const contract_backend *b = *state;
    for (int i = 0; i < PROBLEM_SIZES; i++) {
        problem p;
        reduced r;
        problem_create(&problem_sizes[i], 41, &p);
        double *weights = made_up_weights(&p);
        reduce(b, &p, PS_METHOD_MF, weights, &r);
        double *found = image_of(&p, r.frame), *expected = plain_image(&p, r.frame), mean = 0, largest = 0;
        require_within(b->ops->name, problem_sizes[i].name, "image of b", relative_difference(problem_fine(&p), found, expected),
                       b->tolerance.images);
        for (int64_t k = 0; k < problem_fine(&p); k++) {
            mean += found[k] / (double)problem_fine(&p);
            largest = fmax(largest, fabs(found[k]));
        }
        assert_true(largest > 0);
        assert_true(fabs(mean) <= b->tolerance.images * largest);
        free(found);
        free(expected);
        free(weights);
        release(&r);
        problem_free(&p);
    }
}

/* Without weights and with some. */
static void it_agrees_with_the_reference(void **state) {
    const contract_backend *b = *state;
    const contract_backend reference = {&ps_backend_cpu_reference, b->tolerance};
    for (int weighted = 0; weighted < 2; weighted++) {
        problem p;
        reduced r[2];
        problem_create(&problem_sizes[PROBLEM_USUAL], 42, &p);
        double *weights = weighted ? made_up_weights(&p) : NULL;
        reduce(b, &p, PS_METHOD_MF, weights, &r[0]);
        reduce(&reference, &p, PS_METHOD_MF, weights, &r[1]);
        double *found = image_of(&p, r[0].frame), *expected = image_of(&p, r[1].frame);
        require_within(b->ops->name, weighted ? "weighted" : "uniform", "image of b",
                       relative_difference(problem_fine(&p), found, expected), b->tolerance.images);
        free(found);
        free(expected);
        free(weights);
        release(&r[0]);
        release(&r[1]);
        problem_free(&p);
    }
}

/* Any methods may be beside it, to the last bit. And as float it is what it is as double. */
static void it_needs_no_other_method(void **state) {
    static const ps_methods beside[] = {0, PS_METHOD_PHASE, PS_METHOD_COMPLEX, PS_METHOD_SSB, OTHERS};
    const contract_backend *b = *state;
    problem p;
    double *first = NULL;
    problem_create(&problem_sizes[PROBLEM_USUAL], 43, &p);
    size_t n = (size_t)problem_fine(&p);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        reduced r;
        reduce(b, &p, PS_METHOD_MF | beside[i], NULL, &r);
        double *image = image_of(&p, r.frame);
        float *f32 = malloc(n * sizeof *f32);
        REQUIRE_OK(ps_frame_right_side_image(r.frame, f32, NULL, &error));
        for (size_t k = 0; k < n; k++) assert_true(f32[k] == (float)image[k]);
        if (first)
            assert_memory_equal(image, first, n * sizeof *image);
        else
            first = memcpy(malloc(n * sizeof *first), image, n * sizeof *first);
        free(image);
        free(f32);
        release(&r);
    }
    free(first);
    problem_free(&p);
}

static void require_same_image(const problem *p, const char *what, const float *found, const float *expected) {
    if (memcmp(found, expected, (size_t)problem_fine(p) * sizeof *found) != 0) fail_msg("%s: other bits beside other methods", what);
}

/* Images of those of the other methods that are wanted. values: [3, fine] */
static void ask_others(const problem *p, ps_frame *frame, ps_methods wanted, float *values) {
    int64_t n = problem_fine(p);
    const ps_solution phase = {.phase_f32 = values}, both = {.phase_f32 = values + n};
    if (wanted & PS_METHOD_PHASE) REQUIRE_OK(ps_system_solve(frame, PS_METHOD_PHASE, 1, problem_strengths, &phase, &error));
    if (wanted & PS_METHOD_COMPLEX) REQUIRE_OK(ps_system_solve(frame, PS_METHOD_COMPLEX, 1, problem_strengths, &both, &error));
    if (wanted & PS_METHOD_SSB) REQUIRE_OK(ps_frame_ssb(frame, PS_SSB_WAVE, values + 2 * n, NULL, NULL, &error));
}

static void other_methods_keep_their_bits(void **state) {
    const contract_backend *b = *state;
    problem p;
    reduced with, without;
    problem_create(&problem_sizes[PROBLEM_USUAL], 44, &p);
    int64_t n = problem_fine(&p);
    float *values[2] = {malloc((size_t)(3 * n) * sizeof(float)), malloc((size_t)(3 * n) * sizeof(float))};
    reduce(b, &p, OTHERS | PS_METHOD_MF, NULL, &with);
    reduce(b, &p, OTHERS, NULL, &without);
    free(image_of(&p, with.frame));
    ask_others(&p, with.frame, OTHERS, values[0]);
    ask_others(&p, without.frame, OTHERS, values[1]);
    require_same_image(&p, "phase", values[0], values[1]);
    require_same_image(&p, "complex", values[0] + n, values[1] + n);
    require_same_image(&p, "ssb", values[0] + 2 * n, values[1] + 2 * n);
    free(values[0]);
    free(values[1]);
    release(&with);
    release(&without);
    problem_free(&p);
}

/* Alone or with all others beside it. */
static void each_method_alone_has_the_same_bits(void **state) {
    static const ps_methods alone[] = {PS_METHOD_PHASE, PS_METHOD_COMPLEX, PS_METHOD_SSB};
    static const char *const names[] = {"phase", "complex", "ssb"};
    const contract_backend *b = *state;
    problem p;
    reduced all, one;
    problem_create(&problem_sizes[PROBLEM_USUAL], 47, &p);
    int64_t n = problem_fine(&p);
    float *expected = malloc((size_t)(3 * n) * sizeof *expected), *found = malloc((size_t)(3 * n) * sizeof *found);
    reduce(b, &p, OTHERS | PS_METHOD_MF, NULL, &all);
    ask_others(&p, all.frame, OTHERS, expected);
    for (int i = 0; i < 3; i++) {
        reduce(b, &p, alone[i], NULL, &one);
        ask_others(&p, one.frame, alone[i], found);
        require_same_image(&p, names[i], found + i * n, expected + i * n);
        release(&one);
    }
    free(expected);
    free(found);
    release(&all);
    problem_free(&p);
}

static void a_system_without_it_refuses(void **state) {
    const contract_backend *b = *state;
    problem p;
    reduced r;
    ps_error e = {0};
    problem_create(&problem_sizes[PROBLEM_USUAL], 45, &p);
    double *image = malloc((size_t)problem_fine(&p) * sizeof *image), right_side[2 * PS_MAX_ALIASES];
    reduce(b, &p, OTHERS, NULL, &r);
    problem_require_refused(ps_frame_right_side_image(r.frame, NULL, image, &e), &e, PS_E_ARGUMENT, "created without the mf method");
    problem_require_refused(ps_frame_get_right_side(r.frame, PS_METHOD_MF, 1, right_side, NULL, &e), &e, PS_E_ARGUMENT, "without the mf");
    release(&r);
    reduce(b, &p, PS_METHOD_MF, NULL, &r);
    problem_require_refused(ps_frame_get_right_side(r.frame, PS_METHOD_PHASE, 1, right_side, NULL, &e), &e, PS_E_ARGUMENT,
                            "without the phase");
    release(&r);
    free(image);
    problem_free(&p);
}

/* The data norm is there too, whether the backend sums it or the default does. */
static void its_data_norm_is_that_of_the_phase_method(void **state) {
    const contract_backend *b = *state;
    ps_backend_ops bare = *b->ops;
    bare.frame_data_norm = NULL;
    const contract_backend without = {&bare, b->tolerance}, *const backends[] = {b, &without};
    problem p;
    problem_create(&problem_sizes[PROBLEM_USUAL], 46, &p);
    for (int i = 0; i < 2; i++) {
        double norm[2];
        const ps_methods methods[] = {PS_METHOD_MF, PS_METHOD_PHASE};
        for (int k = 0; k < 2; k++) {
            reduced r;
            reduce(backends[i], &p, methods[k], NULL, &r);
            REQUIRE_OK(ps_frame_data_norm(r.frame, &norm[k], &error));
            release(&r);
        }
        assert_true(norm[0] > 0 && norm[0] == norm[1]);
    }
    problem_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_sum_of_its_waves_at_every_size),
        cmocka_unit_test(it_agrees_with_the_reference),
        cmocka_unit_test(it_needs_no_other_method),
        cmocka_unit_test(other_methods_keep_their_bits),
        cmocka_unit_test(each_method_alone_has_the_same_bits),
        cmocka_unit_test(a_system_without_it_refuses),
        cmocka_unit_test(its_data_norm_is_that_of_the_phase_method),
    };
    return contract_run(tests, sizeof tests / sizeof tests[0]) != 0;
}
