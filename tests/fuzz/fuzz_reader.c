/* Whole recordings that are not HDF5, with everything a job may say of them: the first bytes are the options, then come the named file and
 * the file beside it (Merlin's .hdr, the raw file of EMPAD). What is read position by position is what is read at once; the same file as a
 * mask gives zeros and ones. */
#include <ftw.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input/adapters/mask.h"
#include "input/open.h"
#include "input/reader.h"
#include "input/scan_shape.h"

int LLVMFuzzerInitialize(int *n_arguments, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SETUP_BYTES = 12, MOST_BYTES = 8 << 20, EMPAD_FRAME_BYTES = 130 * 128 * 4, FOLDER_BYTES = 256, PATH_BYTES = 300 };

static char folder[FOLDER_BYTES];

static void check(bool holds) {
    if (!holds) abort();
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static void remove_folder(void) {
    nftw(folder, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}

int LLVMFuzzerInitialize(int *n_arguments, char ***arguments) {
    (void)n_arguments, (void)arguments;
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/ptyseries-fuzz-XXXXXX", parent ? parent : "/tmp");
    check(mkdtemp(folder) != NULL);
    atexit(remove_folder);
    return 0;
}

/* longer: bytes the file is at least long, zeros behind what is written. */
static void write_file(const char *name, const uint8_t *bytes, size_t n, size_t longer, char path[PATH_BYTES]) {
    snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    check(file && fwrite(bytes, 1, n, file) == n && fflush(file) == 0);
    if (longer > n) check(ftruncate(fileno(file), (off_t)longer) == 0);
    fclose(file);
}

static ps_reader_options read_options(const uint8_t *setup) {
    return (ps_reader_options){.allow_partial = setup[0] & 4,
                               .serpentine = setup[0] & 8,
                               .exclude_invalid = setup[0] & 16,
                               .saturation = setup[0] & 32 ? setup[1] + 1.0 : 0,
                               .scan_rows = setup[2] % 16,
                               .scan_columns = setup[3] % 16,
                               .skip_leading = setup[4] % 8,
                               .skip_trailing = setup[5] % 8,
                               .flyback = setup[6] % 4,
                               .repeats = setup[7] % 4,
                               .channel = setup[8] % 4};
}

static void check_counts(ps_reader *reader) {
    const ps_recording *info = &reader->info;
    size_t frame = (size_t)(info->detector_rows * info->detector_columns) * ps_dtype_bytes(info->dtype);
    if (frame > MOST_BYTES || (size_t)info->n_positions > MOST_BYTES / frame) return;
    uint8_t *all = malloc((size_t)info->n_positions * frame), *one = malloc(frame);
    bool read = ps_reader_read(reader, 0, info->n_positions, all, NULL) == PS_OK;
    for (int64_t i = 0; i < info->n_positions; i++) {
        bool again = ps_reader_read(reader, i, 1, one, NULL) == PS_OK;
        check(again || !read);
        if (read) check(memcmp(all + (size_t)i * frame, one, frame) == 0);
    }
    free(one);
    free(all);
}

static void check_reader(ps_reader *reader, const ps_reader_options *options) {
    const ps_recording *info = &reader->info;
    int64_t rows = 0, columns = 0;
    bool present;
    check(info->n_positions >= 1 && info->detector_rows >= 1 && info->detector_columns >= 1 && info->format[0] && info->compression[0]);
    if (ps_reader_scan_shape(reader, options, &rows, &columns, NULL) == PS_OK) check(rows * columns == info->n_positions);
    check_counts(reader);
    if (info->detector_rows * info->detector_columns <= MOST_BYTES) {
        uint8_t *bad = malloc((size_t)(info->detector_rows * info->detector_columns));
        ps_reader_mask(reader, bad, &present, NULL);
        free(bad);
    }
    check(ps_reader_notes(reader) && ps_reader_invalid(reader).n_saturated >= 0);
}

static void check_mask(const char *path, const uint8_t *setup) {
    int64_t rows = setup[2] % 16 + 1, columns = setup[3] % 16 + 1;
    uint8_t *bad = malloc((size_t)(rows * columns));
    if (ps_mask_load(path, rows, columns, bad, NULL) == PS_OK)
        for (int64_t i = 0; i < rows * columns; i++) check(bad[i] <= 1);
    free(bad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"x.mib", "x.npy", "x.xml", "x.raw"}, *const beside[] = {"x.hdr", "x.hdr", "x.raw", "x.xml"};
    char path[PATH_BYTES], other[PATH_BYTES];
    if (size < SETUP_BYTES) return 0;
    const uint8_t *setup = data, *bytes = data + SETUP_BYTES;
    size_t n = size - SETUP_BYTES, n_beside = (size_t)setup[9] | (size_t)setup[10] << 8;
    if (n >= 4 && memcmp(bytes, "\x89HDF", 4) == 0) return 0; /* the HDF5 library's */
    if (n_beside > n) n_beside = n;
    int kind = setup[0] & 3;
    size_t frames = (size_t)(setup[11] % 8) * EMPAD_FRAME_BYTES;
    write_file(names[kind], bytes, n - n_beside, kind == 3 ? frames : 0, path);
    write_file(beside[kind], bytes + n - n_beside, n_beside, kind == 2 ? frames : 0, other);
    ps_reader_options options = read_options(setup);
    ps_reader *reader = NULL;
    ps_error error = {0};
    if (ps_reader_open(path, &options, &reader, &error) == PS_OK)
        check_reader(reader, &options);
    else
        check(!reader && error.text[0]);
    ps_reader_close(reader);
    check_mask(path, setup);
    unlink(path);
    unlink(other);
    return 0;
}
