/* Reading a part of a frame's results back: whatever the threads, every byte is compared and the CRC-32 is that of the whole. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "store/part_check.h"

enum { ROWS = 2, PARTS = 2, SIDE = 1003, PART = SIDE * SIDE * 4, HEAD = 77 }; /* bytes; no multiple of a piece or a slice */

static const ps_rows rows = {
    .name = "some/results", .rank = 4, .dims = {ROWS, PARTS, SIDE, SIDE}, .offset = HEAD, .element_bytes = 4, .row_bytes = PARTS * PART};

typedef struct {
    int fd;
    unsigned char *bytes; /* [ROWS * PARTS * PART], as they stand in the file behind its head */
} fixture;

static void fill(fixture *f) {
    char path[] = "/tmp/ptyseries-part-XXXXXX";
    size_t n = (size_t)ROWS * PARTS * PART;
    f->fd = mkstemp(path);
    assert_true(f->fd >= 0);
    unlink(path);
    f->bytes = malloc(n);
    for (size_t i = 0; i < n; i++) f->bytes[i] = (unsigned char)(i * 2654435761u >> 24);
    assert_int_equal(pwrite(f->fd, f->bytes, n, HEAD), n);
}

static void drop(fixture *f) {
    close(f->fd);
    free(f->bytes);
}

static void the_sum_is_that_of_the_whole(void **state) {
    (void)state;
    fixture f;
    fill(&f);
    for (int n_threads = 1; n_threads <= PS_PART_CHECK_MOST; n_threads++) {
        ps_part_check *check;
        assert_int_equal(ps_part_check_create(n_threads, &check, NULL), PS_OK);
        for (int part = 0; part < ROWS * PARTS; part++) {
            uint32_t crc = 0;
            bool same = false;
            const unsigned char *values = f.bytes + (size_t)part * PART;
            assert_int_equal(ps_part_check_run(check, &rows, f.fd, part / PARTS, part % PARTS, values, &crc, &same, NULL), PS_OK);
            assert_true(same);
            assert_int_equal(crc, crc32_z(0, values, PART));
        }
        ps_part_check_destroy(check);
    }
    drop(&f);
}

static void a_changed_byte_is_seen(void **state) {
    (void)state;
    fixture f;
    fill(&f);
    for (int n_threads = 1; n_threads <= PS_PART_CHECK_MOST; n_threads++) {
        ps_part_check *check;
        assert_int_equal(ps_part_check_create(n_threads, &check, NULL), PS_OK);
        for (int k = 0; k <= 8; k++) {
            size_t at = (size_t)(PART - 1) * (size_t)k / 8;
            unsigned char *values = f.bytes + 3 * (size_t)PART;
            uint32_t crc = 0;
            bool same = true;
            values[at] ^= 1;
            assert_int_equal(ps_part_check_run(check, &rows, f.fd, 1, 1, values, &crc, &same, NULL), PS_OK);
            assert_false(same);
            assert_int_equal(crc, crc32_z(0, values, PART));
            values[at] ^= 1;
        }
        ps_part_check_destroy(check);
    }
    drop(&f);
}

static void a_file_that_ends_early_is_told(void **state) {
    (void)state;
    fixture f;
    fill(&f);
    assert_int_equal(ftruncate(f.fd, HEAD + (off_t)ROWS * PARTS * PART - 1), 0);
    for (int n_threads = 1; n_threads <= PS_PART_CHECK_MOST; n_threads++) {
        ps_part_check *check;
        ps_error error = {0};
        uint32_t crc = 0;
        bool same = true;
        assert_int_equal(ps_part_check_create(n_threads, &check, NULL), PS_OK);
        assert_int_equal(ps_part_check_run(check, &rows, f.fd, 1, 1, f.bytes + 3 * (size_t)PART, &crc, &same, &error), PS_E_IO);
        assert_false(same);
        assert_non_null(strstr(error.text, "some/results"));
        assert_non_null(strstr(error.text, "the file ends there"));
        ps_part_check_destroy(check);
    }
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_is_that_of_the_whole),
        cmocka_unit_test(a_changed_byte_is_seen),
        cmocka_unit_test(a_file_that_ends_early_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
