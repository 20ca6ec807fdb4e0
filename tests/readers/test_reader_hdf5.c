/* HDF5 datasets of every layout, type and rank; what is wrong with them; real files of four library generations. */
#include "recordings.h"

static void check(const made_dataset *made, ps_dtype expected) {
    const char *path = in_folder("any.h5");
    write_dataset_file(path, "/some/where/counts", made);
    int64_t n = (int64_t)(made->rank == 4 ? made->shape[0] * made->shape[1] : made->shape[0]);
    expect_recording(path, n, (int64_t)made->shape[made->rank - 2], (int64_t)made->shape[made->rank - 1], expected);
}

static void test_layouts(void **unused) {
    (void)unused;
    static const made_storage storages[] = {AS_CONTIGUOUS, AS_CHUNKS, AS_BSLZ4, AS_LZ4, AS_DEFLATE};
    static const ps_dtype types[] = {PS_U8, PS_U16, PS_U32, PS_I16, PS_F32, PS_F64};
    for (int s = 0; s < 5; s++)
        for (int t = 0; t < 6; t++) {
            check(&(made_dataset){3, {23, 19, 17}, {1, 19, 17}, types[t], storages[s], 0, 0, 0}, types[t]);
            check(&(made_dataset){3, {23, 19, 17}, {4, 8, 17}, types[t], storages[s], 0, 0, 1}, types[t]);
            check(&(made_dataset){3, {9, 19, 17}, {4, 8, 5}, types[t], storages[s], 0, 0, 0}, types[t]);
            check(&(made_dataset){4, {3, 7, 11, 13}, {1, 1, 11, 13}, types[t], storages[s], 0, 0, 0}, types[t]);
            check(&(made_dataset){4, {3, 7, 11, 13}, {2, 3, 5, 13}, types[t], storages[s], 0, 0, 0}, types[t]);
            check(&(made_dataset){4, {5, 7, 11, 13}, {2, 7, 11, 13}, types[t], storages[s], 0, 0, 0}, types[t]);
        }
}

static void test_one_of_everything(void **unused) {
    (void)unused;
    check(&(made_dataset){3, {1, 1, 1}, {1, 1, 1}, PS_U16, AS_BSLZ4, 0, 0, 0}, PS_U16);
    check(&(made_dataset){4, {1, 9, 1, 5}, {1, 1, 1, 5}, PS_U32, AS_BSLZ4, 0, 0, 0}, PS_U32);
    check(&(made_dataset){4, {9, 1, 5, 1}, {1, 1, 5, 1}, PS_U8, AS_BSLZ4, 0, 0, 0}, PS_U8);
}

static void test_converted_types(void **unused) {
    (void)unused;
    static const made_storage storages[] = {AS_CONTIGUOUS, AS_DEFLATE};
    for (int s = 0; s < 2; s++) {
        check(&(made_dataset){3, {9, 5, 6}, {2, 5, 6}, PS_U16, storages[s], 0, H5T_STD_U16BE, 0}, PS_U16);
        check(&(made_dataset){3, {9, 5, 6}, {2, 5, 6}, PS_F32, storages[s], 0, H5T_IEEE_F32BE, 0}, PS_F32);
        check(&(made_dataset){3, {9, 5, 6}, {2, 5, 6}, PS_U32, storages[s], 0, H5T_STD_U64LE, 0}, PS_F64);
    }
}

/* Big-endian elements in chunks that this program unpacks itself: the bytes in the file are swapped. */
static void test_big_endian_chunks(void **unused) {
    (void)unused;
    const char *path = in_folder("be.h5");
    hid_t file = create_file(path), space = H5Screate_simple(3, (hsize_t[]){2, 3, 4}, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 3, (hsize_t[]){1, 3, 4});
    hid_t dataset = H5Dcreate2(file, "d", H5T_STD_I32BE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    int32_t *counts = make_counts(0, 2, 3, 4, PS_I32);
    H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, counts);
    free(counts);
    H5Dclose(dataset), H5Pclose(plist), H5Sclose(space), H5Fclose(file);
    expect_recording(path, 2, 3, 4, PS_I32);
}

/* The newest format has other indexes, which are left to the library; a user block moves all addresses. */
static void test_other_file_formats(void **unused) {
    (void)unused;
    const made_dataset made = {3, {40, 6, 7}, {1, 6, 7}, PS_U16, AS_BSLZ4, 0, 0, 1};
    for (int latest = 0; latest < 2; latest++)
        for (hsize_t block = 0; block <= 512; block += 512) {
            const char *path = in_folder("format.h5");
            hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
            if (latest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
            H5Pset_userblock(create, block);
            hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
            add_dataset(file, "d", &made);
            H5Fclose(file), H5Pclose(access), H5Pclose(create);
            expect_recording(path, 40, 6, 7, PS_U16);
        }
}

static void test_many_chunks(void **unused) {
    (void)unused;
    const made_dataset made = {3, {3000, 3, 3}, {1, 3, 3}, PS_U8, AS_BSLZ4, 0, 0, 0};
    write_dataset_file(in_folder("many.h5"), "d", &made); /* a B-tree of more than one level */
    ps_reader *reader = open_good(in_folder("many.h5"));
    expect_counts(reader, 0, 3000);
    expect_counts(reader, 2999, 1);
    ps_reader_close(reader);
}

static void test_choice_of_dataset(void **unused) {
    (void)unused;
    const char *path = in_folder("two.h5");
    hid_t file = create_file(path);
    add_dataset(file, "/a", &(made_dataset){3, {4, 3, 3}, {1, 3, 3}, PS_U8, AS_CHUNKS, 0, 0, 0});
    add_dataset(file, "/g/b", &(made_dataset){4, {2, 2, 3, 3}, {1, 1, 3, 3}, PS_U16, AS_CHUNKS, 0, 0, 0});
    add_number(file, "/g/c", 7);
    H5Fclose(file);
    expect_refusal(path, "holds 2 datasets of rank 3 or 4");
    expect_refusal(path, "/a, /g/b");
    char source[600];
    snprintf(source, sizeof source, "%s:/a", path);
    expect_recording(source, 4, 3, 3, PS_U8);
    snprintf(source, sizeof source, "%s:/g/b", path);
    expect_recording(source, 4, 3, 3, PS_U16);
    snprintf(source, sizeof source, "%s:/g/c", path);
    expect_refusal(source, "found a dataset of rank 0, expected 3");
    snprintf(source, sizeof source, "%s:/g/none", path);
    expect_refusal(source, "holds no dataset /g/none");
    snprintf(source, sizeof source, "%s:/g", path);
    expect_refusal(source, "cannot open the dataset");
}

static void test_never_written(void **unused) {
    (void)unused;
    const char *path = in_folder("hole.h5");
    hid_t file = create_file(path), space = H5Screate_simple(3, (hsize_t[]){3, 3, 4}, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 3, (hsize_t[]){1, 3, 4});
    hid_t dataset = H5Dcreate2(file, "d", H5T_NATIVE_UINT8, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    uint8_t frame[12] = {0};
    H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, (hsize_t[]){0, 0, 0}, sizeof frame, frame);
    H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, (hsize_t[]){2, 0, 0}, sizeof frame, frame);
    H5Dclose(dataset), H5Pclose(plist), H5Sclose(space), H5Fclose(file);
    expect_damage(path, "pattern 1: was never written");
}

/* Overwrites n bytes of the chunk of pattern 5, from `at` on. */
static void damage_chunk(const char *path, size_t at, const char *bytes, size_t n, haddr_t *address) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), dataset = H5Dopen2(file, "d", H5P_DEFAULT);
    hsize_t size = 0;
    unsigned mask = 0;
    assert_true(H5Dget_chunk_info_by_coord(dataset, (hsize_t[]){5, 0, 0}, &mask, address, &size) >= 0);
    H5Dclose(dataset), H5Fclose(file);
    FILE *stream = fopen(path, "r+b");
    fseek(stream, (long)(*address + at), SEEK_SET);
    fwrite(bytes, 1, n, stream);
    fclose(stream);
}

static void expect_damaged_chunk(made_storage storage, size_t at, const char *bytes, size_t n, const char *text) {
    const char *path = in_folder("damaged.h5");
    haddr_t address = 0;
    char place[200];
    write_dataset_file(path, "d", &(made_dataset){3, {9, 64, 80}, {1, 64, 80}, PS_U16, storage, 0, 0, 0});
    damage_chunk(path, at, bytes, n, &address);
    expect_damage(path, text);
    snprintf(place, sizeof place, "pattern 5, chunk of ");
    expect_damage(path, place);
    snprintf(place, sizeof place, "at byte %llu of the file", (unsigned long long)address);
    expect_damage(path, place);
    ps_reader *reader = open_good(path); /* the rest is unharmed */
    expect_counts(reader, 0, 5);
    expect_counts(reader, 6, 3);
    ps_reader_close(reader);
}

static void test_damaged_chunks(void **unused) {
    (void)unused;
    expect_damaged_chunk(AS_BSLZ4, 0, "\xff", 1, "byte 0: the header says");
    expect_damaged_chunk(AS_BSLZ4, 8, "\0\0\0\7", 4, "byte 8: the header says blocks of 7 bytes");
    expect_damaged_chunk(AS_BSLZ4, 12, "\x7f\xff\xff\xff", 4, "byte 12: a block says it has 2147483647 bytes");
    expect_damaged_chunk(AS_BSLZ4, 16,
                         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                         39, "byte 16: damaged LZ4 block");
    expect_damaged_chunk(AS_LZ4, 12, "\0\0\0\1", 4, "damaged LZ4 block of 1 bytes");
}

static void test_truncated_file(void **unused) {
    (void)unused;
    const char *path = in_folder("cut.h5");
    write_dataset_file(path, "d", &(made_dataset){3, {9, 64, 80}, {1, 64, 80}, PS_U16, AS_BSLZ4, 0, 0, 0});
    struct stat status;
    stat(path, &status);
    assert_int_equal(truncate(path, status.st_size - 100), 0);
    expect_refusal(path, "HDF5 cannot open it");
    assert_int_equal(truncate(path, 5), 0);
    expect_refusal(path, "not a recording of a known kind");
    assert_int_equal(truncate(path, 0), 0);
    expect_refusal(path, "is empty");
}

typedef struct {
    const char *name;
    int64_t n;
    double sum, weighted;
} known_sums;

/* The same datasets, written by four generations of the library. */
static const known_sums generations[] = {
    {"data/chunked", 3, 300.0, 65150.0},
    {"data/chunked_bslz4", 3, 300.0, 65150.0},
    {"data/chunked_fixed_array", 20, 760.0, 41420.0},
    {"data/chunked_fixed_array_bslz4", 20, 760.0, 41420.0},
    {"data/chunked_fixed_array_paged", 5000, 49990000.0, 25298154940.0},
    {"data/chunked_fixed_array_paged_bslz4", 5000, 49990000.0, 25298154940.0},
    {"data/chunked_unlimited_maxshape", 3, 300.0, 65150.0},
    {"data/chunked_unlimited_maxshape_bslz4", 3, 300.0, 65150.0},
    {"data/not_chunked", 3, 300.0, 65150.0},
    {"data/chunked_external", 3, 300.0, 65150.0},
    {"data/not_chunked_external", 3, 300.0, 65150.0},
    {"data/chunked_soft", 3, 300.0, 65150.0},
    {"data/sub_hard/chunked_hard", 3, 300.0, 65150.0},
    {"sub/chunked_external", 3, 300.0, 65150.0},
    {"sub/chunked_soft", 3, 300.0, 65150.0},
    {"data/sub_soft/chunked_external", 3, 300.0, 65150.0},
};

static void test_four_generations(void **unused) {
    (void)unused;
    static const char *const libraries[] = {"earliest", "v108", "v110", "v112"};
    char source[600];
    skip_without(FORMATS "/datasets_different_h5ver");
    for (int library = 0; library < 4; library++)
        for (size_t i = 0; i < sizeof generations / sizeof *generations; i++) {
            const known_sums *known = &generations[i];
            snprintf(source, sizeof source, FORMATS "/datasets_different_h5ver/dataset_%s.h5:/%s", libraries[library], known->name);
            expect_sums(source, known->n, known->sum, known->weighted);
        }
}

static const known_sums detector_files[] = {
    {"bslz4_data_000001.h5", 2, 7297080.0, 3684155032.0},
    {"bslz4_data_000002.h5", 2, 7297080.0, 3684160233.0},
    {"bslz4_uint32_data_000001.h5", 2, 43782480.0, 22104969391.0},
    {"bslz4_uint32_data_000002.h5", 2, 43782480.0, 22104969293.0},
    {"bslz4_uint8_data_000001.h5", 2, 7297080.0, 3684154127.0},
    {"bslz4_uint8_data_000002.h5", 2, 7297080.0, 3684155627.0},
    {"lz4_data_000001.h5", 2, 7297080.0, 3684164309.0},
    {"lz4_data_000002.h5", 2, 7297080.0, 3684166901.0},
};

static void test_detector_files(void **unused) {
    (void)unused;
    char source[600];
    skip_without(FORMATS "/datasets_eiger2");
    for (size_t i = 0; i < sizeof detector_files / sizeof *detector_files; i++) {
        const known_sums *known = &detector_files[i];
        snprintf(source, sizeof source, FORMATS "/datasets_eiger2/eiger2_simread7_2datafiles_4images_%s", known->name);
        expect_sums(source, known->n, known->sum, known->weighted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),           cmocka_unit_test(test_one_of_everything),  cmocka_unit_test(test_converted_types),
        cmocka_unit_test(test_big_endian_chunks), cmocka_unit_test(test_other_file_formats), cmocka_unit_test(test_many_chunks),
        cmocka_unit_test(test_choice_of_dataset), cmocka_unit_test(test_never_written),      cmocka_unit_test(test_damaged_chunks),
        cmocka_unit_test(test_truncated_file),    cmocka_unit_test(test_four_generations),   cmocka_unit_test(test_detector_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
