/* Series of files: natural order, globs, datasets, stems, selection, and every way a list can be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "input/name_list.h"
#include "input/series.h"

static char folder[] = "/tmp/ptyseries-series-XXXXXX";

static void touch(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("x", file);
    fclose(file);
}

static int set_up(void **unused) {
    (void)unused;
    if (!mkdtemp(folder)) return -1;
    static const char *const names[] = {"scan_1_master.h5", "scan_2_master.h5", "scan_10_master.h5", "scan_010_master.h5",
                                        "a b.npy",          "µ-1.npy",          "odd:name.h5",       "[1].npy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) touch(names[i]);
    char path[256];
    snprintf(path, sizeof path, "%s/link.npy", folder);
    return symlink("a b.npy", path);
}

static int tear_down(void **unused) {
    (void)unused;
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static void test_natural_compare(void **unused) {
    (void)unused;
    assert_true(ps_natural_compare("scan_2", "scan_10") < 0);
    assert_true(ps_natural_compare("scan_10", "scan_2") > 0);
    assert_int_equal(ps_natural_compare("a1b02", "a1b2"), 0);
    assert_true(ps_natural_compare("a", "a1") < 0);
    assert_true(ps_natural_compare("run99999999999999999999", "run100000000000000000000") < 0);
    assert_true(ps_natural_compare("a9", "aa") < 0);
    assert_true(ps_natural_compare("", "") == 0);
}

static void expect_error(const char *pattern, int64_t first, int64_t count, int64_t stride, const char *text) {
    ps_series series;
    ps_error error = {0};
    assert_int_equal(ps_series_build(folder, &pattern, 1, first, count, stride, &series, &error), PS_E_INPUT);
    assert_int_equal(series.n_items, 0);
    if (!strstr(error.text, text)) fail_msg("'%s' does not say '%s'", error.text, text);
}

static void test_order_and_stems(void **unused) {
    (void)unused;
    const char *patterns[] = {"scan_*_master.h5", "a b.npy"};
    ps_series series;
    ps_error error = {0};
    assert_int_equal(ps_series_build(folder, patterns, 2, 0, -1, 1, &series, &error), PS_OK);
    static const char *const stems[] = {"scan_1", "scan_2", "scan_010", "scan_10", "a b"};
    assert_int_equal(series.n_items, 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(series.items[i].stem, stems[i]);
        assert_int_equal(series.items[i].source[0], '/');
        assert_int_equal(series.items[i].bytes, 1);
        assert_true(series.items[i].mtime_ns > 0);
    }
    ps_series_free(&series);
}

static void test_selection(void **unused) {
    (void)unused;
    const char *pattern = "scan_*.h5";
    ps_series series;
    assert_int_equal(ps_series_build(folder, &pattern, 1, 1, 2, 2, &series, NULL), PS_OK);
    assert_int_equal(series.n_items, 2);
    assert_string_equal(series.items[0].stem, "scan_2");
    assert_string_equal(series.items[1].stem, "scan_10");
    ps_series_free(&series);
    expect_error(pattern, 4, -1, 1, "series.first: found 4, but series.files names 4");
    expect_error(pattern, 0, 5, 1, "series.count: found 5");
    expect_error(pattern, 0, 0, 1, "series.count: found 0");
}

static void test_datasets(void **unused) {
    (void)unused;
    const char *patterns[] = {"scan_1_master.h5:/a/b", "scan_1_master.h5:/c", "odd:name.h5", "{µ-1,[[]1]}.npy"};
    ps_series series;
    ps_error error = {0};
    assert_int_equal(ps_series_build(folder, patterns, 4, 0, -1, 1, &series, &error), PS_OK);
    assert_int_equal(series.n_items, 5);
    assert_true(strstr(series.items[0].source, "/scan_1_master.h5:/a/b") != NULL);
    assert_string_equal(series.items[0].stem, "scan_1");
    assert_string_equal(series.items[2].stem, "odd:name");
    ps_series_free(&series);
    const char *literal = "[1].npy"; /* a file that is there is no glob */
    assert_int_equal(ps_series_build(folder, &literal, 1, 0, -1, 1, &series, NULL), PS_OK);
    ps_series_free(&series);
}

static void test_what_is_wrong(void **unused) {
    (void)unused;
    expect_error("nothing_*.h5", 0, -1, 1, "nothing matches");
    expect_error("missing.h5", 0, -1, 1, "nothing matches");
    expect_error(".", 0, -1, 1, "not a file");
    expect_error("{a b,link}.npy", 0, -1, 1, "the same recording comes twice");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_natural_compare), cmocka_unit_test(test_order_and_stems), cmocka_unit_test(test_selection),
        cmocka_unit_test(test_datasets),        cmocka_unit_test(test_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
