/* What is said of files that are no recordings, or not whole: what was found, and nothing that is not known. */
#include "input/open.h"
#include "recordings.h"

static void write_typed(const char *path, hid_t type) {
    hid_t file = create_file(path), space = H5Screate_simple(3, (hsize_t[]){2, 3, 4}, NULL);
    hid_t dataset = H5Dcreate2(file, "d", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Dclose(dataset), H5Sclose(space), H5Fclose(file);
}

static void expect_type(hid_t type, const char *text) {
    char source[600];
    const char *path = in_folder("typed.h5");
    write_typed(path, type);
    snprintf(source, sizeof source, "%s:/d", path);
    expect_refusal(source, text);
    expect_refusal(path, "without a dataset of counts of rank 3 or 4: /d holds ");
    expect_refusal(path, text);
    H5Tclose(type);
}

static void types_are_named(void **unused) {
    (void)unused;
    hid_t boolean = H5Tenum_create(H5T_NATIVE_INT8), odd = H5Tcopy(H5T_STD_U32LE), text = H5Tcopy(H5T_C_S1);
    hid_t complex = H5Tcreate(H5T_COMPOUND, 8);
    H5Tenum_insert(boolean, "FALSE", &(int8_t){0});
    H5Tenum_insert(boolean, "TRUE", &(int8_t){1});
    H5Tset_precision(odd, 24), H5Tset_size(odd, 3);
    H5Tset_size(text, 5);
    H5Tinsert(complex, "r", 0, H5T_NATIVE_FLOAT), H5Tinsert(complex, "i", 4, H5T_NATIVE_FLOAT);
    expect_type(boolean, "bool or enumerated values of 8 bits");
    expect_type(odd, "24-bit integers");
    expect_type(text, "holds text");
    expect_type(complex, "complex or compound values of 64 bits");
}

/* 12 bits somewhere in 16: HDF5 knows where. */
static void padded_integers_are_read(void **unused) {
    (void)unused;
    for (int chunked = 0; chunked < 2; chunked++) {
        hid_t twelve = H5Tcopy(H5T_STD_U16LE);
        H5Tset_precision(twelve, 12), H5Tset_offset(twelve, 4);
        hid_t file = create_file(in_folder("twelve.h5")), space = H5Screate_simple(3, (hsize_t[]){5, 3, 4}, NULL);
        hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
        if (chunked) H5Pset_chunk(plist, 3, (hsize_t[]){1, 3, 4});
        hid_t dataset = H5Dcreate2(file, "d", twelve, space, H5P_DEFAULT, plist, H5P_DEFAULT);
        void *counts = make_counts(0, 5, 3, 4, PS_U16);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, counts) >= 0);
        free(counts);
        H5Dclose(dataset), H5Pclose(plist), H5Sclose(space), H5Fclose(file), H5Tclose(twelve);
        expect_recording(in_folder("twelve.h5"), 5, 3, 4, PS_U16);
    }
}

static void expect_filter(H5Z_filter_t filter, const char *text) {
    hid_t file = create_file(in_folder("packed.h5")), space = H5Screate_simple(3, (hsize_t[]){2, 3, 4}, NULL);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 3, (hsize_t[]){1, 3, 4});
    assert_true(H5Pset_filter(plist, filter, H5Z_FLAG_OPTIONAL, 0, NULL) >= 0);
    hid_t dataset = H5Dcreate2(file, "d", H5T_STD_U16LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    H5Dclose(dataset), H5Pclose(plist), H5Sclose(space), H5Fclose(file);
    if (H5Zfilter_avail(filter) <= 0) expect_refusal(in_folder("packed.h5"), text);
}

static void filters_are_named(void **unused) {
    (void)unused;
    expect_filter(32015, "HDF5 filter 32015 (Zstandard), which");
    expect_filter(32001, "HDF5 filter 32001 (Blosc), which");
    expect_filter(32013, "HDF5 filter 32013 (ZFP), which");
    expect_filter(32026, "HDF5 filter 32026 (Blosc2), which");
    expect_filter(40123, "HDF5 filter 40123, which");
}

static void what_was_cut_off_is_not_locked(void **unused) {
    (void)unused;
    const char *path = in_folder("cut.h5");
    write_dataset_file(path, "d", &(made_dataset){3, {4, 30, 30}, {1, 30, 30}, PS_U16, AS_CHUNKS, 0, 0, 0});
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(truncate(path, status.st_size - 100), 0);
    ps_reader *reader = NULL;
    ps_error error = {0};
    assert_int_equal(ps_reader_open(path, NULL, &reader, &error), PS_E_INPUT);
    expect_text(&error, "shorter than it says");
    assert_null(strstr(error.text, "LOCKING"));
}

static void npy_types_are_named(void **unused) {
    (void)unused;
    static const char header[] = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3, 4), }";
    char bytes[128 + 2 * 3 * 4 * 8] = "\x93NUMPY\x01";
    memset(bytes + 10, ' ', 118);
    memcpy(bytes + 10, header, sizeof header - 1);
    bytes[8] = 118;
    bytes[127] = '\n';
    write_file(in_folder("i8.npy"), bytes, sizeof bytes);
    expect_refusal(in_folder("i8.npy"), "elements of type '<i8'; expected");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_named),     cmocka_unit_test(padded_integers_are_read),
        cmocka_unit_test(filters_are_named),   cmocka_unit_test(what_was_cut_off_is_not_locked),
        cmocka_unit_test(npy_types_are_named),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
