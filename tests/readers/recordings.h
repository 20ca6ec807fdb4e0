/* Recordings made for tests: every count is a known function of its place, so any reader's answer can be checked anywhere. */
#ifndef PS_TESTS_READERS_RECORDINGS_H
#define PS_TESTS_READERS_RECORDINGS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <hdf5.h>

#include "core/types.h"
#include "hdf5/bslz4.h"
#include "hdf5/element_type.h"
#include "input/open.h"
#include "input/reader.h"
#include "input/recording_files.h"
#include "input/source.h"

#define FORMATS PS_SOURCE_DIR "/../shared/data/formats"

static char test_folder[256];

__attribute__((unused)) static int make_folder(void **unused) {
    (void)unused;
    snprintf(test_folder, sizeof test_folder, "/tmp/ptyseries readers µ-XXXXXX");
    return mkdtemp(test_folder) ? 0 : -1;
}

__attribute__((unused)) static int remove_folder(void **unused) {
    (void)unused;
    char command[400];
    snprintf(command, sizeof command, "rm -r '%s'", test_folder);
    return system(command);
}

/* A path in the test folder; a few calls may be alive at once. */
__attribute__((unused)) static const char *in_folder(const char *name) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", test_folder, name);
    return path;
}

__attribute__((unused)) static int64_t count_at(int64_t position, int64_t row, int64_t column) {
    uint64_t x = (uint64_t)position * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)(row * 7919 + column + 1) * UINT64_C(0xD1B54A32D192ED03);
    x ^= x >> 31;
    return (int64_t)(x % 11) + (x % 97 == 0 ? 80 : 0);
}

__attribute__((unused)) static void store_count(void *counts, size_t index, ps_dtype dtype, int64_t value) {
    switch (dtype) {
#define X(d, type, name) \
    case d: ((type *)counts)[index] = (type)value; break;
        PS_DTYPES(X)
#undef X
    default: abort();
    }
}

__attribute__((unused)) static double load_count(const void *counts, size_t index, ps_dtype dtype) {
    switch (dtype) {
#define X(d, type, name) \
    case d: return (double)((const type *)counts)[index];
        PS_DTYPES(X)
#undef X
    default: abort();
    }
}

/* [n, rows, columns] of dtype from position `first` on; malloc'd */
__attribute__((unused)) static void *make_counts(int64_t first, int64_t n, int64_t rows, int64_t columns, ps_dtype dtype) {
    char *counts = malloc((size_t)(n * rows * columns) * ps_dtype_bytes(dtype));
    assert_non_null(counts);
    for (int64_t p = 0; p < n; p++)
        for (int64_t u = 0; u < rows; u++)
            for (int64_t v = 0; v < columns; v++)
                store_count(counts, (size_t)((p * rows + u) * columns + v), dtype, count_at(first + p, u, v));
    return counts;
}

/* Whether path is one of these files, under whatever name. */
static bool is_among(const ps_name_list *names, const char *path) {
    struct stat wanted, one;
    assert_int_equal(stat(path, &wanted), 0);
    for (int64_t i = 0; i < names->n; i++)
        if (stat(names->names[i], &one) == 0 && one.st_ino == wanted.st_ino && one.st_dev == wanted.st_dev) return true;
    return false;
}

/* Files of the test folder that this process has open now. */
static void list_open_files(ps_name_list *open) {
    char link[64], path[512];
    for (int descriptor = 3; descriptor < 256; descriptor++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(link, path, sizeof path - 1);
        if (length <= 0) continue;
        path[length] = '\0';
        if (strncmp(path, test_folder, strlen(test_folder)) == 0) assert_int_equal(ps_name_list_add(open, path), PS_OK);
    }
}

/* What an output must not write over contains the named file, every file that the reader says it reads, and those that it has open. */
static void expect_guarded(const char *source, const ps_reader *reader) {
    ps_error error = {0};
    ps_name_list guarded = {0}, read = {0};
    ps_source parts = {0};
    assert_int_equal(ps_source_split(source, &parts, &error), PS_OK);
    list_open_files(&read);
    if (ps_reader_list_files(reader, &read, &error) != PS_OK) fail_msg("%s", error.text);
    if (ps_recording_files_list(source, NULL, &guarded, &error) != PS_OK) fail_msg("%s", error.text);
    assert_int_equal(ps_name_list_add(&guarded, parts.path), PS_OK);
    for (int64_t i = 0; i < read.n; i++)
        if (access(read.names[i], F_OK) == 0 && !is_among(&guarded, read.names[i]))
            fail_msg("%s: reads %s, which the list of its files lacks", source, read.names[i]);
    ps_source_free(&parts);
    ps_name_list_free(&guarded);
    ps_name_list_free(&read);
}

__attribute__((unused)) static ps_reader *open_good(const char *source) {
    ps_reader *reader = NULL;
    ps_error error = {0};
    if (ps_reader_open(source, NULL, &reader, &error) != PS_OK) fail_msg("%s", error.text);
    expect_guarded(source, reader);
    return reader;
}

/* Reads positions [first, first + n) and compares each count with count_at. */
__attribute__((unused)) static void expect_counts(ps_reader *reader, int64_t first, int64_t n) {
    const ps_recording *info = &reader->info;
    size_t frame = (size_t)(info->detector_rows * info->detector_columns);
    void *counts = malloc((size_t)n * frame * ps_dtype_bytes(info->dtype) + 1);
    ps_error error = {0};
    if (ps_reader_read(reader, first, n, counts, &error) != PS_OK) fail_msg("%s", error.text);
    for (int64_t p = 0; p < n; p++)
        for (int64_t u = 0; u < info->detector_rows; u++)
            for (int64_t v = 0; v < info->detector_columns; v++) {
                double found = load_count(counts, (size_t)p * frame + (size_t)(u * info->detector_columns + v), info->dtype);
                if (found != (double)count_at(first + p, u, v))
                    fail_msg("position %lld, pixel (%lld, %lld): found %g, expected %lld", (long long)(first + p), (long long)u,
                             (long long)v, found, (long long)count_at(first + p, u, v));
            }
    free(counts);
}

/* Opens, checks shape and type, and every count through reads of several sizes. */
__attribute__((unused)) static void expect_recording(const char *source, int64_t n, int64_t rows, int64_t columns, ps_dtype dtype) {
    ps_reader *reader = open_good(source);
    assert_int_equal(reader->info.n_positions, n);
    assert_int_equal(reader->info.detector_rows, rows);
    assert_int_equal(reader->info.detector_columns, columns);
    assert_string_equal(ps_dtype_name(reader->info.dtype), ps_dtype_name(dtype));
    expect_counts(reader, 0, n);
    for (int64_t first = 0; first < n; first += 5) expect_counts(reader, first, first + 7 <= n ? 7 : n - first);
    ps_reader_close(reader);
}

__attribute__((unused)) static void expect_text(const ps_error *error, const char *text) {
    if (!strstr(error->text, text)) fail_msg("'%s' does not say '%s'", error->text, text);
}

__attribute__((unused)) static void expect_refusal(const char *source, const char *text) {
    ps_reader *reader = NULL;
    ps_error error = {0};
    assert_int_equal(ps_reader_open(source, NULL, &reader, &error), PS_E_INPUT);
    assert_null(reader);
    expect_text(&error, text);
}

/* Opens, then expects reading all of it to fail with this text. */
__attribute__((unused)) static void expect_damage(const char *source, const char *text) {
    ps_reader *reader = open_good(source);
    const ps_recording *info = &reader->info;
    void *counts = malloc((size_t)(info->n_positions * info->detector_rows * info->detector_columns) * ps_dtype_bytes(info->dtype));
    ps_error error = {0};
    assert_int_equal(ps_reader_read(reader, 0, info->n_positions, counts, &error), PS_E_INPUT);
    expect_text(&error, text);
    free(counts);
    ps_reader_close(reader);
}

__attribute__((unused)) static void write_file(const char *path, const void *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

typedef enum { AS_CONTIGUOUS, AS_CHUNKS, AS_BSLZ4, AS_LZ4, AS_DEFLATE } made_storage;

typedef struct {
    int rank; /* 3: [n, rows, columns]; 4: [scan rows, scan columns, rows, columns] */
    hsize_t shape[4];
    hsize_t chunk[4]; /* chunked storages */
    ps_dtype dtype;
    made_storage storage;
    int64_t first;     /* position that the first frame stands for */
    hid_t stored_type; /* 0: the native one of dtype; raw chunks are always native */
    hsize_t unlimited; /* 1: the first axis may grow */
} made_dataset;

/* The chunk at origin, padded with zeros at the edges; elements: [chunk...] */
static void fill_made_chunk(const made_dataset *made, const hsize_t *origin, void *elements) {
    size_t n = 1;
    for (int i = 0; i < made->rank; i++) n *= (size_t)made->chunk[i];
    memset(elements, 0, n * ps_dtype_bytes(made->dtype));
    for (size_t e = 0; e < n; e++) {
        hsize_t at[4] = {0}, rest = e;
        int inside = 1;
        for (int i = made->rank - 1; i >= 0; i--) {
            at[i] = origin[i] + rest % made->chunk[i];
            rest /= made->chunk[i];
            inside &= at[i] < made->shape[i];
        }
        int64_t position = made->rank == 4 ? (int64_t)(at[0] * made->shape[1] + at[1]) : (int64_t)at[0];
        if (inside)
            store_count(elements, e, made->dtype,
                        count_at(made->first + position, (int64_t)at[made->rank - 2], (int64_t)at[made->rank - 1]));
    }
}

/* Frames every chunk's stream: header, blocks of 4096 bytes stored as they are. */
static size_t make_lz4_stream(const uint8_t *elements, size_t n_bytes, uint8_t *stream) {
    size_t used = 12;
    for (int i = 0; i < 8; i++) stream[i] = (uint8_t)((uint64_t)n_bytes >> 8 * (7 - i));
    memcpy(stream + 8, "\0\0\x10\0", 4);
    for (size_t at = 0; at < n_bytes;) {
        size_t n = n_bytes - at < 4096 ? n_bytes - at : 4096;
        for (int i = 0; i < 4; i++) stream[used++] = (uint8_t)(n >> 8 * (3 - i));
        memcpy(stream + used, elements + at, n);
        used += n;
        at += n;
    }
    return used;
}

static void write_made_chunks(hid_t dataset, const made_dataset *made) {
    size_t n = 1, size = ps_dtype_bytes(made->dtype), used = 0;
    hsize_t origin[4] = {0};
    for (int i = 0; i < made->rank; i++) n *= (size_t)made->chunk[i];
    void *elements = malloc(n * size);
    uint8_t *stream = malloc(ps_bslz4_bound((int64_t)n, size) + n * size + 64);
    for (;;) {
        fill_made_chunk(made, origin, elements);
        if (made->storage == AS_BSLZ4)
            assert_int_equal(ps_bslz4_encode(elements, (int64_t)n, size, stream, ps_bslz4_bound((int64_t)n, size), &used, NULL), PS_OK);
        else if (made->storage == AS_LZ4)
            used = make_lz4_stream(elements, n * size, stream);
        else
            memcpy(stream, elements, used = n * size);
        assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, origin, used, stream) >= 0);
        int axis = made->rank - 1;
        for (; axis >= 0 && (origin[axis] += made->chunk[axis]) >= made->shape[axis]; axis--) origin[axis] = 0;
        if (axis < 0) break;
    }
    free(stream);
    free(elements);
}

/* Filter 32008 with LZ4, whether or not this machine has the plugin, which puts the first three values in front itself. */
__attribute__((unused)) static void set_bslz4(hid_t plist, size_t element_bytes) {
    const unsigned values[5] = {0, 3, (unsigned)element_bytes, 0, 2};
    bool plugin = H5Zfilter_avail(PS_FILTER_BITSHUFFLE) > 0;
    assert_true(H5Pset_filter(plist, PS_FILTER_BITSHUFFLE, H5Z_FLAG_OPTIONAL, plugin ? 2 : 5, plugin ? values + 3 : values) >= 0);
}

static void set_made_storage(hid_t plist, const made_dataset *made) {
    if (made->storage != AS_CONTIGUOUS) H5Pset_chunk(plist, made->rank, made->chunk);
    if (made->storage == AS_BSLZ4) set_bslz4(plist, ps_dtype_bytes(made->dtype));
    if (made->storage == AS_LZ4) H5Pset_filter(plist, PS_FILTER_LZ4, H5Z_FLAG_OPTIONAL, 0, NULL);
    if (made->storage == AS_DEFLATE) H5Pset_deflate(plist, 1);
}

__attribute__((unused)) static void add_dataset(hid_t file, const char *name, const made_dataset *made) {
    hid_t links = H5Pcreate(H5P_LINK_CREATE), plist = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t limit[4];
    memcpy(limit, made->shape, sizeof limit);
    if (made->unlimited && made->storage != AS_CONTIGUOUS) limit[0] = H5S_UNLIMITED;
    H5Pset_create_intermediate_group(links, 1);
    set_made_storage(plist, made);
    hid_t space = H5Screate_simple(made->rank, made->shape, limit);
    hid_t dataset =
        H5Dcreate2(file, name, made->stored_type ? made->stored_type : ps_hdf5_native(made->dtype), space, links, plist, H5P_DEFAULT);
    assert_true(dataset >= 0);
    if (made->storage == AS_CONTIGUOUS || made->storage == AS_DEFLATE) {
        int64_t n = (int64_t)(made->rank == 4 ? made->shape[0] * made->shape[1] : made->shape[0]);
        void *counts = make_counts(made->first, n, (int64_t)made->shape[made->rank - 2], (int64_t)made->shape[made->rank - 1], made->dtype);
        assert_true(H5Dwrite(dataset, ps_hdf5_native(made->dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, counts) >= 0);
        free(counts);
    } else
        write_made_chunks(dataset, made);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(plist);
    H5Pclose(links);
}

__attribute__((unused)) static hid_t create_file(const char *path) {
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

__attribute__((unused)) static void write_dataset_file(const char *path, const char *name, const made_dataset *made) {
    hid_t file = create_file(path);
    add_dataset(file, name, made);
    H5Fclose(file);
}

__attribute__((unused)) static void add_number(hid_t file, const char *name, double value) {
    hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate(H5S_SCALAR);
    H5Pset_create_intermediate_group(links, 1);
    hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, links, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(links);
}

/* mask: [rows, columns] uint32 */
__attribute__((unused)) static void add_mask(hid_t file, const char *name, hsize_t rows, hsize_t columns, const uint32_t *mask) {
    hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate_simple(2, (hsize_t[]){rows, columns}, NULL);
    H5Pset_create_intermediate_group(links, 1);
    hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_UINT32, space, links, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, mask) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(links);
}

/* Sum of counts and of counts times (index % 1009 + 1), to recognise the content of a real file. */
__attribute__((unused)) static void expect_sums(const char *source, int64_t n, double sum, double weighted) {
    ps_reader *reader = open_good(source);
    const ps_recording *info = &reader->info;
    assert_int_equal(info->n_positions, n);
    size_t all = (size_t)(n * info->detector_rows * info->detector_columns);
    void *counts = malloc(all * ps_dtype_bytes(info->dtype));
    ps_error error = {0};
    if (ps_reader_read(reader, 0, n, counts, &error) != PS_OK) fail_msg("%s", error.text);
    double found = 0, found_weighted = 0;
    for (size_t i = 0; i < all; i++) {
        double value = load_count(counts, i, info->dtype);
        found += value;
        found_weighted += value * (double)(i % 1009 + 1);
    }
    free(counts);
    ps_reader_close(reader);
    if (!(found == sum) || !(found_weighted == weighted))
        fail_msg("%s: sums %.17g and %.17g, expected %.17g and %.17g", source, found, found_weighted, sum, weighted);
}

__attribute__((unused)) static void skip_without(const char *path) {
    if (access(path, F_OK) == 0) return;
    printf("skipped: %s is not there\n", path);
    skip();
}

#endif
