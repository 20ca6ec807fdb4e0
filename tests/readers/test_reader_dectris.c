/* Dectris masters: links in order and relative to the master, data inside, masks, metadata, what is missing; real Arina and Eiger files. */
#include <math.h>

#include "recordings.h"

enum { ROWS = 9, COLUMNS = 12 };

static void write_data_file(const char *path, const char *name, int64_t first, int64_t n, ps_dtype dtype, made_storage storage) {
    write_dataset_file(path, name, &(made_dataset){3, {(hsize_t)n, ROWS, COLUMNS}, {1, ROWS, COLUMNS}, dtype, storage, first, 0, 1});
}

static hid_t create_master(const char *path) {
    hid_t file = create_file(path);
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    H5Gclose(H5Gcreate2(file, "/entry/data", links, H5P_DEFAULT, H5P_DEFAULT));
    H5Pclose(links);
    return file;
}

static void link_data(hid_t master, const char *name, const char *file, const char *dataset) {
    char path[100];
    snprintf(path, sizeof path, "/entry/data/%s", name);
    assert_true(H5Lcreate_external(file, dataset, master, path, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void make_linked_master(const char *path, ps_dtype dtype, made_storage storage) {
    hid_t master = create_master(path);
    for (int i = 0; i < 12; i++) { /* data_2 comes before data_10 */
        char link[32], file[64], full[600];
        snprintf(link, sizeof link, "data_%d", i + 1);
        snprintf(file, sizeof file, "piece no %d.h5", i + 1);
        snprintf(full, sizeof full, "%.*s/%s", (int)(strrchr(path, '/') - path), path, file);
        write_data_file(full, "/entry/data/data", 3 * i, 3, dtype, storage);
        link_data(master, link, file, "/entry/data/data");
    }
    H5Fclose(master);
}

static void test_linked_files(void **unused) {
    (void)unused;
    static const made_storage storages[] = {AS_CONTIGUOUS, AS_CHUNKS, AS_BSLZ4, AS_LZ4};
    static const ps_dtype types[] = {PS_U8, PS_U16, PS_U32};
    const char *path = in_folder("a_master.h5");
    for (int s = 0; s < 4; s++)
        for (int t = 0; t < 3; t++) {
            make_linked_master(path, types[t], storages[s]);
            expect_recording(path, 36, ROWS, COLUMNS, types[t]);
        }
    ps_reader *reader = open_good(path);
    assert_string_equal(reader->info.format, "Dectris master");
    assert_int_equal(reader->info.n_files, 12);
    ps_reader_close(reader);
}

static void test_links_are_relative_to_the_master(void **unused) {
    (void)unused;
    char here[512], command[1200];
    mkdir(in_folder("elsewhere"), 0777);
    make_linked_master(in_folder("elsewhere/m_master.h5"), PS_U16, AS_BSLZ4);
    assert_int_equal(symlink("elsewhere/m_master.h5", in_folder("link.h5")), 0);
    expect_recording(in_folder("link.h5"), 36, ROWS, COLUMNS, PS_U16);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(in_folder("elsewhere")), 0);
    expect_recording("m_master.h5", 36, ROWS, COLUMNS, PS_U16);
    assert_int_equal(chdir(here), 0);
    hid_t master = create_master(in_folder("elsewhere/abs.h5")); /* an absolute path that has moved with its folder */
    link_data(master, "data_000001", "/nowhere/piece no 1.h5", "/entry/data/data");
    H5Fclose(master);
    expect_recording(in_folder("elsewhere/abs.h5"), 3, ROWS, COLUMNS, PS_U16);
    snprintf(command, sizeof command, "mv '%s' '%s'", in_folder("elsewhere"), in_folder("moved"));
    assert_int_equal(system(command), 0);
    expect_recording(in_folder("moved/m_master.h5"), 36, ROWS, COLUMNS, PS_U16);
}

static void test_data_inside(void **unused) {
    (void)unused;
    const char *path = in_folder("inside.h5");
    hid_t master = create_master(path);
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "/entry/data/data_%06d", i + 1);
        add_dataset(master, name, &(made_dataset){3, {4, ROWS, COLUMNS}, {1, ROWS, COLUMNS}, PS_U32, AS_BSLZ4, 4 * i, 0, 0});
    }
    H5Lcreate_soft("/entry/data/data_000001", master, "/entry/data/other", H5P_DEFAULT, H5P_DEFAULT); /* not numbered: not data */
    H5Fclose(master);
    expect_recording(path, 12, ROWS, COLUMNS, PS_U32);
}

static void test_metadata_and_mask(void **unused) {
    (void)unused;
    static const char *const masks[] = {"/entry/instrument/detector/pixel_mask", "/entry/instrument/detector/detectorSpecific/pixel_mask"};
    for (int i = 0; i < 2; i++) {
        uint32_t mask[ROWS * COLUMNS] = {0};
        uint8_t bad[ROWS * COLUMNS];
        bool present = false;
        const char *path = in_folder("meta.h5");
        hid_t master = create_master(path);
        add_dataset(master, "/entry/data/data_000001",
                    &(made_dataset){3, {4, ROWS, COLUMNS}, {1, ROWS, COLUMNS}, PS_U16, AS_BSLZ4, 0, 0, 0});
        add_number(master, i ? "/entry/instrument/detector/detectorSpecific/photon_energy" : "/entry/instrument/beam/incident_energy",
                   80000);
        add_number(master, "/entry/instrument/detector/saturation_value", 4000);
        mask[5] = 1;
        mask[17] = 1u << 30;
        add_mask(master, masks[i], ROWS, COLUMNS, mask);
        H5Fclose(master);
        ps_reader *reader = open_good(path);
        assert_true(reader->info.voltage_V == 80000);
        assert_true(reader->info.saturation == 4000);
        assert_string_equal(reader->info.compression, "bitshuffle-lz4");
        assert_int_equal(ps_reader_mask(reader, bad, &present, NULL), PS_OK);
        assert_true(present);
        for (int p = 0; p < ROWS * COLUMNS; p++) assert_int_equal(bad[p], p == 5 || p == 17);
        ps_reader_close(reader);
    }
}

static void test_wrong_mask(void **unused) {
    (void)unused;
    uint32_t mask[6] = {0};
    uint8_t bad[ROWS * COLUMNS];
    bool present = false;
    const char *path = in_folder("mask.h5");
    hid_t master = create_master(path);
    add_dataset(master, "/entry/data/data_000001", &(made_dataset){3, {4, ROWS, COLUMNS}, {1, ROWS, COLUMNS}, PS_U16, AS_BSLZ4, 0, 0, 0});
    add_mask(master, "/entry/instrument/detector/pixel_mask", 2, 3, mask);
    H5Fclose(master);
    ps_reader *reader = open_good(path);
    ps_error error = {0};
    assert_true(isnan(reader->info.voltage_V));
    assert_int_equal(ps_reader_mask(reader, bad, &present, &error), PS_E_INPUT);
    expect_text(&error, "the mask is 2 x 3, the detector 9 x 12");
    ps_reader_close(reader);
}

static void test_what_is_missing(void **unused) {
    (void)unused;
    const char *path = in_folder("b_master.h5");
    hid_t master = create_master(path);
    H5Gclose(H5Gcreate2(master, "/entry/data/data_000001", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(master);
    expect_refusal(path, "/entry/data/data_000001 is no dataset");
    write_data_file(in_folder("one.h5"), "/entry/data/data", 0, 3, PS_U16, AS_BSLZ4);
    master = create_master(path);
    link_data(master, "data_000001", "one.h5", "/entry/data/data");
    link_data(master, "data_000002", "two.h5", "/entry/data/data");
    H5Fclose(master);
    expect_refusal(path, "the data file two.h5 (link /entry/data/data_000002) is missing; it would hold patterns from 3 on");
    write_data_file(in_folder("two.h5"), "/entry/data/data", 3, 3, PS_U32, AS_BSLZ4);
    expect_refusal(path, "holds patterns of 9 x 12 uint32, but");
    write_data_file(in_folder("two.h5"), "/elsewhere", 3, 3, PS_U16, AS_BSLZ4);
    expect_refusal(path, "two.h5: holds no dataset /entry/data/data");
    write_file(in_folder("two.h5"), "no HDF5 at all", 14);
    expect_refusal(path, "two.h5: not an HDF5 file (14 bytes");
}

static void test_file_that_goes_away(void **unused) {
    (void)unused;
    const char *path = in_folder("c_master.h5");
    write_data_file(in_folder("three.h5"), "/entry/data/data", 0, 3, PS_U16, AS_BSLZ4);
    hid_t master = create_master(path);
    link_data(master, "data_000001", "three.h5", "/entry/data/data");
    H5Fclose(master);
    ps_reader *reader = open_good(path);
    ps_error error = {0};
    uint16_t counts[3 * ROWS * COLUMNS];
    write_data_file(in_folder("three.h5"), "/entry/data/data", 0, 2, PS_U16, AS_BSLZ4);
    assert_int_equal(ps_reader_read(reader, 0, 3, counts, &error), PS_E_INPUT);
    expect_text(&error, "changed while it was in use: holds 2 patterns now, held at least 3");
    ps_reader_close(reader);
}

/* Files beside a master, named in its stead. */
static void test_neighbours_point_to_the_master(void **unused) {
    (void)unused;
    const char *data = in_folder("run_data_000001.h5");
    char source[600];
    write_data_file(data, "/entry/data/data", 0, 3, PS_U16, AS_BSLZ4);
    H5Fclose(create_master(in_folder("run_master.h5")));
    H5Fclose(create_file(in_folder("run.h5")));
    expect_refusal(in_folder("run.h5"), "rank 3 or 4; the recording is the master beside it: ");
    ps_reader *reader = open_good(data);
    assert_non_null(strstr(ps_reader_notes(reader), "warning: a part of a recording?"));
    assert_non_null(strstr(ps_reader_notes(reader), "run_master.h5"));
    ps_reader_close(reader);
    snprintf(source, sizeof source, "%s:/entry/data/data", data);
    reader = open_good(source); /* who names the dataset means it */
    assert_string_equal(ps_reader_notes(reader), "");
    ps_reader_close(reader);
    remove(in_folder("run_master.h5"));
    reader = open_good(data);
    assert_string_equal(ps_reader_notes(reader), "");
    ps_reader_close(reader);
}

static void test_real_files(void **unused) {
    (void)unused;
    skip_without(FORMATS "/arina");
    uint8_t *bad = malloc(192 * 192);
    bool present = false;
    ps_reader *reader = open_good(FORMATS "/arina/test_00_master.h5");
    assert_int_equal(reader->info.n_positions, 16);
    assert_true(reader->info.voltage_V == 300000);
    assert_true(reader->info.saturation == 8352);
    assert_string_equal(reader->info.acquisition_time, "2025-05-03T01:51:00.302+02:00");
    assert_int_equal(ps_reader_mask(reader, bad, &present, NULL), PS_OK);
    assert_true(present);
    assert_non_null(strstr(ps_reader_notes(reader), "says a pixel size of 0.139152 without a unit: not used"));
    ps_reader_close(reader);
    free(bad);
    expect_sums(FORMATS "/arina/test_00_master.h5", 16, 0, 0);
    expect_sums(PS_SOURCE_DIR "/../shared/data/virus/virus_001_master.h5", 16129, 461315220.0, 232960538265.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linked_files),
        cmocka_unit_test(test_links_are_relative_to_the_master),
        cmocka_unit_test(test_data_inside),
        cmocka_unit_test(test_metadata_and_mask),
        cmocka_unit_test(test_wrong_mask),
        cmocka_unit_test(test_what_is_missing),
        cmocka_unit_test(test_file_that_goes_away),
        cmocka_unit_test(test_real_files),
        cmocka_unit_test(test_neighbours_point_to_the_master),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
