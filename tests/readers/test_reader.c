/* What holds for every format: unknown files, bounds, scan shapes, masks from files. */
#include "input/adapters/mask.h"
#include "input/formats/formats.h"
#include "input/scan_shape.h"
#include "recordings.h"

static void test_unknown_files(void **unused) {
    (void)unused;
    write_file(in_folder("notes.h5"), "Dear diary", 10);
    expect_refusal(in_folder("notes.h5"), "not a recording of a known kind (it begins with the bytes 44 65 61 72");
    write_file(in_folder("scan.hdr"), "HDR,\t\nTime", 10);
    expect_refusal(in_folder("scan.hdr"), "header file of a Merlin recording: name the .mib file");
    write_file(in_folder("job.json"), "{}", 2);
    expect_refusal(in_folder("job.json"), "(it begins with the bytes 7b 7d); known are");
    expect_refusal(in_folder("job.json"), "this looks like JSON");
    expect_refusal(in_folder("none.h5"), "cannot open: No such file");
    expect_refusal(test_folder, "is a folder");
    char source[600];
    snprintf(source, sizeof source, "%s:/data", in_folder("notes.h5"));
    expect_refusal(source, "not an HDF5 file, so there is no dataset /data");
}

/* A reader that is nothing but its description. */
static ps_reader *with_shape(int64_t n, int64_t rows, int64_t columns) {
    static ps_reader reader = {.ops = &ps_reader_npy, .path = "x.npy"};
    reader.info = (ps_recording){.n_positions = n, .scan_rows = rows, .scan_columns = columns};
    return &reader;
}

static void expect_shape(const ps_reader *reader, int64_t job_rows, int64_t job_columns, int64_t rows, int64_t columns) {
    int64_t found_rows = 0, found_columns = 0;
    ps_reader_options options = {.scan_rows = job_rows, .scan_columns = job_columns};
    assert_int_equal(ps_reader_scan_shape(reader, &options, &found_rows, &found_columns, NULL), PS_OK);
    assert_int_equal(found_rows, rows);
    assert_int_equal(found_columns, columns);
}

static void refuse_shape(const ps_reader *reader, int64_t job_rows, int64_t job_columns, const char *text) {
    int64_t rows, columns;
    ps_error error = {0};
    ps_reader_options options = {.scan_rows = job_rows, .scan_columns = job_columns};
    assert_int_equal(ps_reader_scan_shape(reader, &options, &rows, &columns, &error), PS_E_INPUT);
    expect_text(&error, text);
}

static void test_scan_shapes(void **unused) {
    (void)unused;
    expect_shape(with_shape(12, 3, 4), 0, 0, 3, 4);
    expect_shape(with_shape(12, 3, 4), 2, 6, 2, 6); /* the job wins */
    expect_shape(with_shape(16129, 0, 0), 0, 0, 127, 127);
    expect_shape(with_shape(1, 0, 0), 0, 0, 1, 1);
    expect_shape(with_shape(INT64_C(9000000000000000000) / 9, 0, 0), 0, 0, 1000000000, 1000000000);
    refuse_shape(with_shape(12, 0, 0), 0, 0,
                 "12 patterns are no square; give series.scan_shape; scans that would fit (either way round): 1 x 12, 2 x 6, 3 x 4");
    refuse_shape(with_shape(12, 0, 0), 3, 3, "the job says a scan of 3 x 3 = 9 positions, but the recording has 12 patterns");
    refuse_shape(with_shape(12, 3, 5), 0, 0, "the file says a scan of 3 x 5 = 15");
    refuse_shape(with_shape(13, 0, 0), 0, 0, "1 x 13");
}

static void test_bounds(void **unused) {
    (void)unused;
    write_dataset_file(in_folder("b.h5"), "d", &(made_dataset){3, {4, 3, 3}, {1, 3, 3}, PS_U8, AS_BSLZ4, 0, 0, 0});
    ps_reader *reader = open_good(in_folder("b.h5"));
    uint8_t counts[36];
    bool present = true;
    ps_error error = {0};
    assert_int_equal(ps_reader_read(reader, 4, 0, NULL, NULL), PS_OK);
    assert_int_equal(ps_reader_read(reader, 3, 2, counts, &error), PS_E_ARGUMENT);
    expect_text(&error, "asked for patterns 3 to 4, the recording has 4");
    assert_int_equal(ps_reader_read(reader, -1, 2, counts, NULL), PS_E_ARGUMENT);
    assert_int_equal(ps_reader_read(reader, 0, INT64_MAX, counts, NULL), PS_E_ARGUMENT);
    assert_int_equal(ps_reader_mask(reader, counts, &present, NULL), PS_OK);
    assert_false(present);
    ps_reader_close(reader);
}

static void test_masks_from_files(void **unused) {
    (void)unused;
    static const uint8_t npy[] = "\x93NUMPY\1\0\x46\0{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }            "
                                 "\0\0\0\0\0\0\0\x80\0\0\xc0\x7f\0\0\0\0\0\0\x80\x3f\0\0\0\0";
    uint8_t bad[6];
    ps_error error = {0};
    write_file(in_folder("mask.npy"), npy, sizeof npy - 1); /* columns (0, -0), (NaN, 0), (1, 0) */
    if (ps_mask_load(in_folder("mask.npy"), 2, 3, bad, &error) != PS_OK) fail_msg("%s", error.text);
    assert_memory_equal(bad, ((uint8_t[]){0, 1, 1, 0, 0, 0}), 6);
    assert_int_equal(ps_mask_load(in_folder("mask.npy"), 3, 2, bad, &error), PS_E_INPUT);
    expect_text(&error, "the mask is 2 x 3, the detector 3 x 2");
    char source[600];
    hid_t file = create_file(in_folder("mask.h5"));
    add_mask(file, "/histogram/mask", 2, 3, (uint32_t[]){0, 8, 0, 0, 1, 0});
    H5Fclose(file);
    snprintf(source, sizeof source, "%s:/histogram/mask", in_folder("mask.h5"));
    assert_int_equal(ps_mask_load(source, 2, 3, bad, NULL), PS_OK);
    assert_memory_equal(bad, ((uint8_t[]){0, 1, 0, 0, 1, 0}), 6);
    static const char *const reasons[] = {"say which dataset is the mask", "expected a .npy file or file.h5:/dataset"};
    for (int i = 0; i < 2; i++) {
        ps_error_clear(&error);
        assert_int_equal(ps_mask_load(in_folder(i ? "none" : "mask.h5"), 2, 3, bad, &error), PS_E_INPUT);
        expect_text(&error, reasons[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_files),
        cmocka_unit_test(test_scan_shapes),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_masks_from_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
