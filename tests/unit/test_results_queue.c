/* The queue between the thread that computes and the one that writes: order, bounds, errors and ends, with both in threads and in one. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tasks/reconstruct/results_queue.h"

enum { N_IMAGES = 3, N_FRAMES = 2, PIXELS = 8, FRAMES_DONE = 200, IMAGES_EACH = 7 };

typedef struct {
    float memory[N_IMAGES][PIXELS];
    float *images[N_IMAGES];
    ps_results_queue *queue;
} fixture;

static int begin(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ps_error error = {0};
    for (int i = 0; i < N_IMAGES; i++) f->images[i] = f->memory[i];
    if (ps_results_create(N_IMAGES, f->images, N_FRAMES, &f->queue, &error) != PS_OK) return 1;
    *state = f;
    return 0;
}

static int end(void **state) {
    fixture *f = *state;
    ps_results_destroy(f->queue);
    free(f);
    return 0;
}

static void nap(long us) {
    nanosleep(&(struct timespec){.tv_nsec = 1000 * us}, NULL);
}

static ps_code put_end(ps_results_queue *queue, int frame, bool left_alone, ps_error *error) {
    const ps_results_entry entry = {.frame = frame, .left_alone = left_alone};
    return ps_results_put(queue, &entry, error);
}

static ps_code put_image(ps_results_queue *queue, int frame, int64_t part, float value, ps_error *error) {
    ps_results_entry entry = {.frame = frame, .part = part};
    PS_TRY(ps_results_take_image(queue, &entry.image, NULL, error));
    for (int i = 0; i < PIXELS; i++) entry.image[i] = value;
    return ps_results_put(queue, &entry, error);
}

static int count_left(ps_results_queue *queue) {
    int n = 0;
    for (int frame = 0; frame < N_FRAMES; frame++) n += ps_results_is_left(queue, frame);
    return n;
}

/* ---- in one thread ---- */

static void entries_come_in_their_order(void **state) {
    const fixture *f = *state;
    ps_error error = {0};
    ps_results_entry entry;
    int frame;
    bool found;
    ps_results_next(f->queue, false, &entry, &found);
    assert_false(found);
    assert_int_equal(ps_results_take_frame(f->queue, &frame, NULL, &error), PS_OK);
    for (int i = 0; i < N_IMAGES; i++) assert_int_equal(put_image(f->queue, frame, 10 + i, (float)i, &error), PS_OK);
    assert_int_equal(put_end(f->queue, frame, false, &error), PS_OK);
    for (int i = 0; i < N_IMAGES; i++) {
        ps_results_next(f->queue, false, &entry, &found);
        assert_true(found && entry.image && entry.part == 10 + i && entry.frame == frame && entry.image[PIXELS - 1] == (float)i);
        ps_results_done(f->queue);
    }
    ps_results_next(f->queue, false, &entry, &found);
    assert_true(found && !entry.image && !entry.left_alone);
    ps_results_done(f->queue);
    ps_results_next(f->queue, false, &entry, &found);
    assert_false(found);
    assert_int_equal(ps_results_wait(f->queue, &error), PS_OK);
    assert_int_equal(count_left(f->queue), 0);
}

static void a_failure_is_told_and_frames_are_left(void **state) {
    const fixture *f = *state;
    ps_error error = {0}, reason = {.code = PS_E_IO, .text = "the disk is full"};
    ps_results_entry entry;
    int ended, going;
    bool found;
    float *image;
    ps_results_take_frame(f->queue, &ended, NULL, &error);
    put_image(f->queue, ended, 0, 1, &error);
    assert_int_equal(put_end(f->queue, ended, false, &error), PS_OK);
    assert_int_equal(ps_results_take_frame(f->queue, &going, NULL, &error), PS_OK);
    assert_int_equal(ps_results_take_image(f->queue, &image, NULL, &error), PS_OK);
    ps_results_next(f->queue, false, &entry, &found);
    assert_true(found);
    ps_results_fail(f->queue, &reason);
    ps_results_next(f->queue, true, &entry, &found); /* does not wait */
    assert_false(found);
    entry = (ps_results_entry){.frame = going, .image = image};
    assert_int_equal(ps_results_put(f->queue, &entry, &error), PS_E_IO);
    assert_string_equal(error.text, "the disk is full");
    error = (ps_error){0};
    assert_int_equal(ps_results_take_image(f->queue, &image, NULL, &error), PS_E_IO);
    assert_int_equal(ps_results_check(f->queue, NULL), PS_E_IO);
    assert_int_equal(ps_results_wait(f->queue, NULL), PS_E_IO);
    assert_int_equal(put_end(f->queue, going, false, NULL), PS_E_IO);
    assert_int_equal(count_left(f->queue), 1); /* not the one that was going on: it is whose it was */
    assert_true(ps_results_is_left(f->queue, ended));
}

static void frames_left_alone_are_no_ones(void **state) {
    const fixture *f = *state;
    ps_error error = {0}, reason = {.code = PS_E_DEVICE, .text = "gone"};
    int first, second;
    ps_results_take_frame(f->queue, &first, NULL, &error);
    assert_int_equal(put_end(f->queue, first, true, &error), PS_OK);
    ps_results_take_frame(f->queue, &second, NULL, &error);
    assert_int_equal(put_end(f->queue, second, false, &error), PS_OK);
    ps_results_fail(f->queue, &reason);
    assert_int_equal(count_left(f->queue), 1);
    assert_true(ps_results_is_left(f->queue, second));
}

/* ---- in two ---- */

typedef struct {
    ps_results_queue *queue;
    int fail_after; /* entries; -1: never */
    int64_t n_images, n_ends, last_part;
    bool in_order;
    float sum;
} writing;

static void *write_all(void *argument) {
    writing *w = argument;
    ps_results_entry entry;
    bool found;
    for (int n = 0;; n++) {
        ps_results_next(w->queue, true, &entry, &found);
        if (!found) return NULL;
        if (n == w->fail_after) {
            ps_results_fail(w->queue, &(ps_error){.code = PS_E_IO, .text = "no space"});
            return NULL;
        }
        if (entry.image) {
            w->in_order = w->in_order && entry.part == w->last_part + 1;
            w->last_part = entry.part;
            w->sum += entry.image[n % PIXELS] - (float)entry.part;
            w->n_images++;
            if (n % 5 == 0) nap(50);
        } else {
            w->n_ends++;
        }
        ps_results_done(w->queue);
    }
}

static ps_code compute_all(ps_results_queue *queue, int64_t *n_begun, ps_error *error) {
    for (int frame = 0, place; frame < FRAMES_DONE; frame++) {
        PS_TRY(ps_results_take_frame(queue, &place, NULL, error));
        for (int i = 0; i < IMAGES_EACH; i++) {
            int64_t part = frame * IMAGES_EACH + i;
            PS_TRY(put_image(queue, place, part, (float)part, error));
            if (i % 3 == 0) nap(20);
        }
        PS_TRY(put_end(queue, place, false, error));
        ++*n_begun;
    }
    return PS_OK;
}

static void two_threads_pass_everything_on(void **state) {
    const fixture *f = *state;
    ps_error error = {0};
    int64_t n_ended = 0;
    writing w = {.queue = f->queue, .fail_after = -1, .last_part = -1, .in_order = true};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_all, &w), 0);
    assert_int_equal(compute_all(f->queue, &n_ended, &error), PS_OK);
    assert_int_equal(ps_results_wait(f->queue, &error), PS_OK);
    assert_int_equal(count_left(f->queue), 0);
    ps_results_close(f->queue);
    pthread_join(thread, NULL);
    assert_true(w.in_order && w.sum == 0);
    assert_int_equal(w.n_images, FRAMES_DONE * IMAGES_EACH);
    assert_int_equal(w.n_ends, FRAMES_DONE);
}

static void who_computes_hears_of_a_failure(void **state) {
    const fixture *f = *state;
    for (int after = 0; after < 3 * (IMAGES_EACH + 1); after++) {
        ps_error error = {0};
        ps_results_queue *queue;
        int64_t n_ended = 0;
        assert_int_equal(ps_results_create(N_IMAGES, f->images, N_FRAMES, &queue, &error), PS_OK);
        writing w = {.queue = queue, .fail_after = after, .last_part = -1, .in_order = true};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, write_all, &w), 0);
        assert_int_equal(compute_all(queue, &n_ended, &error), PS_E_IO);
        assert_string_equal(error.text, "no space");
        ps_results_close(queue);
        pthread_join(thread, NULL);
        assert_int_equal(count_left(queue), n_ended - w.n_ends); /* ended and not written: none is lost, none is twice */
        ps_results_destroy(queue);
    }
}

static void *free_one_later(void *argument) {
    nap(20000);
    ps_results_done(argument);
    return NULL;
}

static void no_more_is_taken_than_there_is(void **state) {
    const fixture *f = *state;
    ps_error error = {0};
    float *image;
    int frame, second;
    double waited_s = 0;
    pthread_t thread;
    ps_results_take_frame(f->queue, &frame, NULL, &error);
    for (int i = 0; i < N_IMAGES; i++) assert_int_equal(put_image(f->queue, frame, i, 0, &error), PS_OK);
    assert_int_equal(pthread_create(&thread, NULL, free_one_later, f->queue), 0);
    assert_int_equal(ps_results_take_image(f->queue, &image, &waited_s, &error), PS_OK);
    pthread_join(thread, NULL);
    assert_ptr_equal(image, f->images[0]); /* the one that was written first is the only one there can be */
    assert_true(waited_s > 0);
    ps_results_return_image(f->queue, image);
    assert_int_equal(ps_results_take_image(f->queue, &image, NULL, &error), PS_OK);
    assert_int_equal(ps_results_take_frame(f->queue, &second, NULL, &error), PS_OK);
    assert_int_not_equal(frame, second);
}

static void *close_later(void *argument) {
    nap(20000);
    ps_results_close(argument);
    return NULL;
}

static void closing_ends_who_waits_for_entries(void **state) {
    const fixture *f = *state;
    ps_results_entry entry;
    bool found = true;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, close_later, f->queue), 0);
    ps_results_next(f->queue, true, &entry, &found);
    assert_false(found);
    pthread_join(thread, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(entries_come_in_their_order, begin, end),
        cmocka_unit_test_setup_teardown(a_failure_is_told_and_frames_are_left, begin, end),
        cmocka_unit_test_setup_teardown(frames_left_alone_are_no_ones, begin, end),
        cmocka_unit_test_setup_teardown(two_threads_pass_everything_on, begin, end),
        cmocka_unit_test_setup_teardown(who_computes_hears_of_a_failure, begin, end),
        cmocka_unit_test_setup_teardown(no_more_is_taken_than_there_is, begin, end),
        cmocka_unit_test_setup_teardown(closing_ends_who_waits_for_entries, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
