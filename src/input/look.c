#include "input/look.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file_read.h"
#include "core/regular.h"
#include "input/open.h"
#include "input/source.h"

static const size_t largest_frame = (size_t)1 << 30; /* bytes; larger ones are not read here */

static void read_frames(ps_reader *reader) {
    const ps_recording *info = &reader->info;
    bool present;
    int64_t data_bytes;
    size_t pixels = (size_t)(info->detector_rows * info->detector_columns), bytes = pixels * ps_dtype_bytes(info->dtype);
    uint8_t *bad = bytes <= largest_frame ? malloc(pixels) : NULL;
    void *frame = bytes <= largest_frame ? malloc(bytes) : NULL;
    if (bad) ps_reader_mask(reader, bad, &present, NULL);
    if (frame) ps_reader_read(reader, 0, 1, frame, NULL);
    ps_reader_data_bytes(reader, &data_bytes, NULL);
    if (frame) ps_reader_read(reader, info->n_positions - 1, 1, frame, NULL);
    free(bad);
    free(frame);
}

/* Where the HDF5 library looks for it: at the beginning, or behind a user block of 512, 1024, ... bytes. */
static bool has_signature(const char *path) {
    static const char signature[8] = "\x89HDF\r\n\x1a\n";
    enum { LARGEST_USER_BLOCK = 1 << 20 };
    char bytes[8];
    size_t got = sizeof bytes;
    bool found = false;
    int file = -1;
    if (ps_regular_open(path, PS_E_INPUT, &file, NULL) != PS_OK) return false;
    for (int64_t at = 0; !found && got == sizeof bytes && at <= LARGEST_USER_BLOCK; at = at ? 2 * at : 512) {
        if (ps_file_read_some(path, file, at, sizeof bytes, bytes, &got, NULL) != PS_OK) break;
        found = got == sizeof bytes && memcmp(bytes, signature, sizeof bytes) == 0;
    }
    close(file);
    return found;
}

void ps_recording_look(const char *source, const ps_reader_options *options) {
    ps_source parts = {0};
    ps_reader *reader = NULL;
    bool worth_it = ps_source_split(source, &parts, NULL) == PS_OK && has_signature(parts.path);
    ps_source_free(&parts);
    if (worth_it && ps_reader_open(source, options, &reader, NULL) == PS_OK) read_frames(reader);
    ps_reader_close(reader);
}
