/* Skipped, flyback, repeated and serpentine positions against a frame-by-frame count; what does not fit. */
#include <math.h>

#include "input/adapters/positions.h"
#include "input/open.h"
#include "input/scan_shape.h"
#include "recordings.h"

enum { ROWS = 3, COLUMNS = 5 };

/* Raw frames in the order of time: frame f holds count_at(f, ...). */
static void make_frames(const char *path, int64_t n, ps_dtype dtype) {
    write_dataset_file(path, "d", &(made_dataset){3, {(hsize_t)n, ROWS, COLUMNS}, {1, ROWS, COLUMNS}, dtype, AS_BSLZ4, 0, 0, 0});
}

/* Walks through the recording in time and notes each frame's position. */
static int64_t walk_in_time(const ps_reader_options *o, int64_t *first_frame) {
    int64_t frame = o->skip_leading, repeats = o->repeats > 1 ? o->repeats : 1;
    for (int64_t r = 0; r < o->scan_rows; r++) {
        for (int64_t t = 0; t < o->scan_columns; t++, frame += repeats) {
            int64_t c = o->serpentine && r % 2 == 1 ? o->scan_columns - 1 - t : t;
            first_frame[r * o->scan_columns + c] = frame;
        }
        frame += o->flyback * repeats;
    }
    return frame + o->skip_trailing;
}

static double expected_sum(int64_t frame, int64_t repeats, int64_t u, int64_t v) {
    double sum = 0;
    for (int64_t k = 0; k < repeats; k++) sum += (double)count_at(frame + k, u, v);
    return sum;
}

static void check_read(ps_reader *reader, const int64_t *first_frame, int64_t repeats, int64_t first, int64_t n) {
    double *counts = malloc((size_t)(n * ROWS * COLUMNS) * sizeof *counts);
    ps_error error = {0};
    if (ps_reader_read(reader, first, n, counts, &error) != PS_OK) fail_msg("%s", error.text);
    for (int64_t i = 0; i < n * ROWS * COLUMNS; i++) {
        int64_t pixel = i % (ROWS * COLUMNS);
        double expected = expected_sum(first_frame[first + i / (ROWS * COLUMNS)], repeats, pixel / COLUMNS, pixel % COLUMNS);
        if (load_count(counts, (size_t)i, reader->info.dtype) != expected)
            fail_msg("position %lld is wrong", (long long)(first + i / (ROWS * COLUMNS)));
    }
    free(counts);
}

static void check_mapping(ps_reader_options o, bool without_last_flyback) {
    int64_t first_frame[200], n = o.scan_rows * o.scan_columns, repeats = o.repeats > 1 ? o.repeats : 1;
    int64_t frames = walk_in_time(&o, first_frame) - (without_last_flyback ? o.flyback * repeats : 0);
    make_frames(in_folder("p.h5"), frames, PS_U16);
    ps_reader *reader = NULL;
    ps_error error = {0};
    if (ps_reader_open(in_folder("p.h5"), &o, &reader, &error) != PS_OK) fail_msg("%s", error.text);
    assert_int_equal(reader->info.n_positions, n);
    assert_int_equal(reader->info.dtype, repeats > 1 ? PS_U32 : PS_U16);
    check_read(reader, first_frame, repeats, 0, n);
    for (int64_t first = 0; first < n; first += 3) check_read(reader, first_frame, repeats, first, first + 8 <= n ? 8 : n - first);
    ps_reader_close(reader);
}

static void test_all_combinations(void **unused) {
    (void)unused;
    static const int64_t shapes[][2] = {{4, 7}, {1, 9}, {9, 1}, {1, 1}};
    for (int s = 0; s < 4; s++)
        for (int kind = 0; kind < 32; kind++)
            for (int64_t repeats = 0; repeats < 4; repeats += 3) {
                ps_reader_options o = {.scan_rows = shapes[s][0],
                                       .scan_columns = shapes[s][1],
                                       .skip_leading = kind & 1 ? 3 : 0,
                                       .skip_trailing = kind & 2 ? 2 : 0,
                                       .flyback = kind & 4 ? 2 : 0,
                                       .serpentine = kind & 8,
                                       .repeats = repeats};
                check_mapping(o, kind & 16);
            }
}

static void refuse(ps_reader_options o, const char *text) {
    ps_reader *reader = NULL;
    ps_error error = {0};
    assert_int_equal(ps_reader_open(in_folder("p.h5"), &o, &reader, &error), PS_E_INPUT);
    assert_null(reader);
    expect_text(&error, text);
}

static void test_what_does_not_fit(void **unused) {
    (void)unused;
    make_frames(in_folder("p.h5"), 30, PS_U8);
    refuse((ps_reader_options){.scan_rows = 4, .scan_columns = 6, .flyback = 1},
           "30 patterns, less 0 leading and 0 trailing ones, leave 30; a scan of 4 rows of 6 positions and 1 flyback positions, 1 "
           "patterns each, has 28 (or 27 without");
    refuse((ps_reader_options){.scan_rows = 5, .scan_columns = 6, .skip_leading = 1}, "leave 29");
    refuse((ps_reader_options){.flyback = 1}, "give series.scan_shape");
    refuse((ps_reader_options){.scan_rows = 5, .scan_columns = 6, .skip_leading = -1}, "skip_leading -1");
    refuse((ps_reader_options){.scan_rows = INT64_MAX / 2, .scan_columns = 6, .flyback = 1}, "is too large");
    refuse((ps_reader_options){.scan_rows = 5, .scan_columns = 6, .skip_leading = 40}, "leave -10");
}

/* A file of rank 4 knows its shape: serpentine rows then need no scan_shape. */
static void test_shape_from_the_file(void **unused) {
    (void)unused;
    write_dataset_file(in_folder("p4.h5"), "d", &(made_dataset){4, {4, 5, ROWS, COLUMNS}, {1, 1, ROWS, COLUMNS}, PS_U8, AS_BSLZ4, 0, 0, 0});
    ps_reader *reader = NULL;
    ps_reader_options o = {.serpentine = true}, shape = {.scan_rows = 4, .scan_columns = 5, .serpentine = true};
    int64_t first_frame[20];
    walk_in_time(&shape, first_frame);
    assert_int_equal(ps_reader_open(in_folder("p4.h5"), &o, &reader, NULL), PS_OK);
    check_read(reader, first_frame, 1, 0, 20);
    assert_true(strstr(ps_reader_notes(reader), "rows serpentine") != NULL);
    ps_reader_close(reader);
}

static void test_sum_types(void **unused) {
    (void)unused;
    assert_int_equal(ps_positions_sum_dtype(PS_U8, 1), PS_U8);
    assert_int_equal(ps_positions_sum_dtype(PS_U8, 258), PS_U16);
    assert_int_equal(ps_positions_sum_dtype(PS_U8, 259), PS_U32);
    assert_int_equal(ps_positions_sum_dtype(PS_U16, 65537), PS_U32);
    assert_int_equal(ps_positions_sum_dtype(PS_U16, 65539), PS_F64);
    assert_int_equal(ps_positions_sum_dtype(PS_U32, 2), PS_F64);
    assert_int_equal(ps_positions_sum_dtype(PS_I8, 255), PS_I16);
    assert_int_equal(ps_positions_sum_dtype(PS_I8, 256), PS_I32);
    assert_int_equal(ps_positions_sum_dtype(PS_I16, 2), PS_I32);
    assert_int_equal(ps_positions_sum_dtype(PS_I32, 2), PS_F64);
    assert_int_equal(ps_positions_sum_dtype(PS_F32, 9), PS_F32);
}

/* Three frames, one pixel each, of every type; the second holds the type's invalid-count value in pixel 1. */
static void check_summed_invalid_values(ps_dtype dtype) {
    static const int64_t values[3][2] = {{3, 4}, {5, -1}, {7, 8}};
    char counts[6 * 8];
    hsize_t shape[3] = {3, 1, 2};
    uint32_t invalid_value = ps_dtype_invalid_value(dtype);
    for (size_t i = 0; i < 6; i++)
        store_count(counts, i, dtype, values[i / 2][i % 2] < 0 && invalid_value ? invalid_value : values[i / 2][i % 2]);
    hid_t file = create_file(in_folder("m.h5")), space = H5Screate_simple(3, shape, NULL);
    hid_t dataset = H5Dcreate2(file, "d", ps_hdf5_native(dtype), space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(dataset, ps_hdf5_native(dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, counts);
    H5Dclose(dataset), H5Sclose(space), H5Fclose(file);
    ps_reader *reader = NULL;
    ps_reader_options o = {.scan_rows = 1, .scan_columns = 1, .repeats = 3};
    assert_int_equal(ps_reader_open(in_folder("m.h5"), &o, &reader, NULL), PS_OK);
    assert_int_equal(ps_reader_read(reader, 0, 1, counts, NULL), PS_OK);
    double second = load_count(counts, 1, reader->info.dtype);
    assert_true(load_count(counts, 0, reader->info.dtype) == 15);
    uint32_t summed_invalid_value = ps_dtype_invalid_value(reader->info.dtype);
    if (!invalid_value)
        assert_true(second == 11);
    else if (summed_invalid_value)
        assert_true(second == summed_invalid_value);
    else
        assert_true(isnan(second));
    ps_reader_close(reader);
}

static void test_summed_invalid_values(void **unused) {
    (void)unused;
    for (int dtype = 0; dtype < PS_N_DTYPES; dtype++) check_summed_invalid_values((ps_dtype)dtype);
}

/* Opens a recording of four axes with options that the file's own shape must agree with. */
static ps_code open_shaped(const char *name, ps_reader_options options, ps_reader **reader, ps_error *error) {
    *error = (ps_error){0};
    return ps_reader_open(in_folder(name), &options, reader, error);
}

static void agree(const char *name, ps_reader_options options) {
    ps_reader *reader = NULL;
    ps_error error;
    int64_t rows = 0, columns = 0;
    if (open_shaped(name, options, &reader, &error) != PS_OK) fail_msg("%s", error.text);
    if (ps_reader_scan_shape(reader, &options, &rows, &columns, &error) != PS_OK) fail_msg("%s", error.text);
    assert_int_equal(rows, options.scan_rows);
    assert_int_equal(columns, options.scan_columns);
    ps_reader_close(reader);
}

static void disagree(const char *name, ps_reader_options options, const char *text) {
    ps_reader *reader = NULL;
    ps_error error;
    assert_int_equal(open_shaped(name, options, &reader, &error), PS_E_INPUT);
    expect_text(&error, text);
    expect_text(&error, "series.scan_shape_override");
    options.shape_override = true;
    if (open_shaped(name, options, &reader, &error) != PS_OK) return; /* the number of frames may still not fit */
    if (!strstr(ps_reader_notes(reader), "warning: the file says a scan of")) fail_msg("no note: %s", ps_reader_notes(reader));
    ps_reader_close(reader);
}

static void write_npy(const char *name, int64_t rows, int64_t columns) {
    FILE *file = fopen(in_folder(name), "wb");
    char text[119];
    assert_non_null(file);
    memset(text, ' ', sizeof text);
    int n = snprintf(text, sizeof text, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d, 4, 5), }", (int)rows, (int)columns);
    text[n] = ' ';
    text[117] = '\n';
    fwrite("\x93NUMPY\1\0\x76\0", 1, 10, file);
    fwrite(text, 1, 118, file);
    void *counts = make_counts(0, rows * columns, 4, 5, PS_U8);
    fwrite(counts, 1, (size_t)(rows * columns * 20), file);
    free(counts);
    fclose(file);
}

/* The file's four axes say 6 x 4. */
static void check_shapes(const char *name) {
    agree(name, (ps_reader_options){.scan_rows = 6, .scan_columns = 4});
    agree(name, (ps_reader_options){.scan_rows = 6, .scan_columns = 3, .flyback = 1});
    agree(name, (ps_reader_options){.scan_rows = 6, .scan_columns = 2, .repeats = 2});
    agree(name, (ps_reader_options){.scan_rows = 3, .scan_columns = 2, .repeats = 4}); /* position, repeat */
    agree(name, (ps_reader_options){.scan_rows = 5, .scan_columns = 4, .skip_leading = 4});
    agree(name, (ps_reader_options){.scan_rows = 4, .scan_columns = 4, .skip_leading = 4, .skip_trailing = 4, .serpentine = true});
    agree(name, (ps_reader_options){.scan_rows = 7, .scan_columns = 4, .allow_partial = true});
    disagree(name, (ps_reader_options){.scan_rows = 4, .scan_columns = 6},
             "the job's series.scan_shape is 4 x 6 = 24, but the file says a scan of 6 x 4 = 24 positions (shape of the");
    disagree(name, (ps_reader_options){.scan_rows = 3, .scan_columns = 8}, "but the file says a scan of 6 x 4");
    disagree(name, (ps_reader_options){.scan_rows = 1, .scan_columns = 24}, "but the file says a scan of 6 x 4");
    disagree(name, (ps_reader_options){.scan_rows = 4, .scan_columns = 5, .flyback = 1}, "but the file says a scan of 6 x 4");
    disagree(name, (ps_reader_options){.scan_rows = 2, .scan_columns = 2, .repeats = 6}, "but the file says a scan of 6 x 4");
    disagree(name, (ps_reader_options){.scan_rows = 4, .scan_columns = 5, .skip_leading = 4}, "but the file says a scan of 6 x 4");
    disagree(name, (ps_reader_options){.scan_rows = 4, .scan_columns = 7, .allow_partial = true}, "but the file says a scan of 6 x 4");
}

static void test_shape_of_the_file(void **unused) {
    (void)unused;
    write_npy("s.npy", 6, 4);
    check_shapes("s.npy");
    write_dataset_file(in_folder("s.h5"), "/data", &(made_dataset){4, {6, 4, 4, 5}, {1, 4, 4, 5}, PS_U16, AS_BSLZ4, 0, 0, 0});
    check_shapes("s.h5");
    write_dataset_file(in_folder("e.h5"), "/x/datacubes/one/data", &(made_dataset){4, {6, 4, 4, 5}, {0}, PS_U16, AS_CONTIGUOUS, 0, 0, 0});
    check_shapes("e.h5");
}

/* One row or column of positions is a list; the job may say what it is. */
static void test_lists_have_no_shape(void **unused) {
    (void)unused;
    write_npy("l.npy", 1, 24);
    agree("l.npy", (ps_reader_options){.scan_rows = 4, .scan_columns = 6});
    write_npy("l.npy", 24, 1);
    agree("l.npy", (ps_reader_options){.scan_rows = 4, .scan_columns = 6});
    disagree("l.npy", (ps_reader_options){.scan_rows = 1, .scan_columns = 24}, "but the file says a scan of 24 x 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape_of_the_file),     cmocka_unit_test(test_lists_have_no_shape), cmocka_unit_test(test_all_combinations),
        cmocka_unit_test(test_what_does_not_fit),     cmocka_unit_test(test_shape_from_the_file), cmocka_unit_test(test_sum_types),
        cmocka_unit_test(test_summed_invalid_values),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
