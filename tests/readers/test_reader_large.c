/* More than 2^31 elements and 2^32 bytes, in files that are mostly holes; counts that need 32 bits. */
#include <fcntl.h>

#include "recordings.h"

enum { N = 70000, SIDE = 200, LAST = N - 3 }; /* 2.8e9 elements */

static void expect_frame(const char *source, int64_t position, ps_dtype dtype) {
    ps_reader *reader = open_good(source);
    assert_int_equal(reader->info.n_positions, N);
    assert_int_equal(reader->info.dtype, dtype);
    expect_counts(reader, position, 1);
    ps_reader_close(reader);
}

static void test_numpy(void **unused) {
    (void)unused;
    char header[129];
    snprintf(header, sizeof header, "%-117s\n", "{'descr': '<u2', 'fortran_order': False, 'shape': (70000, 200, 200), }");
    int file = open(in_folder("large.npy"), O_WRONLY | O_CREAT, 0666);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, "\x93NUMPY\1\0\x76\0", 10, 0), 10);
    assert_int_equal(pwrite(file, header, 118, 10), 118);
    size_t bytes = (size_t)SIDE * SIDE * 2;
    void *frame = make_counts(LAST, 1, SIDE, SIDE, PS_U16);
    assert_int_equal(ftruncate(file, 128 + (off_t)bytes * N), 0);
    assert_int_equal(pwrite(file, frame, bytes, 128 + (off_t)bytes * LAST), bytes);
    close(file);
    free(frame);
    expect_frame(in_folder("large.npy"), LAST, PS_U16);
    unlink(in_folder("large.npy"));
}

static void write_one_frame(const char *path, bool chunked) {
    hid_t file = create_file(path), plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(3, (hsize_t[]){N, SIDE, SIDE}, NULL);
    hid_t memory = H5Screate_simple(3, (hsize_t[]){1, SIDE, SIDE}, NULL);
    if (chunked) H5Pset_chunk(plist, 3, (hsize_t[]){1, SIDE, SIDE});
    H5Pset_alloc_time(plist, chunked ? H5D_ALLOC_TIME_INCR : H5D_ALLOC_TIME_LATE);
    H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER);
    hid_t dataset = H5Dcreate2(file, "d", H5T_NATIVE_UINT16, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    void *frame = make_counts(LAST, 1, SIDE, SIDE, PS_U16);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){LAST, 0, 0}, NULL, (hsize_t[]){1, SIDE, SIDE}, NULL);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_UINT16, memory, space, H5P_DEFAULT, frame) >= 0);
    free(frame);
    H5Dclose(dataset), H5Sclose(memory), H5Sclose(space), H5Pclose(plist), H5Fclose(file);
}

static void test_hdf5(void **unused) {
    (void)unused;
    for (int chunked = 0; chunked < 2; chunked++) {
        write_one_frame(in_folder("large.h5"), chunked);
        expect_frame(in_folder("large.h5"), LAST, PS_U16);
        unlink(in_folder("large.h5"));
    }
}

static void test_counts_of_32_bits(void **unused) {
    (void)unused;
    static const uint32_t counts[8] = {0, 65535, 65536, 70000, 16777217, 2147483648u, 4294967294u, 4294967295u};
    uint32_t back[8];
    uint8_t stream[40000];
    size_t used = 0;
    hid_t file = create_file(in_folder("u32.h5")), plist = H5Pcreate(H5P_DATASET_CREATE),
          space = H5Screate_simple(3, (hsize_t[]){1, 2, 4}, NULL);
    H5Pset_chunk(plist, 3, (hsize_t[]){1, 2, 4});
    set_bslz4(plist, 4);
    hid_t dataset = H5Dcreate2(file, "d", H5T_NATIVE_UINT32, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    assert_int_equal(ps_bslz4_encode(counts, 8, 4, stream, sizeof stream, &used, NULL), PS_OK);
    assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, (hsize_t[]){0, 0, 0}, used, stream) >= 0);
    H5Dclose(dataset), H5Sclose(space), H5Pclose(plist), H5Fclose(file);
    ps_reader *reader = open_good(in_folder("u32.h5"));
    assert_int_equal(ps_reader_read(reader, 0, 1, back, NULL), PS_OK);
    assert_memory_equal(back, counts, sizeof counts);
    ps_reader_close(reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numpy), cmocka_unit_test(test_hdf5), cmocka_unit_test(test_counts_of_32_bits)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
