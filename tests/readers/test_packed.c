/* Packed patterns of a recording, unpacked by the kernels' host twin, are the counts that its reader gives; recordings of which chunks are
 * not all there is are read as counts, and say why. */
#include <math.h>
#include <pthread.h>

#include "input/adapters/clean.h"
#include "input/open.h"
#include "input/packed.h"
#include "recordings.h"

enum { ROWS = 9, COLUMNS = 12, PIECES = 12 };

static void make_master(const char *path, ps_dtype dtype, made_storage storage, hsize_t chunk_positions) {
    hid_t master = create_file(path), links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    H5Gclose(H5Gcreate2(master, "/entry/data", links, H5P_DEFAULT, H5P_DEFAULT));
    for (int i = 0; i < PIECES; i++) {
        char link[64], file[64];
        snprintf(link, sizeof link, "/entry/data/data_%06d", i + 1);
        snprintf(file, sizeof file, "piece %d.h5", i + 1);
        write_dataset_file(in_folder(file), "/entry/data/data",
                           &(made_dataset){3, {3, ROWS, COLUMNS}, {chunk_positions, ROWS, COLUMNS}, dtype, storage, 3 * i, 0, 1});
        assert_true(H5Lcreate_external(file, "/entry/data/data", master, link, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
    H5Pclose(links);
    H5Fclose(master);
}

static ps_reader *open_with(const char *path, const ps_reader_options *options) {
    ps_reader *reader;
    ps_error error = {0};
    if (ps_reader_open(path, options, &reader, &error) != PS_OK) fail_msg("%s", error.text);
    return reader;
}

/* Every pattern read in rooms of `room_bytes`, against what the reader gives. */
static void expect_same(ps_reader *reader, ps_packed_recording *recording, size_t room_bytes) {
    ps_error error = {0};
    char why[PS_PACKED_WHY];
    bool usable = false;
    if (ps_packed_find(recording, &usable, why, &error) != PS_OK || !usable) fail_msg("%s%s", error.text, why);
    int64_t n_pixels = reader->info.detector_rows * reader->info.detector_columns, all = reader->info.n_positions;
    size_t pattern = (size_t)n_pixels * ps_dtype_bytes(reader->info.dtype);
    uint8_t *room = malloc(room_bytes), *expected = malloc(pattern), *found = malloc(pattern);
    ps_packed_pattern *patterns = malloc((size_t)all * sizeof *patterns);
    ps_unpack_rules rules = {.limit = ps_packed_limit(recording), .big_endian = ps_packed_is_big_endian(recording)};
    for (int64_t first = 0, n; first < all; first += n) {
        size_t used = 0;
        n = ps_packed_fit(recording, first, room_bytes);
        assert_true(n > 0 && first + n <= all);
        assert_int_equal(ps_packed_read(recording, first, n, room, patterns, &used, &error), PS_OK);
        assert_true(used <= room_bytes);
        for (int64_t i = 0; i < n; i++) {
            assert_true(patterns[i].offset + patterns[i].bytes <= used);
            assert_true(ps_unpack_pattern(ps_packed_packing(recording), reader->info.dtype, n_pixels, &rules, room + patterns[i].offset,
                                          patterns[i].bytes, found, NULL));
            assert_int_equal(ps_reader_read(reader, first + i, 1, expected, &error), PS_OK);
            assert_memory_equal(found, expected, pattern);
        }
    }
    free(room), free(expected), free(found), free(patterns);
}

static void packed_counts_are_the_readers(void **unused) {
    (void)unused;
    static const made_storage storages[] = {AS_CHUNKS, AS_BSLZ4, AS_LZ4, AS_CONTIGUOUS};
    static const ps_packing packings[] = {PS_PACKED_PLAIN, PS_PACKED_BSLZ4, PS_PACKED_LZ4, PS_PACKED_PLAIN};
    static const ps_dtype types[] = {PS_U8, PS_U16, PS_U32};
    static const size_t rooms[] = {600, 5000, 1 << 20};
    ps_error error = {0};
    char why[PS_PACKED_WHY];
    for (int s = 0; s < 4; s++)
        for (int t = 0; t < 3; t++) {
            ps_packed_recording *recording = NULL;
            make_master(in_folder("a_master.h5"), types[t], storages[s], 1);
            ps_reader *reader = open_with(in_folder("a_master.h5"), NULL);
            assert_int_equal(ps_packed_open(reader, &recording, why, &error), PS_OK);
            if (!recording) fail_msg("not taken: %s", why);
            assert_int_equal(ps_packed_packing(recording), packings[s]);
            assert_int_equal(ps_packed_limit(recording), 0);
            for (int r = 0; r < 3; r++) expect_same(reader, recording, rooms[r]);
            assert_int_equal(ps_packed_fit(recording, 0, 3), 0);
            ps_packed_close(recording);
            ps_reader_close(reader);
        }
}

/* Saturated counts become the invalid-count value in both. */
static void limits_are_the_readers(void **unused) {
    (void)unused;
    ps_error error = {0};
    char why[PS_PACKED_WHY];
    ps_packed_recording *recording = NULL;
    make_master(in_folder("a_master.h5"), PS_U16, AS_BSLZ4, 1);
    ps_reader *reader = open_with(in_folder("a_master.h5"), &(ps_reader_options){.exclude_invalid = true, .saturation = 60.5});
    assert_int_equal(ps_packed_open(reader, &recording, why, &error), PS_OK);
    if (!recording) fail_msg("not taken: %s", why);
    assert_int_equal(ps_packed_limit(recording), 61);
    expect_same(reader, recording, 4000);
    assert_true(ps_reader_invalid(reader).n_saturated > 0);
    ps_packed_close(recording);
    ps_reader_close(reader);
}

static void expect_left(const ps_reader_options *options, const char *reason) {
    ps_error error = {0};
    char why[PS_PACKED_WHY];
    ps_packed_recording *recording = NULL;
    ps_reader *reader = open_with(in_folder("a_master.h5"), options);
    assert_int_equal(ps_packed_open(reader, &recording, why, &error), PS_OK);
    assert_null(recording);
    if (!strstr(why, reason)) fail_msg("'%s' does not say '%s'", why, reason);
    ps_reader_close(reader);
}

static void other_recordings_say_why(void **unused) {
    (void)unused;
    make_master(in_folder("a_master.h5"), PS_U16, AS_BSLZ4, 1);
    expect_left(&(ps_reader_options){.allow_partial = true}, "may be filled");
    expect_left(&(ps_reader_options){.scan_rows = 6, .scan_columns = 3, .repeats = 2}, "chosen, summed or cleaned");
    expect_left(&(ps_reader_options){.scan_rows = 6, .scan_columns = 6, .serpentine = true}, "chosen, summed or cleaned");
    make_master(in_folder("a_master.h5"), PS_U16, AS_BSLZ4, 2);
    expect_left(NULL, "not one pattern each");
    make_master(in_folder("a_master.h5"), PS_I16, AS_BSLZ4, 1);
    expect_left(&(ps_reader_options){.exclude_invalid = true}, "cleaned");
    make_master(in_folder("a_master.h5"), PS_F64, AS_BSLZ4, 1);
    expect_left(NULL, "8 bytes");
}

typedef struct {
    ps_packed_recording *recording;
    bool usable;
    char why[PS_PACKED_WHY];
} finder;

static void *find(void *argument) {
    finder *f = argument;
    f->usable = true;
    return ps_packed_find(f->recording, &f->usable, f->why, NULL) == PS_OK ? f : NULL;
}

/* By n threads at a time, which must all say the same. */
static finder find_by(ps_packed_recording *recording, int n) {
    pthread_t threads[8];
    finder finders[8];
    for (int i = 0; i < n; i++) {
        finders[i].recording = recording;
        assert_int_equal(pthread_create(&threads[i], NULL, find, &finders[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_non_null(result);
        assert_int_equal(finders[i].usable, finders[0].usable);
        assert_string_equal(finders[i].why, finders[0].why);
    }
    return finders[0];
}

/* What only the second data file tells is met once that is opened. */
static void expect_left_late(const char *reason) {
    ps_error error = {0};
    char why[PS_PACKED_WHY];
    ps_packed_recording *recording = NULL;
    ps_reader *reader = open_with(in_folder("a_master.h5"), NULL);
    assert_int_equal(ps_packed_open(reader, &recording, why, &error), PS_OK);
    if (!recording) fail_msg("not taken: %s", why);
    assert_false(ps_packed_is_left(recording));
    finder found = find_by(recording, 3);
    assert_false(found.usable);
    assert_true(ps_packed_is_left(recording));
    if (!strstr(found.why, reason)) fail_msg("'%s' does not say '%s'", found.why, reason);
    ps_packed_close(recording);
    ps_reader_close(reader);
}

static void later_files_are_looked_at(void **unused) {
    (void)unused;
    made_dataset made = {3, {3, ROWS, COLUMNS}, {1, ROWS, COLUMNS}, PS_U16, AS_LZ4, 3, 0, 1};
    make_master(in_folder("a_master.h5"), PS_U16, AS_BSLZ4, 1);
    write_dataset_file(in_folder("piece 2.h5"), "/entry/data/data", &made);
    expect_left_late("packed differently");
    made.storage = AS_DEFLATE;
    write_dataset_file(in_folder("piece 2.h5"), "/entry/data/data", &made);
    expect_left_late("HDF5 library undoes");
    made.storage = AS_BSLZ4;
    write_dataset_file(in_folder("piece 2.h5"), "/entry/data/data", &made);
    hid_t file = H5Fopen(in_folder("piece 2.h5"), H5F_ACC_RDWR, H5P_DEFAULT), dataset = H5Dopen2(file, "/entry/data/data", H5P_DEFAULT);
    assert_true(H5Dset_extent(dataset, (hsize_t[]){4, ROWS, COLUMNS}) >= 0);
    H5Dclose(dataset);
    H5Fclose(file);
    expect_left_late("chunks that are not there");
}

/* An index of many leaves, with more than one level above them. */
static void a_tree_of_many_leaves(void **unused) {
    (void)unused;
    enum { POSITIONS = 9000 };
    made_dataset made = {3, {POSITIONS, 2, 3}, {1, 2, 3}, PS_U8, AS_CHUNKS, 0, 0, 1};
    write_dataset_file(in_folder("many.h5"), "/entry/data/data", &made);
    for (int threads = 1; threads <= 5; threads += 4) {
        ps_error error = {0};
        char why[PS_PACKED_WHY];
        ps_packed_recording *recording = NULL;
        ps_reader *reader = open_with(in_folder("many.h5"), NULL);
        assert_int_equal(ps_packed_open(reader, &recording, why, &error), PS_OK);
        if (!recording) fail_msg("not taken: %s", why);
        assert_true(find_by(recording, threads).usable);
        assert_int_equal(ps_packed_bytes(recording), POSITIONS * 6);
        expect_same(reader, recording, 5000);
        ps_packed_close(recording);
        ps_reader_close(reader);
    }
}

static void a_real_recording(void **unused) {
    (void)unused;
    const char *path = PS_SOURCE_DIR "/../shared/data/virus/virus_001_master.h5";
    ps_error error = {0};
    char why[PS_PACKED_WHY];
    ps_packed_recording *recording = NULL;
    skip_without(path);
    ps_reader *reader = open_with(path, &(ps_reader_options){.exclude_invalid = true});
    assert_int_equal(ps_packed_open(reader, &recording, why, &error), PS_OK);
    if (!recording) fail_msg("not taken: %s", why);
    expect_same(reader, recording, 1 << 20);
    ps_packed_close(recording);
    ps_reader_close(reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_counts_are_the_readers), cmocka_unit_test(limits_are_the_readers),
        cmocka_unit_test(other_recordings_say_why),      cmocka_unit_test(later_files_are_looked_at),
        cmocka_unit_test(a_tree_of_many_leaves),         cmocka_unit_test(a_real_recording),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
