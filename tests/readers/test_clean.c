/* Values that are no counts become the marker of their type, each kind counted, and nothing else changes. */
#include <math.h>

#include "input/clean.h"
#include "recordings.h"

static void test_unsigned(void **unused) {
    (void)unused;
    uint16_t counts[] = {0, 1, 4094, 4095, 4096, 65534, 65535};
    ps_invalid_counts found = {0};
    ps_counts_clean(counts, 7, PS_U16, 4095, &found);
    static const uint16_t expected[] = {0, 1, 4094, 65535, 65535, 65535, 65535};
    assert_memory_equal(counts, expected, sizeof expected);
    assert_int_equal(found.n_saturated, 3); /* what carried the marker already is the backend's to count */
    uint8_t bytes[] = {0, 254, 255};
    ps_counts_clean(bytes, 3, PS_U8, NAN, &found);
    assert_int_equal(bytes[1], 254);
    ps_counts_clean(bytes, 3, PS_U8, 253.5, &found);
    assert_int_equal(bytes[1], 255);
    uint32_t words[] = {UINT32_MAX - 1, 70000, 0};
    ps_counts_clean(words, 3, PS_U32, 1e300, &found);
    assert_int_equal(words[0], UINT32_MAX - 1);
    ps_counts_clean(words, 3, PS_U32, 70000, &found);
    assert_int_equal(words[0], UINT32_MAX);
    assert_int_equal(words[1], UINT32_MAX);
    assert_int_equal(words[2], 0);
}

static void test_signed(void **unused) {
    (void)unused;
    int16_t counts[] = {-32768, -1, 0, 1, 32767};
    ps_invalid_counts found = {0};
    ps_counts_clean(counts, 5, PS_I16, NAN, &found);
    static const uint16_t expected[] = {65535, 65535, 0, 1, 32767};
    assert_memory_equal(counts, expected, sizeof expected);
    assert_int_equal(found.n_negative, 2);
    int32_t words[] = {-5, 100, 101};
    ps_counts_clean(words, 3, PS_I32, 101, &found);
    assert_int_equal(((uint32_t *)words)[0], UINT32_MAX);
    assert_int_equal(words[1], 100);
    assert_int_equal(((uint32_t *)words)[2], UINT32_MAX);
}

static void test_floating(void **unused) {
    (void)unused;
    float counts[] = {-3.5f, 0, INFINITY, -INFINITY, NAN, 99, 100, 1e30f};
    ps_invalid_counts found = {0};
    ps_counts_clean(counts, 8, PS_F32, 100, &found);
    assert_true(counts[0] == -3.5f && counts[1] == 0 && counts[5] == 99); /* noise of a subtracted dark level stays */
    for (int i = 0; i < 8; i++) assert_int_equal(!!isnan(counts[i]), (i >= 2 && i <= 4) || i >= 6);
    assert_int_equal(found.n_nonfinite, 3);
    assert_int_equal(found.n_saturated, 2);
    double values[] = {NAN, 7};
    ps_counts_clean(values, 2, PS_F64, NAN, &found);
    assert_int_equal(found.n_nonfinite, 4);
    assert_true(values[1] == 7);
}

static void test_reader(void **unused) {
    (void)unused;
    hid_t file = create_file(in_folder("c.h5")), space = H5Screate_simple(3, (hsize_t[]){2, 1, 3}, NULL);
    hid_t dataset = H5Dcreate2(file, "d", H5T_NATIVE_INT8, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_INT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, (int8_t[]){1, -2, 3, 4, 5, -6});
    H5Dclose(dataset), H5Sclose(space), H5Fclose(file);
    ps_reader *reader = NULL;
    ps_reader_options o = {.exclude_invalid = true, .serpentine = true, .scan_rows = 1, .scan_columns = 2};
    uint8_t counts[6];
    assert_int_equal(ps_reader_open(in_folder("c.h5"), &o, &reader, NULL), PS_OK);
    assert_int_equal(reader->info.dtype, PS_U8);
    assert_int_equal(ps_reader_read(reader, 0, 2, counts, NULL), PS_OK);
    assert_memory_equal(counts, ((uint8_t[]){1, 255, 3, 4, 5, 255}), 6);
    assert_int_equal(ps_reader_invalid(reader).n_negative, 2);
    ps_reader_close(reader);
    reader = open_good(in_folder("c.h5"));
    assert_int_equal(reader->info.dtype, PS_I8);
    assert_int_equal(ps_reader_invalid(reader).n_negative, 0);
    ps_reader_close(reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsigned),
        cmocka_unit_test(test_signed),
        cmocka_unit_test(test_floating),
        cmocka_unit_test(test_reader),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
