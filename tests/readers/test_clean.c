/* Values that are no counts become the invalid-count value of their type, each kind counted, and nothing else changes. */
#include <math.h>

#include "input/adapters/clean.h"
#include "input/open.h"
#include "recordings.h"

static void test_unsigned(void **unused) {
    (void)unused;
    uint16_t counts[] = {0, 1, 4094, 4095, 4096, 65534, 65535};
    ps_invalid_counts found = {0};
    ps_counts_clean(counts, 7, PS_U16, 4095, &found);
    static const uint16_t expected[] = {0, 1, 4094, 65535, 65535, 65535, 65535};
    assert_memory_equal(counts, expected, sizeof expected);
    assert_int_equal(found.n_saturated, 3); /* what carried the invalid-count value already is the backend's to count */
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

/* Markers in types that are not the detector's own, through a reader: what becomes of one pattern. */
static void expect_cleaned(hid_t type, const void *values, const double *expected, ps_dtype dtype, ps_invalid_counts counted) {
    hid_t file = create_file(in_folder("m.h5")), space = H5Screate_simple(3, (hsize_t[]){1, 1, 6}, NULL);
    hid_t dataset = H5Dcreate2(file, "d", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset), H5Sclose(space), H5Fclose(file);
    ps_reader *reader = NULL;
    uint8_t counts[6 * sizeof(double)];
    assert_int_equal(ps_reader_open(in_folder("m.h5"), &(ps_reader_options){.exclude_invalid = true}, &reader, NULL), PS_OK);
    assert_int_equal(reader->info.dtype, dtype);
    assert_int_equal(ps_reader_read(reader, 0, 1, counts, NULL), PS_OK);
    for (size_t i = 0; i < 6; i++) {
        double found = load_count(counts, i, dtype), invalid_value = ps_dtype_invalid_value(dtype);
        bool is_none = isnan(found) || (invalid_value > 0 && found == invalid_value);
        if (isnan(expected[i]) ? !is_none : found != expected[i]) fail_msg("value %d: found %g, expected %g", (int)i, found, expected[i]);
    }
    ps_invalid_counts found = ps_reader_invalid(reader);
    assert_int_equal(found.n_saturated, counted.n_saturated);
    assert_int_equal(found.n_negative, counted.n_negative);
    assert_int_equal(found.n_nonfinite, counted.n_nonfinite);
    ps_reader_close(reader);
}

static void test_wide_types(void **unused) {
    (void)unused;
    const ps_invalid_counts none = {0}, two_negative = {.n_negative = 2}, one_negative = {.n_negative = 1};
    expect_cleaned(H5T_NATIVE_INT64, (int64_t[]){-1, 5, INT64_MAX, UINT32_MAX, INT64_MIN, 70000}, (double[]){NAN, 5, NAN, NAN, NAN, 70000},
                   PS_F64, two_negative);
    expect_cleaned(H5T_NATIVE_UINT64, (uint64_t[]){UINT64_MAX, 5, UINT32_MAX, INT64_MAX, 1, 65536}, (double[]){NAN, 5, NAN, NAN, 1, 65536},
                   PS_F64, none);
    expect_cleaned(H5T_NATIVE_INT32, (int32_t[]){INT32_MAX, 5, -1, INT32_MAX - 1, 65535, 0},
                   (double[]){NAN, 5, NAN, INT32_MAX - 1, 65535, 0}, PS_U32, one_negative);
    expect_cleaned(H5T_NATIVE_INT16, (int16_t[]){INT16_MAX, 5, -1, INT16_MAX - 1, 255, 0}, (double[]){NAN, 5, NAN, INT16_MAX - 1, 255, 0},
                   PS_U16, one_negative);
    expect_cleaned(H5T_NATIVE_UINT32, (uint32_t[]){UINT32_MAX, 5, 65535, INT32_MAX, 0, 1}, (double[]){NAN, 5, 65535, INT32_MAX, 0, 1},
                   PS_U32, none);
    expect_cleaned(H5T_NATIVE_UINT32, (uint32_t[]){65535, 5, 32767, UINT32_MAX, 0, 65535}, (double[]){NAN, 5, 32767, NAN, 0, NAN}, PS_U32,
                   none); /* stands alone */
    expect_cleaned(H5T_NATIVE_UINT32, (uint32_t[]){65535, 65534, 0, 0, 0, 0}, (double[]){65535, 65534, 0, 0, 0, 0}, PS_U32, none);
    expect_cleaned(H5T_NATIVE_INT32, (int32_t[]){65535, 5, -1, INT32_MAX, 0, 1}, (double[]){NAN, 5, NAN, NAN, 0, 1}, PS_U32, one_negative);
}

static void test_floating_copies(void **unused) {
    (void)unused;
    const ps_invalid_counts none = {0}, one_nonfinite = {.n_nonfinite = 1};
    expect_cleaned(H5T_NATIVE_FLOAT, (float[]){(float)UINT32_MAX, 5.5f, -1, (float)INT32_MAX, 0, 1e9f},
                   (double[]){NAN, 5.5, -1, NAN, 0, 1e9}, PS_F32, none);
    expect_cleaned(H5T_NATIVE_DOUBLE, (double[]){UINT32_MAX, INT32_MAX, 0x1p64, 0x1p63, NAN, 4294967294.0},
                   (double[]){NAN, NAN, NAN, NAN, NAN, 4294967294.0}, PS_F64, one_nonfinite);
    expect_cleaned(H5T_NATIVE_FLOAT, (float[]){65535, 32767, -3, 0, 65535, (float)UINT32_MAX}, (double[]){NAN, 32767, -3, 0, NAN, NAN},
                   PS_F32, none); /* stands alone */
    expect_cleaned(H5T_NATIVE_FLOAT, (float[]){65535, 60000, 0, 0, 0, 0}, (double[]){65535, 60000, 0, 0, 0, 0}, PS_F32, none);
    expect_cleaned(H5T_NATIVE_FLOAT, (float[]){-1, 5, 0, -1, 7, NAN}, (double[]){NAN, 5, 0, NAN, 7, NAN}, PS_F32, one_nonfinite);
    expect_cleaned(H5T_NATIVE_DOUBLE, (double[]){-1, 5, 0, 3, 7, -1}, (double[]){NAN, 5, 0, 3, 7, NAN}, PS_F64, none);
    expect_cleaned(H5T_NATIVE_DOUBLE, (double[]){-1, 5, 0, 3, 7, -2}, (double[]){-1, 5, 0, 3, 7, -2}, PS_F64, none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsigned), cmocka_unit_test(test_signed),     cmocka_unit_test(test_floating),
        cmocka_unit_test(test_reader),   cmocka_unit_test(test_wide_types), cmocka_unit_test(test_floating_copies),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
