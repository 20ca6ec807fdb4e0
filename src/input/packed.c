#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input/adapters/clean.h"
#include "input/packed_parts.h"

enum { MOST_FILES = 512 };

void ps_packed_close(ps_packed_recording *recording) {
    if (!recording) return;
    for (int64_t i = 0; recording->files && i < recording->n_files; i++) {
        if (recording->files[i].descriptor >= 0) close(recording->files[i].descriptor);
        free(recording->files[i].path);
    }
    free(recording->files);
    free(recording->places);
    pthread_mutex_destroy(&recording->mutex);
    pthread_cond_destroy(&recording->changed);
    free(recording);
}

ps_packing ps_packed_packing(const ps_packed_recording *recording) {
    return recording->packing;
}
uint32_t ps_packed_limit(const ps_packed_recording *recording) {
    return recording->limit;
}
bool ps_packed_is_big_endian(const ps_packed_recording *recording) {
    return recording->is_big_endian;
}
int64_t ps_packed_bytes(const ps_packed_recording *recording) {
    return recording->bytes;
}
bool ps_packed_is_left(const ps_packed_recording *recording) {
    return recording->is_left;
}

bool ps_packed_is_short(const ps_packed_recording *recording, int64_t position, size_t pattern_bytes) {
    return recording->packing != PS_PACKED_PLAIN && recording->places[position].bytes < pattern_bytes / 8;
}

/* ---- whether it can be --------------------------------------------------------------------------------------------------------- */

/* The format's reader, when at most a limit stands in front of it. */
static bool find_format(ps_reader *reader, ps_reader **found, uint32_t *limit, char why[PS_PACKED_WHY]) {
    *limit = 0;
    if (!ps_unpack_takes(reader->info.dtype, reader->info.detector_rows * reader->info.detector_columns))
        return ps_packed_say(why, "elements of 8 bytes");
    if (reader->inner && !ps_clean_is_limit(reader, limit))
        return ps_packed_say(why, "detector frames are chosen, summed or cleaned on the host");
    *found = reader->inner ? reader->inner : reader;
    return !(*found)->inner || ps_packed_say(why, "detector frames are chosen, summed or cleaned on the host");
}

static bool is_readable(const ps_hdf5_reader *reader, char why[PS_PACKED_WHY]) {
    if (reader->segments.allow_partial) return ps_packed_say(why, "missing detector frames may be filled");
    for (int64_t i = 0; i < reader->segments.n_segments; i++)
        if (!reader->segments.segments[i].path) return ps_packed_say(why, "missing detector frames");
    return reader->segments.n_segments <= MOST_FILES || ps_packed_say(why, "more data files than are kept open");
}

static ps_code allocate(ps_packed_recording *r, const ps_recording *info, int64_t n_files, ps_error *error) {
    r->n_positions = info->n_positions;
    r->n_pixels = info->detector_rows * info->detector_columns;
    r->pattern_bytes = r->n_pixels * (int64_t)ps_dtype_bytes(info->dtype);
    r->places = malloc((size_t)r->n_positions * sizeof *r->places);
    r->files = malloc((size_t)n_files * sizeof *r->files);
    if (!r->places || !r->files) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the places of chunks");
    for (int64_t i = 0; i < n_files; i++) r->files[i] = (ps_packed_file){.descriptor = -1};
    r->n_files = n_files;
    return PS_OK;
}

static ps_code begin_hdf5(ps_packed_recording *r, ps_hdf5_reader *reader, bool *usable, char why[PS_PACKED_WHY], ps_error *error) {
    r->reader = reader;
    PS_TRY(allocate(r, &reader->base.info, reader->segments.n_segments, error));
    return ps_packed_look_at(r, 0, usable, why, error);
}

static ps_code take_file(ps_packed_recording *r, const ps_reader *format, bool *usable, char why[PS_PACKED_WHY], ps_error *error) {
    ps_reader_plain plain;
    if (!format->ops->plain || !format->ops->plain(format, &plain)) {
        *usable = ps_packed_say(why, "patterns that do not lie in the file as they are delivered");
        return PS_OK;
    }
    PS_TRY(allocate(r, &format->info, 1, error));
    r->packing = PS_PACKED_PLAIN;
    r->is_big_endian = plain.big_endian;
    r->format = format;
    r->lead_bytes = plain.lead_bytes;
    r->check = plain.check;
    r->files[0].path = strdup(plain.path);
    if (!r->files[0].path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    r->files[0].descriptor = fcntl(plain.descriptor, F_DUPFD_CLOEXEC, 0);
    *usable = r->files[0].descriptor >= 0 || ps_packed_say(why, "more data files than may be open");
    if (*usable) *usable = ps_packed_take_plain(r, 0, r->n_positions, 0, &plain, why);
    return PS_OK;
}

ps_code ps_packed_open(ps_reader *reader, ps_packed_recording **recording, char why[PS_PACKED_WHY], ps_error *error) {
    ps_reader *format = NULL;
    ps_packed_recording *r = NULL;
    uint32_t limit;
    ps_code code = PS_OK;
    *recording = NULL;
    why[0] = '\0';
    if (!find_format(reader, &format, &limit, why)) return PS_OK;
    bool is_hdf5 = format->ops->read == ps_hdf5_reader_read, usable = !is_hdf5 || is_readable((ps_hdf5_reader *)format, why);
    if (!usable) return PS_OK;
    r = calloc(1, sizeof *r);
    PS_GO_ALLOC(error, r);
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->limit = limit;
    PS_GO(is_hdf5 ? begin_hdf5(r, (ps_hdf5_reader *)format, &usable, why, error) : take_file(r, format, &usable, why, error));
    if (!usable) goto done;
    *recording = r;
    r = NULL;
done:
    ps_packed_close(r);
    return code;
}
