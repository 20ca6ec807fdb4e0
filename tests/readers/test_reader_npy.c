/* NumPy arrays: every type, both orders and byte orders, header versions; headers that lie. */
#include "input/formats/npy_header.h"
#include "input/scan_shape.h"
#include "recordings.h"

typedef struct {
    int rank;
    int64_t shape[4];
    ps_dtype dtype;
    const char *descr;
    bool fortran, big_endian;
    int version;
} made_array;

static void reverse(uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n / 2; i++) {
        uint8_t byte = bytes[i];
        bytes[i] = bytes[n - 1 - i];
        bytes[n - 1 - i] = byte;
    }
}

static size_t put_header(uint8_t *file, int version, const char *text) {
    size_t prefix = version > 1 ? 12 : 10, length = strlen(text);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (uint8_t)version;
    file[7] = 0;
    for (size_t i = 8; i < prefix; i++) file[i] = (uint8_t)(length >> 8 * (i - 8));
    memcpy(file + prefix, text, length);
    return prefix + length;
}

/* Where element (position, row, column) lies. */
static size_t place(const made_array *made, int64_t position, int64_t row, int64_t column) {
    int64_t scan_columns = made->rank == 4 ? made->shape[1] : 1, rows = made->shape[made->rank - 2], columns = made->shape[made->rank - 1];
    int64_t index[4] = {position / scan_columns, position % scan_columns, row, column};
    if (!made->fortran) return (size_t)((position * rows + row) * columns + column);
    return (size_t)(index[0] + made->shape[0] * (index[1] + scan_columns * (row + rows * column)));
}

static void write_array(const char *path, const made_array *made) {
    int64_t n = made->rank == 4 ? made->shape[0] * made->shape[1] : made->shape[0];
    int64_t rows = made->shape[made->rank - 2], columns = made->shape[made->rank - 1];
    size_t size = ps_dtype_bytes(made->dtype), all = (size_t)(n * rows * columns);
    uint8_t *file = calloc(1, 1024 + all * size);
    char text[256], shape[100] = "";
    for (int i = 0; i < made->rank; i++) snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld, ", (long long)made->shape[i]);
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }   \n", made->descr, made->fortran ? "True" : "False",
             shape);
    size_t offset = put_header(file, made->version, text);
    for (int64_t p = 0; p < n; p++)
        for (int64_t u = 0; u < rows; u++)
            for (int64_t v = 0; v < columns; v++) {
                uint8_t element[8];
                store_count(element, 0, made->dtype, count_at(p, u, v));
                if (made->big_endian) reverse(element, size);
                memcpy(file + offset + place(made, p, u, v) * size, element, size);
            }
    write_file(path, file, offset + all * size);
    free(file);
}

static void test_all_kinds(void **unused) {
    (void)unused;
    static const struct {
        ps_dtype dtype;
        const char *little, *big;
    } types[] = {{PS_U8, "|u1", "|u1"},  {PS_U16, "<u2", ">u2"}, {PS_U32, "<u4", ">u4"}, {PS_I8, "|i1", "|i1"},
                 {PS_I16, "<i2", ">i2"}, {PS_I32, "<i4", ">i4"}, {PS_F32, "<f4", ">f4"}, {PS_F64, "<f8", ">f8"}};
    for (int t = 0; t < 8; t++)
        for (int kind = 0; kind < 12; kind++) {
            bool fortran = kind & 1, big = kind & 2;
            made_array made = {4, {3, 5, 7, 4}, types[t].dtype, big ? types[t].big : types[t].little, fortran, big, 1 + kind / 4};
            write_array(in_folder("a.npy"), &made);
            expect_recording(in_folder("a.npy"), 15, 7, 4, types[t].dtype);
            made = (made_array){3, {15, 7, 4}, types[t].dtype, big ? types[t].big : types[t].little, fortran, big, 1 + kind / 4};
            write_array(in_folder("a.npy"), &made);
            expect_recording(in_folder("a.npy"), 15, 7, 4, types[t].dtype);
        }
}

static void test_scan_shape(void **unused) {
    (void)unused;
    write_array(in_folder("s.npy"), &(made_array){4, {3, 5, 2, 2}, PS_U8, "|u1", false, false, 1});
    ps_reader *reader = open_good(in_folder("s.npy"));
    int64_t rows, columns;
    assert_int_equal(ps_reader_scan_shape(reader, NULL, &rows, &columns, NULL), PS_OK);
    assert_int_equal(rows, 3);
    assert_int_equal(columns, 5);
    ps_reader_close(reader);
}

static void refuse_header(const char *text, const char *reason) {
    uint8_t file[2048] = {0};
    size_t n = put_header(file, 1, text);
    write_file(in_folder("bad.npy"), file, n + 24);
    expect_refusal(in_folder("bad.npy"), reason);
}

static void test_bad_headers(void **unused) {
    (void)unused;
    refuse_header("{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3, 4), }", "elements of type '<c8'");
    refuse_header("{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (2, 3, 4), }", "elements of type [('a'");
    refuse_header("{'descr': '<u8', 'fortran_order': False, 'shape': (2, 3, 4), }", "convert with array.astype");
    refuse_header("{'fortran_order': False, 'shape': (2, 3, 4), }", "no 'descr'");
    refuse_header("{'descr': '|u1', 'shape': (2, 3, 4), }", "does not say 'fortran_order'");
    refuse_header("{'descr': '|u1', 'fortran_order': 0, 'shape': (2, 3, 4), }", "does not say 'fortran_order'");
    refuse_header("{'descr': '|u1', 'fortran_order': False, }", "no 'shape'");
    refuse_header("{'descr': '|u1', 'fortran_order': False, 'shape': (2, -3, 4), }", "an impossible shape");
    refuse_header("{'descr': '|u1', 'fortran_order': False, 'shape': (2, x), }", "an impossible shape");
    refuse_header("{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807, 3, 4), }", "an impossible shape");
    refuse_header("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, 4", "shape does not end");
    refuse_header("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 6), }", "rank 2, expected 3");
    refuse_header("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 6, 2), }", "the array is empty");
    refuse_header("{'descr': '|u1', 'fortran_order': False, 'shape': (5, 3, 4), }", "promises 60 elements of 1 bytes, the file has only");
    refuse_header("{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952, 1, 1), }",
                  "promises 2305843009213693952 elements");
}

static void test_short_files(void **unused) {
    (void)unused;
    uint8_t file[300] = {0};
    size_t n = put_header(file, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, 4), }");
    for (size_t cut = 6; cut < n; cut++) {
        write_file(in_folder("cut.npy"), file, cut);
        expect_refusal(in_folder("cut.npy"), "cut.npy: the .npy file ends inside its header");
    }
    file[6] = 9;
    write_file(in_folder("cut.npy"), file, n);
    expect_refusal(in_folder("cut.npy"), ".npy version 9");
}

static void test_file_that_shrinks(void **unused) {
    (void)unused;
    write_array(in_folder("shrink.npy"), &(made_array){3, {9, 5, 5}, PS_U16, "<u2", false, false, 1});
    ps_reader *reader = open_good(in_folder("shrink.npy"));
    uint16_t counts[9 * 25];
    ps_error error = {0};
    assert_int_equal(truncate(in_folder("shrink.npy"), 300), 0);
    expect_counts(reader, 0, 2);
    assert_int_equal(ps_reader_read(reader, 0, 9, counts, &error), PS_E_INPUT);
    expect_text(&error, "ends at byte 300");
    ps_reader_close(reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_kinds),   cmocka_unit_test(test_scan_shape),        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_short_files), cmocka_unit_test(test_file_that_shrinks),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
