/* Mean patterns through the loader, and that measuring them ends when the run is told to stop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/stop.h"
#include "plan/mean_pattern.h"

enum { ROWS = 6, COLUMNS = 7, POSITIONS = 40, PIXELS = ROWS * COLUMNS };

static char path[] = "/tmp/ptyseries_mean_XXXXXX";

/* Pattern p holds p + pixel, but nothing at all in patterns 0, 1 and 20. */
static int write_recording(void **state) {
    (void)state;
    char header[119];
    int used =
        snprintf(header, sizeof header, "{'descr': '<u2', 'fortran_order': False, 'shape': (%d, %d, %d), }", POSITIONS, ROWS, COLUMNS);
    int file = mkstemp(path);
    FILE *out = fdopen(file, "wb");
    assert_non_null(out);
    memset(header + used, ' ', sizeof header - (size_t)used);
    header[117] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, out);
    fwrite(header, 1, 118, out);
    for (int p = 0; p < POSITIONS; p++)
        for (int k = 0; k < PIXELS; k++) {
            uint16_t count = p < 2 || p == 20 ? 0 : (uint16_t)(p + k);
            fwrite(&count, sizeof count, 1, out);
        }
    return fclose(out);
}

static int remove_recording(void **state) {
    (void)state;
    return unlink(path);
}

/* ring_bytes: small, so that chunks hold few positions. */
static ps_loader *open_loader(ps_loader_shape *shape, size_t ring_bytes) {
    ps_loader *loader = NULL;
    ps_error error = {0};
    *shape = (ps_loader_shape){.n_positions = POSITIONS, .detector_rows = ROWS, .detector_columns = COLUMNS, .dtype = PS_U16};
    if (ps_loader_create(shape, ring_bytes, &loader, &error) != PS_OK) fail_msg("%s", error.text);
    return loader;
}

static void means_are_exact(void **state) {
    (void)state;
    double mean[PIXELS];
    ps_loader_shape shape;
    ps_error error = {0};
    ps_loader *loader = open_loader(&shape, 1 << 20);
    if (ps_mean_pattern(loader, &shape, path, mean, NULL, &error) != PS_OK) fail_msg("%s", error.text);
    for (int k = 0; k < PIXELS; k++) assert_true(mean[k] == (780.0 - 21 + 37 * k) / POSITIONS);
    assert_int_equal(ps_loader_tally(loader)[20].lit, 0);
    assert_int_equal(ps_loader_tally(loader)[21].lit, PIXELS);
    ps_loader_destroy(loader);
}

/* In chunks of one, a few and all positions. */
static void odd_patterns_are_delivered_filled(void **state) {
    (void)state;
    uint8_t odd[POSITIONS] = {PS_PATTERN_EMPTY, PS_PATTERN_EMPTY, [20] = PS_PATTERN_MARKED, [39] = PS_PATTERN_EMPTY};
    const size_t rings[] = {1, 5 * 2 * PIXELS * 2, 1 << 20};
    for (int i = 0; i < 3; i++) {
        ps_loader_shape shape;
        ps_loader *loader = open_loader(&shape, rings[i]);
        ps_loader_chunk chunk;
        ps_error error = {0};
        bool end = false;
        assert_int_equal(ps_loader_begin_filled(loader, path, odd, &error), PS_OK);
        for (int at = 0; !end;) {
            if (ps_loader_next(loader, &chunk, &end, &error) != PS_OK) fail_msg("%s", error.text);
            for (int p = 0; p < chunk.n_positions; p++, at++) {
                int from = at < 2 ? 2 : at == 20 ? 19 : at == 39 ? 38 : at;
                const uint16_t *counts = (const uint16_t *)chunk.counts + p * PIXELS;
                for (int k = 0; k < PIXELS; k++) assert_int_equal(counts[k], from + k);
            }
            if (!end) ps_loader_release(loader);
        }
        ps_loader_destroy(loader);
    }
}

/* Last: the stop stays. */
static void a_stop_ends_the_measurement(void **state) {
    (void)state;
    double mean[PIXELS];
    ps_loader_shape shape;
    ps_error error = {0};
    ps_loader *loader = open_loader(&shape, 1 << 20);
    ps_stop_install(1e-12);
    assert_int_equal(ps_mean_pattern(loader, &shape, path, mean, NULL, &error), PS_E_INTERRUPTED);
    if (!strstr(error.text, "time limit")) fail_msg("%s", error.text);
    ps_loader_cancel(loader);
    ps_loader_destroy(loader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_are_exact),
        cmocka_unit_test(odd_patterns_are_delivered_filled),
        cmocka_unit_test(a_stop_ends_the_measurement),
    };
    return cmocka_run_group_tests(tests, write_recording, remove_recording);
}
