/* What an output must not write over: files that a recording leads to in ways that opening it need not show. */
#include <limits.h>

#include "recordings.h"

static const made_dataset small = {.rank = 3, .shape = {4, 5, 6}, .dtype = PS_U16};

static void expect_listed(const ps_name_list *files, const char *name) {
    if (!is_among(files, in_folder(name))) fail_msg("%s is not listed", name);
}

static ps_name_list list_of(const char *source) {
    ps_name_list files = {0};
    ps_error error = {0};
    if (ps_recording_files_list(source, NULL, &files, &error) != PS_OK) fail_msg("%s", error.text);
    return files;
}

/* A dataset "counts" whose values lie in a file of this name, as it stands in the HDF5 file. */
static void write_external(const char *path, const char *raw) {
    hsize_t shape[3] = {4, 5, 6};
    hid_t file = create_file(path), space = H5Screate_simple(3, shape, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_external(plist, raw, 0, 4 * 5 * 6 * 2) >= 0);
    hid_t dataset = H5Dcreate2(file, "counts", H5T_STD_U16LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Dclose(dataset);
    H5Pclose(plist);
    H5Sclose(space);
    H5Fclose(file);
}

/* HDF5 looks below the prefix, from the folder of the HDF5 file. */
static void test_external_storage(void **unused) {
    (void)unused;
    char source[PATH_MAX];
    void *counts = make_counts(0, 4, 5, 6, PS_U16);
    assert_int_equal(mkdir(in_folder("raw"), 0700), 0);
    write_file(in_folder("raw/values.bin"), counts, 4 * 5 * 6 * 2);
    write_external(in_folder("outside.h5"), "values.bin");
    snprintf(source, sizeof source, "%s:/counts", in_folder("outside.h5"));
    expect_recording(source, 4, 5, 6, PS_U16);
    write_external(in_folder("outside_too.h5"), "values.bin"); /* which no reader opens: its only dataset is not named */
    ps_name_list files = list_of(in_folder("outside_too.h5"));
    expect_listed(&files, "raw/values.bin");
    ps_name_list_free(&files);
    free(counts);
}

static void link_to(const char *path, const char *name, const char *file) {
    hid_t master = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(H5Lcreate_external(file, "/counts", master, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(master);
}

/* A dataset that the job does not read, and the folders that HDF5 looks at. */
static void test_links_beside_what_is_read(void **unused) {
    (void)unused;
    char source[PATH_MAX], folders[PATH_MAX];
    assert_int_equal(mkdir(in_folder("parts"), 0700), 0);
    write_dataset_file(in_folder("whole.h5"), "counts", &small);
    write_dataset_file(in_folder("beside.h5"), "counts", &small);
    write_dataset_file(in_folder("parts/far.h5"), "counts", &small);
    link_to(in_folder("whole.h5"), "other", "beside.h5");
    link_to(in_folder("whole.h5"), "another", "far.h5");
    snprintf(folders, sizeof folders, "/nowhere:%s", in_folder("parts"));
    assert_int_equal(setenv("HDF5_EXT_PREFIX", folders, 1), 0);
    snprintf(source, sizeof source, "%s:/counts", in_folder("whole.h5"));
    ps_name_list files = list_of(source);
    expect_listed(&files, "beside.h5");
    expect_listed(&files, "parts/far.h5");
    assert_int_equal(unsetenv("HDF5_EXT_PREFIX"), 0);
    ps_name_list_free(&files);
}

static void test_names_alone(void **unused) {
    (void)unused;
    ps_name_list files = {0};
    write_file(in_folder("scan_master.h5"), "damaged", 7);
    write_file(in_folder("scan_data_000001.h5"), "1", 1);
    write_file(in_folder("scan.h5"), "2", 1);
    assert_int_equal(ps_recording_files_guess(in_folder("scan_master.h5"), &files, NULL), PS_OK);
    expect_listed(&files, "scan_data_000001.h5");
    expect_listed(&files, "scan.h5");
    ps_name_list_free(&files);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_external_storage),
        cmocka_unit_test(test_links_beside_what_is_read),
        cmocka_unit_test(test_names_alone),
    };
    setenv("HDF5_EXTFILE_PREFIX", "${ORIGIN}/raw", 1); /* HDF5 looks at it once */
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
