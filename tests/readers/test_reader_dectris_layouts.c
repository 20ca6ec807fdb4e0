/* Further layouts of Dectris masters: missing files that may be missing, channels, virtual datasets, the microscope's file, a thousand data
 * files under a low limit of open files. */
#include <sys/resource.h>

#include "input/open.h"
#include "recordings.h"

enum { ROWS = 6, COLUMNS = 7 };

static void write_data_file(const char *name, int64_t first, int64_t n) {
    write_dataset_file(in_folder(name), "/entry/data/data",
                       &(made_dataset){3, {(hsize_t)n, ROWS, COLUMNS}, {1, ROWS, COLUMNS}, PS_U16, AS_BSLZ4, first, 0, 0});
}

static void make_group(hid_t file, const char *name) {
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    H5Gclose(H5Gcreate2(file, name, links, H5P_DEFAULT, H5P_DEFAULT));
    H5Pclose(links);
}

/* A master with links to file_1.h5 ... file_n.h5. */
static hid_t create_master(const char *name, int n_files, int64_t per_file, int64_t promised) {
    hid_t master = create_file(in_folder(name));
    make_group(master, "/entry/data");
    for (int i = 1; i <= n_files; i++) {
        char link[64], file[64];
        snprintf(link, sizeof link, "/entry/data/data_%06d", i);
        snprintf(file, sizeof file, "file_%d.h5", i);
        write_data_file(file, (i - 1) * per_file, per_file);
        assert_true(H5Lcreate_external(file, "/entry/data/data", master, link, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
    if (promised) {
        add_number(master, "/entry/instrument/detector/detectorSpecific/nimages", 1);
        add_number(master, "/entry/instrument/detector/detectorSpecific/ntrigger", (double)promised);
    }
    return master;
}

static ps_reader *open_with(const char *name, ps_reader_options options) {
    ps_reader *reader = NULL;
    ps_error error = {0};
    if (ps_reader_open(in_folder(name), &options, &reader, &error) != PS_OK) fail_msg("%s", error.text);
    return reader;
}

/* Expects position p to hold the frame that the file made for position source. */
static void expect_frame(ps_reader *reader, int64_t p, int64_t source) {
    uint16_t counts[ROWS * COLUMNS];
    ps_error error = {0};
    if (ps_reader_read(reader, p, 1, counts, &error) != PS_OK) fail_msg("%s", error.text);
    for (int i = 0; i < ROWS * COLUMNS; i++) assert_int_equal(counts[i], count_at(source, i / COLUMNS, i % COLUMNS));
}

static void expect_filled(ps_reader *reader, const int64_t *sources, int64_t n) {
    uint16_t counts[64 * ROWS * COLUMNS];
    ps_error error = {0};
    assert_int_equal(reader->info.n_positions, n);
    if (ps_reader_read(reader, 0, n, counts, &error) != PS_OK) fail_msg("%s", error.text);
    for (int64_t p = 0; p < n; p++) {
        expect_frame(reader, p, sources[p]);
        for (int i = 0; i < ROWS * COLUMNS; i++)
            assert_int_equal(counts[p * ROWS * COLUMNS + i], count_at(sources[p], i / COLUMNS, i % COLUMNS));
    }
}

static void test_missing_files(void **unused) {
    (void)unused;
    static const int64_t sources[12] = {3, 3, 3, 3, 4, 5, 5, 5, 5, 9, 10, 11}, tail[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8};
    H5Fclose(create_master("m_master.h5", 4, 3, 12));
    unlink(in_folder("file_1.h5"));
    unlink(in_folder("file_3.h5"));
    expect_refusal(in_folder("m_master.h5"),
                   "the data file file_1.h5 (link /entry/data/data_000001) is missing; it would hold patterns from 0 on");
    ps_reader *reader = open_with("m_master.h5", (ps_reader_options){.allow_partial = true});
    assert_int_equal(reader->info.n_missing, 6);
    expect_filled(reader, sources, 12);
    assert_true(strstr(ps_reader_notes(reader), "file_3.h5 is missing: patterns 6 to 8 are filled") != NULL);
    ps_reader_close(reader);
    H5Fclose(create_master("m_master.h5", 4, 3, 12));
    unlink(in_folder("file_4.h5")); /* the last one: what is left of the promised frames */
    reader = open_with("m_master.h5", (ps_reader_options){.allow_partial = true});
    expect_filled(reader, tail, 12);
    ps_reader_close(reader);
}

static void test_broken_promise(void **unused) {
    (void)unused;
    static const int64_t sources[9] = {0, 1, 2, 3, 4, 5, 5, 5, 5};
    H5Fclose(create_master("b_master.h5", 2, 3, 9));
    ps_reader *reader = open_good(in_folder("b_master.h5"));
    assert_int_equal(reader->info.n_positions, 6);
    assert_true(strstr(ps_reader_notes(reader), "9 patterns were to be recorded, the data files hold 6") != NULL);
    ps_reader_close(reader);
    reader = open_with("b_master.h5", (ps_reader_options){.allow_partial = true});
    expect_filled(reader, sources, 9);
    assert_int_equal(reader->info.n_missing, 3);
    ps_reader_close(reader);
    for (int i = 1; i <= 2; i++) unlink(in_folder(i == 1 ? "file_1.h5" : "file_2.h5"));
    ps_error error = {0};
    assert_int_equal(ps_reader_open(in_folder("b_master.h5"), &(ps_reader_options){.allow_partial = true}, &reader, &error), PS_E_INPUT);
    expect_text(&error, "nothing tells how many patterns it held");
}

/* Chunks that were never written, with and without the index read here. */
static void test_holes(void **unused) {
    (void)unused;
    static const int64_t sources[8] = {2, 2, 2, 2, 4, 5, 5, 7};
    for (int latest = 0; latest < 2; latest++)
        for (int deflate = 0; deflate < 2; deflate++) {
            hid_t access = H5Pcreate(H5P_FILE_ACCESS);
            if (latest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
            hid_t file = H5Fcreate(in_folder("holes.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, access), plist = H5Pcreate(H5P_DATASET_CREATE);
            hid_t space = H5Screate_simple(3, (hsize_t[]){8, ROWS, COLUMNS}, NULL),
                  memory = H5Screate_simple(3, (hsize_t[]){1, ROWS, COLUMNS}, NULL);
            H5Pset_chunk(plist, 3, (hsize_t[]){1, ROWS, COLUMNS});
            if (deflate) H5Pset_deflate(plist, 1);
            hid_t dataset = H5Dcreate2(file, "d", H5T_NATIVE_UINT16, space, H5P_DEFAULT, plist, H5P_DEFAULT);
            for (hsize_t p = 0; p < 8; p++) {
                if (p == 0 || p == 1 || p == 3 || p == 6) continue;
                uint16_t *counts = make_counts((int64_t)p, 1, ROWS, COLUMNS, PS_U16);
                H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){p, 0, 0}, NULL, (hsize_t[]){1, ROWS, COLUMNS}, NULL);
                assert_true(H5Dwrite(dataset, H5T_NATIVE_UINT16, memory, space, H5P_DEFAULT, counts) >= 0);
                free(counts);
            }
            H5Dclose(dataset), H5Pclose(plist), H5Sclose(memory), H5Sclose(space), H5Fclose(file), H5Pclose(access);
            expect_damage(in_folder("holes.h5"), "pattern 0: was never written");
            ps_reader *reader = open_with("holes.h5", (ps_reader_options){.allow_partial = true});
            expect_filled(reader, sources, 8);
            ps_reader_close(reader);
        }
}

static void test_channels(void **unused) {
    (void)unused;
    enum { CHANNELS = 3, IMAGES = 5 };
    hid_t master = create_file(in_folder("ch_master.h5"));
    add_dataset(master, "/entry/data/data_000001",
                &(made_dataset){4, {IMAGES, CHANNELS, ROWS, COLUMNS}, {1, CHANNELS, ROWS, COLUMNS}, PS_U16, AS_BSLZ4, 0, 0, 0});
    H5Fclose(master);
    expect_refusal(in_folder("ch_master.h5"), "holds 3 channels (image, channel, row, column); choose one with series.channel, 1 to 3");
    for (int64_t channel = 1; channel <= CHANNELS; channel++) {
        ps_reader *reader = open_with("ch_master.h5", (ps_reader_options){.channel = channel, .allow_partial = channel == 2});
        int64_t sources[IMAGES];
        for (int64_t i = 0; i < IMAGES; i++) sources[i] = i * CHANNELS + channel - 1;
        expect_filled(reader, sources, IMAGES);
        ps_reader_close(reader);
    }
    ps_reader *reader = NULL;
    ps_error error = {0};
    assert_int_equal(ps_reader_open(in_folder("ch_master.h5"), &(ps_reader_options){.channel = 4}, &reader, &error), PS_E_INPUT);
    expect_text(&error, "series.channel is 4, but the data has channels 1 to 3");
    master = create_file(in_folder("ch_master.h5"));
    add_dataset(master, "/entry/data/data_000001",
                &(made_dataset){4, {IMAGES, 1, ROWS, COLUMNS}, {1, 1, ROWS, COLUMNS}, PS_U16, AS_BSLZ4, 0, 0, 0});
    H5Fclose(master);
    expect_recording(in_folder("ch_master.h5"), IMAGES, ROWS, COLUMNS, PS_U16); /* one channel needs no choice */
}

/* A virtual dataset [n_files * per_file, ROWS, COLUMNS] or, rank 4, [n_files, per_file, ROWS, COLUMNS] of file_1.h5 ... */
static void make_virtual(const char *name, const char *dataset_name, int rank, int n_files, hsize_t per_file, int without) {
    hsize_t shape[4] = {(hsize_t)n_files * per_file, ROWS, COLUMNS}, source_shape[3] = {per_file, ROWS, COLUMNS};
    if (rank == 4) memcpy(shape, (hsize_t[]){(hsize_t)n_files, per_file, ROWS, COLUMNS}, sizeof shape);
    hid_t file = create_file(in_folder(name)), plist = H5Pcreate(H5P_DATASET_CREATE), links = H5Pcreate(H5P_LINK_CREATE);
    hid_t space = H5Screate_simple(rank, shape, NULL), source = H5Screate_simple(3, source_shape, NULL);
    H5Pset_create_intermediate_group(links, 1);
    for (int i = n_files; i >= 1; i--) { /* not in order */
        char source_name[64];
        hsize_t start[4] = {(hsize_t)(i - 1) * per_file}, count[4] = {per_file, ROWS, COLUMNS};
        if (rank == 4) {
            start[0] = (hsize_t)(i - 1);
            memcpy(count, (hsize_t[]){1, per_file, ROWS, COLUMNS}, sizeof count);
        }
        snprintf(source_name, sizeof source_name, "file_%d.h5", i);
        write_data_file(source_name, (i - 1) * (int64_t)per_file, (int64_t)per_file);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        if (i != without) assert_true(H5Pset_virtual(plist, space, source_name, "/entry/data/data", source) >= 0);
    }
    H5Sselect_all(space);
    hid_t dataset = H5Dcreate2(file, dataset_name, H5T_NATIVE_UINT16, space, links, plist, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Dclose(dataset), H5Sclose(source), H5Sclose(space), H5Pclose(links), H5Pclose(plist), H5Fclose(file);
}

static void test_virtual_datasets(void **unused) {
    (void)unused;
    static const int64_t sources[9] = {0, 1, 2, 2, 2, 2, 6, 7, 8};
    for (int rank = 3; rank <= 4; rank++) {
        make_virtual("v.h5", "/entry/data/data", rank, 3, 3, 0);
        expect_recording(in_folder("v.h5"), 9, ROWS, COLUMNS, PS_U16);
        ps_reader *reader = open_good(in_folder("v.h5"));
        assert_string_equal(reader->info.compression, "bitshuffle-lz4"); /* its sources are unpacked here */
        assert_int_equal(reader->info.n_files, 3);
        assert_int_equal(reader->info.scan_rows, rank == 4 ? 3 : 0);
        ps_reader_close(reader);
        unlink(in_folder("file_2.h5"));
        expect_refusal(in_folder("v.h5"), "the source file file_2.h5 of the virtual dataset is missing; it would hold patterns 3 to 5");
        reader = open_with("v.h5", (ps_reader_options){.allow_partial = true});
        expect_filled(reader, sources, 9);
        ps_reader_close(reader);
        write_data_file("file_2.h5", 3, 4);
        expect_refusal(in_folder("v.h5"), "holds 4 patterns, but the virtual dataset");
        make_virtual("v.h5", "/entry/data/data", rank, 3, 3, 2);
        expect_refusal(in_folder("v.h5"), "a virtual dataset without a source for patterns 3 to 5");
        reader = open_with("v.h5", (ps_reader_options){.allow_partial = true});
        expect_filled(reader, sources, 9);
        ps_reader_close(reader);
    }
}

/* Left and right halves of the detector from two files: only the library can put them together, and every source must be there. */
static void test_virtual_tiles(void **unused) {
    (void)unused;
    hsize_t shape[3] = {4, ROWS, 2 * COLUMNS}, half[3] = {4, ROWS, COLUMNS};
    hid_t file = create_file(in_folder("tiles.h5")), plist = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(3, shape, NULL), source = H5Screate_simple(3, half, NULL);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "tile_b.h5" : "tile_a.h5";
        write_dataset_file(in_folder(name), "d",
                           &(made_dataset){3, {4, ROWS, COLUMNS}, {1, ROWS, COLUMNS}, PS_U16, AS_CHUNKS, 10 * i, 0, 0});
        H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){0, 0, (hsize_t)(COLUMNS * i)}, NULL, half, NULL);
        assert_true(H5Pset_virtual(plist, space, name, "d", source) >= 0);
    }
    H5Sselect_all(space);
    hid_t dataset = H5Dcreate2(file, "v", H5T_NATIVE_UINT16, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    H5Dclose(dataset), H5Sclose(source), H5Sclose(space), H5Pclose(plist), H5Fclose(file);
    ps_reader *reader = open_good(in_folder("tiles.h5"));
    uint16_t counts[4 * ROWS * 2 * COLUMNS];
    assert_int_equal(ps_reader_read(reader, 0, 4, counts, NULL), PS_OK);
    for (int i = 0; i < 4 * ROWS * 2 * COLUMNS; i++) {
        int p = i / (ROWS * 2 * COLUMNS), u = i / (2 * COLUMNS) % ROWS, v = i % (2 * COLUMNS);
        assert_int_equal(counts[i], count_at(p + (v >= COLUMNS ? 10 : 0), u, v % COLUMNS));
    }
    ps_reader_close(reader);
    unlink(in_folder("tile_b.h5"));
    expect_refusal(in_folder("tiles.h5"), "the source file tile_b.h5 of the virtual dataset is missing");
}

static void test_microscopes_file(void **unused) {
    (void)unused;
    H5Fclose(create_master("arina_master.h5", 2, 6, 12));
    hid_t file = create_file(in_folder("arina.h5")), space = H5Screate(H5S_SCALAR);
    make_group(file, "/STEM Metadata");
    for (int i = 0; i < 2; i++) {
        hid_t attribute = H5Acreate_by_name(file, "/STEM Metadata", i ? "NumPixelsX" : "NumPixelsY", H5T_NATIVE_INT64, space, H5P_DEFAULT,
                                            H5P_DEFAULT, H5P_DEFAULT);
        H5Awrite(attribute, H5T_NATIVE_INT64, i ? (int64_t[]){4} : (int64_t[]){3});
        H5Aclose(attribute);
    }
    H5Sclose(space), H5Fclose(file);
    ps_reader *reader = open_good(in_folder("arina_master.h5"));
    assert_int_equal(reader->info.scan_rows, 3);
    assert_int_equal(reader->info.scan_columns, 4);
    ps_reader_close(reader);
}

static void test_thousand_files(void **unused) {
    (void)unused;
    struct rlimit before, low;
    hid_t master = create_master("many_master.h5", 1000, 2, 2000);
    H5Fclose(master);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = 40;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    ps_reader *reader = open_good(in_folder("many_master.h5"));
    assert_int_equal(reader->info.n_files, 1000);
    expect_counts(reader, 0, 2000);
    for (int64_t p = 1999; p >= 0; p -= 97) expect_frame(reader, p, p);
    ps_reader_close(reader);
    setrlimit(RLIMIT_NOFILE, &before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_files),    cmocka_unit_test(test_broken_promise),   cmocka_unit_test(test_holes),
        cmocka_unit_test(test_channels),         cmocka_unit_test(test_virtual_datasets), cmocka_unit_test(test_virtual_tiles),
        cmocka_unit_test(test_microscopes_file), cmocka_unit_test(test_thousand_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
