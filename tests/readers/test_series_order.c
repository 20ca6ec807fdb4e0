/* Order of time, gaps between numbers, and times in their spellings. */
#include <math.h>

#include "input/iso_time.h"
#include "input/series.h"
#include "recordings.h"

static void write_timed(const char *name, const char *time) {
    char header[385] = "", file[385 + 16] = "";
    snprintf(header, sizeof header, "MQ1,000001,00384,01,0004,0004,U08,   1x1,01,%s,0.1,0,", time);
    memcpy(file, header, sizeof header);
    write_file(in_folder(name), file, 384 + 16);
}

static void test_times(void **unused) {
    (void)unused;
    assert_true(ps_time_parse("1970-01-01T00:00:00") == 0);
    assert_true(ps_time_parse("2000-03-01T00:00:00Z") == 951868800);
    assert_true(ps_time_parse("2025-05-03T01:51:00.302+02:00") == 1746229860.302);
    assert_true(ps_time_parse("2021-04-15 14:44:30.5") == 1618497870.5);
    assert_true(ps_time_parse("1969-12-31T23:59:59") == -1);
    assert_true(ps_time_parse("2024-02-29T12:00:00-0530") == 1709227800);
    static const char *const bad[] = {
        "", "yesterday", "2021-04-15", "2021-13-15T00:00:00", "2021-04-15T25:00:00", "2021-04-15T10:00:", "2021-04-15T10:00:00 PM"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_true(isnan(ps_time_parse(bad[i])));
}

static void test_order_of_time(void **unused) {
    (void)unused;
    ps_series series;
    ps_error error = {0};
    const char *pattern = "t_*.mib";
    write_timed("t_1.mib", "2021-05-07 18:51:12.5");
    write_timed("t_2.mib", "2021-05-07 18:51:10.9");
    write_timed("t_3.mib", "2021-05-07 18:51:12.5");
    write_timed("t_4.mib", "2021-05-06 23:00:00.0");
    if (ps_series_build_ordered(test_folder, &pattern, 1, PS_SERIES_BY_TIME, NULL, 0, 3, 1, &series, &error) != PS_OK)
        fail_msg("%s", error.text);
    static const char *const stems[] = {"t_4", "t_2", "t_1"};
    assert_int_equal(series.n_items, 3);
    for (int i = 0; i < 3; i++) assert_string_equal(series.items[i].stem, stems[i]);
    assert_null(series.gaps);
    ps_series_free(&series);
    write_file(in_folder("t_20.mib"), "damaged", 7);
    if (ps_series_build_ordered(test_folder, &pattern, 1, PS_SERIES_BY_TIME, NULL, 0, -1, 1, &series, &error) != PS_OK)
        fail_msg("%s", error.text);
    assert_int_equal(series.n_items, 5);
    assert_string_equal(series.items[0].stem, "t_4");
    assert_string_equal(series.items[1].stem, "t_20"); /* it stands behind t_4 in the order of names */
    ps_series_free(&series);
    write_timed("t_5.mib", "noon");
    assert_int_equal(ps_series_build_ordered(test_folder, &pattern, 1, PS_SERIES_BY_TIME, NULL, 0, -1, 1, &series, &error), PS_E_INPUT);
    expect_text(&error, "t_5.mib: tells no time of acquisition that can be read: noon");
}

static void expect_gaps(const char *const *names, int n, const char *gaps) {
    ps_series series;
    char pattern[64] = "g/*";
    const char *patterns[] = {pattern};
    mkdir(in_folder("g"), 0777);
    for (int i = 0; i < n; i++) {
        char path[100];
        snprintf(path, sizeof path, "g/%s", names[i]);
        write_file(in_folder(path), "x", 1);
    }
    assert_int_equal(ps_series_build(test_folder, patterns, 1, 0, -1, 1, &series, NULL), PS_OK);
    if (gaps) {
        assert_non_null(series.gaps);
        assert_string_equal(series.gaps, gaps);
    } else
        assert_null(series.gaps);
    for (int64_t i = 0; i < series.n_items; i++) unlink(series.items[i].source);
    ps_series_free(&series);
}

static void test_gaps(void **unused) {
    (void)unused;
    expect_gaps((const char *[]){"a_1.h5", "a_2.h5", "a_3.h5"}, 3, NULL);
    expect_gaps((const char *[]){"a_8_master.h5", "a_9_master.h5", "a_11_master.h5", "a_14_master.h5"}, 4, "a_10, a_12 to a_13");
    expect_gaps((const char *[]){"a_008_x.h5", "a_010_x.h5"}, 2, "a_009_x");
    expect_gaps((const char *[]){"run1_a.h5", "run2_b.h5", "run9_c.h5"}, 3, NULL); /* more than the number changes */
    expect_gaps((const char *[]){"20210415.h5", "20210507.h5"}, 2, NULL);          /* dates do not count */
    expect_gaps((const char *[]){"x.h5", "y.h5"}, 2, NULL);
    expect_gaps((const char *[]){"123456789012345678901.h5", "123456789012345678909.h5"}, 2, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_times), cmocka_unit_test(test_order_of_time), cmocka_unit_test(test_gaps)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
