/* Images into the backend's own host memory, which an operation need not wait for: the same bits as in any other memory, whatever else the
 * device does until they are waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "contract/compare.h"
#include "contract/problem.h"

/* Images of a frame: single side band, matched filter, then phase and complex of every strength. */
enum {
    SSB,
    MF,
    PHASES,
    COMPLEX = PHASES + PROBLEM_STRENGTHS,
    LOG_AMPLITUDES = COMPLEX + PROBLEM_STRENGTHS,
    N_IMAGES = LOG_AMPLITUDES + PROBLEM_STRENGTHS
};

/* One strength at a time and in twos, so that one image is on its way while others are made. */
static void ask(ps_frame *frame, float *const *images) {
    REQUIRE_OK(ps_frame_ssb(frame, PS_SSB_WAVE, images[SSB], NULL, NULL, &error));
    REQUIRE_OK(ps_frame_right_side_image(frame, images[MF], NULL, &error));
    for (int i = 0; i < PROBLEM_STRENGTHS; i++) {
        const ps_solution one = {.phases_f32 = &images[PHASES + i]};
        REQUIRE_OK(ps_system_solve(frame, PS_METHOD_PHASE, 1, &problem_strengths[i], &one, &error));
    }
    for (int i = 0; i < PROBLEM_STRENGTHS; i += 2) {
        const ps_solution some = {.phases_f32 = &images[COMPLEX + i], .log_amplitudes_f32 = &images[LOG_AMPLITUDES + i]};
        int64_t n = i + 2 <= PROBLEM_STRENGTHS ? 2 : 1;
        REQUIRE_OK(ps_system_solve(frame, PS_METHOD_COMPLEX, n, &problem_strengths[i], &some, &error));
    }
}

static void ask_plainly(ps_frame *frame, float *memory, int64_t n) {
    ps_solution phase = {.phase_f32 = memory + PHASES * n},
                both = {.phase_f32 = memory + COMPLEX * n, .log_amplitude_f32 = memory + LOG_AMPLITUDES * n};
    REQUIRE_OK(ps_frame_ssb(frame, PS_SSB_WAVE, memory + SSB * n, NULL, NULL, &error));
    REQUIRE_OK(ps_frame_right_side_image(frame, memory + MF * n, NULL, &error));
    REQUIRE_OK(ps_system_solve(frame, PS_METHOD_PHASE, PROBLEM_STRENGTHS, problem_strengths, &phase, &error));
    REQUIRE_OK(ps_system_solve(frame, PS_METHOD_COMPLEX, PROBLEM_STRENGTHS, problem_strengths, &both, &error));
}

static void require_images(const trial *t, float *const *blocks, const float *expected, int64_t n) {
    for (int i = 0; i < N_IMAGES; i++) {
        REQUIRE_OK(ps_backend_host_wait(t->run.backend, blocks[i], &error));
        if (memcmp(blocks[i], expected + i * n, (size_t)n * sizeof(float)) != 0) fail_msg("%s: image %d differs", t->b->ops->name, i);
    }
}

static void images_are_the_same(void **state) {
    trial t;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 21, &t);
    int64_t n = problem_fine(&t.p);
    float *blocks[N_IMAGES], *first = malloc((size_t)(N_IMAGES * n) * sizeof *first),
                             *second = malloc((size_t)(N_IMAGES * n) * sizeof *second);
    ps_frame *frame = problem_frame(&t.run, PS_U16, t.p.counts), *other;
    problem_reduce(&t.run, frame);
    ask_plainly(frame, first, n);
    REQUIRE_OK(ps_backend_host_allocate(t.run.backend, N_IMAGES, n, blocks, &error));
    for (int i = 0; i < N_IMAGES; i++) memset(blocks[i], 0xff, (size_t)n * sizeof(float));
    ask(frame, blocks);
    problem_counts(&t.p, 22, t.p.counts);
    other = problem_frame(&t.run, PS_U16, t.p.counts); /* the next frame's work, while images are on their way */
    problem_reduce(&t.run, other);
    ps_frame_destroy(frame);
    require_images(&t, blocks, first, n);
    ask(other, blocks);
    ask(other, blocks); /* blocks that nobody waited for are used again */
    ask_plainly(other, second, n);
    require_images(&t, blocks, second, n);
    ps_frame_destroy(other);
    ps_backend_host_free(t.run.backend, N_IMAGES, blocks);
    for (int i = 0; i < N_IMAGES; i++) assert_null(blocks[i]);
    free(first);
    free(second);
    trial_end(&t);
}

static void bad_arguments_are_refused(void **state) {
    trial t;
    trial_begin(state, &problem_sizes[PROBLEM_NO_UPSAMPLING], 23, &t);
    int64_t n = problem_fine(&t.p);
    float *blocks[2], *image = malloc((size_t)n * sizeof *image);
    ps_frame *frame = problem_frame(&t.run, PS_U16, t.p.counts);
    problem_reduce(&t.run, frame);
    assert_int_equal(ps_backend_host_allocate(t.run.backend, 0, n, blocks, NULL), PS_E_ARGUMENT);
    assert_int_equal(ps_backend_host_allocate(t.run.backend, 2, 0, blocks, NULL), PS_E_ARGUMENT);
    float *missing[1] = {NULL};
    const ps_solution nowhere = {.phases_f32 = missing}, twice = {.phases_f32 = &image, .phase_f32 = image};
    const ps_solution too_much = {.phases_f32 = &image, .log_amplitudes_f32 = &image};
    assert_int_equal(ps_system_solve(frame, PS_METHOD_PHASE, 1, problem_strengths, &nowhere, NULL), PS_E_ARGUMENT);
    assert_int_equal(ps_system_solve(frame, PS_METHOD_PHASE, 1, problem_strengths, &twice, NULL), PS_E_ARGUMENT);
    assert_int_equal(ps_system_solve(frame, PS_METHOD_PHASE, 1, problem_strengths, &too_much, NULL), PS_E_ARGUMENT);
    REQUIRE_OK(ps_backend_host_wait(t.run.backend, image, &error)); /* nothing is on its way to memory of another kind */
    ps_frame_destroy(frame);
    free(image);
    trial_end(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_the_same),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return contract_run(tests, sizeof tests / sizeof tests[0]) != 0;
}
