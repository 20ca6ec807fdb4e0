/* The loader's thread and its user meet at every moment of a recording: what they say of it is whole, and nothing hangs. Under
 * -fsanitize=thread this is also where unlocked reads show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input/loader.h"

enum { N_POSITIONS = 24, N_PIXELS = 64, N_INFINITE = 5 };

static char directory[] = "/tmp/ptyseries_loader_XXXXXX";
static char good[64], other[64], damaged[64];

static void write_npy(const char *path, const char *shape, int64_t n_values) {
    char header[119];
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    int used = snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shape);
    memset(header + used, ' ', sizeof header - (size_t)used);
    header[117] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(header, 1, 118, file);
    for (int64_t i = 0; i < n_values; i++) {
        float value = i < N_INFINITE ? INFINITY : (float)i;
        fwrite(&value, sizeof value, 1, file);
    }
    fclose(file);
}

static int write_recordings(void **state) {
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(good, sizeof good, "%s/good.npy", directory);
    snprintf(other, sizeof other, "%s/other.npy", directory);
    snprintf(damaged, sizeof damaged, "%s/damaged.npy", directory);
    write_npy(good, "(4, 6, 8, 8)", N_POSITIONS * N_PIXELS);
    write_npy(other, "(4, 6, 8, 9)", N_POSITIONS * 72);
    FILE *file = fopen(damaged, "wb");
    assert_non_null(file);
    fputs("no recording", file);
    fclose(file);
    return 0;
}

static int remove_recordings(void **state) {
    (void)state;
    unlink(good);
    unlink(other);
    unlink(damaged);
    return rmdir(directory);
}

static ps_loader *create(int n_slots) {
    ps_error error = {0};
    ps_loader *loader;
    ps_loader_shape shape = {
        .options = {.exclude_invalid = true}, .n_positions = N_POSITIONS, .detector_rows = 8, .detector_columns = 8, .dtype = PS_F32};
    if (ps_loader_create(&shape, (size_t)n_slots * N_PIXELS * sizeof(float), &loader, &error) != PS_OK) fail_msg("%s", error.text);
    return loader;
}

static void begin(ps_loader *loader, const char *source) {
    ps_error error = {0};
    if (ps_loader_begin(loader, source, &error) != PS_OK) fail_msg("%s", error.text);
}

/* Takes up to most chunks; returns how many positions came, all in order and right. */
static int64_t take(ps_loader *loader, int64_t most, bool *end) {
    int64_t n = 0;
    *end = false;
    while (most-- > 0) {
        ps_loader_chunk chunk;
        ps_error error = {0};
        if (ps_loader_next(loader, &chunk, end, &error) != PS_OK) fail_msg("%s", error.text);
        assert_true(ps_loader_found(loader).invalid.n_nonfinite <= N_INFINITE); /* at any moment */
        assert_true(ps_loader_seconds(loader) >= 0);
        if (*end) return n;
        assert_int_equal(chunk.first_position, n);
        const float *counts = chunk.counts;
        assert_true(counts[chunk.n_positions * N_PIXELS - 1] == (float)((n + chunk.n_positions) * N_PIXELS - 1));
        n += chunk.n_positions;
        ps_loader_release(loader);
    }
    return n;
}

static void test_findings_are_whole_at_the_end(void **state) {
    (void)state;
    bool end;
    ps_loader *loader = create(4);
    for (int round = 0; round < 50; round++) {
        begin(loader, good);
        assert_int_equal(take(loader, INT64_MAX, &end), N_POSITIONS);
        assert_true(end);
        assert_int_equal(ps_loader_found(loader).invalid.n_nonfinite, N_INFINITE);
        assert_true(ps_loader_seconds(loader) > 0);
    }
    ps_loader_destroy(loader);
}

static void test_cancelled_anywhere(void **state) {
    (void)state;
    bool end;
    ps_loader *loader = create(2);
    for (int n_chunks = 0; n_chunks <= N_POSITIONS; n_chunks++) {
        begin(loader, good);
        assert_int_equal(take(loader, n_chunks, &end), n_chunks);
        ps_loader_cancel(loader);
        assert_true(ps_loader_found(loader).invalid.n_nonfinite <= N_INFINITE);
        ps_loader_cancel(loader); /* nothing is in hand any more */
    }
    begin(loader, good);
    ps_loader_destroy(loader); /* in the middle of it */
}

/* A user that turns to another recording need not have seen the end of the first. */
static void test_begun_anew_while_reading(void **state) {
    (void)state;
    bool end;
    ps_loader *loader = create(2);
    for (int round = 0; round < 30; round++) {
        begin(loader, good);
        take(loader, round % 5, &end);
        begin(loader, good);
        assert_int_equal(take(loader, INT64_MAX, &end), N_POSITIONS);
        assert_int_equal(ps_loader_found(loader).invalid.n_nonfinite, N_INFINITE);
    }
    ps_loader_destroy(loader);
}

static void test_errors_belong_to_one_recording(void **state) {
    (void)state;
    const char *bad[] = {damaged, other};
    bool end;
    ps_loader *loader = create(4);
    for (int round = 0; round < 20; round++) {
        ps_loader_chunk chunk;
        ps_error error = {0};
        begin(loader, bad[round % 2]);
        assert_int_equal(ps_loader_next(loader, &chunk, &end, &error), PS_E_INPUT);
        assert_non_null(strstr(error.text, bad[round % 2]));
        begin(loader, good);
        assert_int_equal(take(loader, INT64_MAX, &end), N_POSITIONS);
    }
    ps_loader_destroy(loader);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_findings_are_whole_at_the_end), cmocka_unit_test(test_cancelled_anywhere),
                                       cmocka_unit_test(test_begun_anew_while_reading),
                                       cmocka_unit_test(test_errors_belong_to_one_recording)};
    return cmocka_run_group_tests(tests, write_recordings, remove_recordings);
}
