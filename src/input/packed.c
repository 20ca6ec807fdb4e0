#include "input/packed.h"

#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file_read.h"
#include "core/regular.h"
#include "hdf5/index.h"
#include "hdf5/util.h"
#include "input/adapters/clean.h"
#include "input/formats/hdf5_common.h"

enum { MOST_FILES = 512, LARGEST_GAP = 1 << 16 };

typedef struct {
    int descriptor; /* -1: none */
    char *path;
} packed_file;

typedef struct {
    int64_t address;
    uint32_t bytes;
    int32_t file;
} packed_place;

struct ps_packed_recording {
    ps_packing packing;
    uint32_t limit;
    int64_t n_positions, pattern_bytes, bytes; /* bytes: of all that is read */
    packed_place *places;                      /* [n_positions] */
    packed_file *files;                        /* [n_files] */
    int64_t n_files;
};

void ps_packed_close(ps_packed_recording *recording) {
    if (!recording) return;
    for (int64_t i = 0; recording->files && i < recording->n_files; i++) {
        if (recording->files[i].descriptor >= 0) close(recording->files[i].descriptor);
        free(recording->files[i].path);
    }
    free(recording->files);
    free(recording->places);
    free(recording);
}

ps_packing ps_packed_packing(const ps_packed_recording *recording) {
    return recording->packing;
}
uint32_t ps_packed_limit(const ps_packed_recording *recording) {
    return recording->limit;
}
int64_t ps_packed_bytes(const ps_packed_recording *recording) {
    return recording->bytes;
}

bool ps_packed_is_short(const ps_packed_recording *recording, int64_t position, size_t pattern_bytes) {
    return recording->packing == PS_PACKED_PLAIN || recording->places[position].bytes < pattern_bytes / 8;
}

/* ---- whether it can be --------------------------------------------------------------------------------------------------------- */

static bool say(char why[PS_PACKED_WHY], const char *text) {
    snprintf(why, PS_PACKED_WHY, "%s", text);
    return false;
}

/* The format's reader, when at most a limit stands in front of it. */
static bool find_format(ps_reader *reader, ps_reader **found, uint32_t *limit, char why[PS_PACKED_WHY]) {
    *limit = 0;
    if (!ps_unpack_takes(reader->info.dtype, reader->info.detector_rows * reader->info.detector_columns))
        return say(why, "elements of 8 bytes");
    if (reader->inner && !ps_clean_is_limit(reader, limit)) return say(why, "detector frames are chosen, summed or cleaned on the host");
    *found = reader->inner ? reader->inner : reader;
    return !(*found)->inner || say(why, "detector frames are chosen, summed or cleaned on the host");
}

static bool is_readable(const ps_hdf5_reader *reader, char why[PS_PACKED_WHY]) {
    if (reader->segments.allow_partial) return say(why, "missing detector frames may be filled");
    return reader->segments.n_segments <= MOST_FILES || say(why, "more data files than are kept open");
}

static bool packing_of(const ps_hdf5_dataset *d, ps_packing *packing) {
    *packing = d->storage == PS_CHUNKS_BSLZ4 ? PS_PACKED_BSLZ4 : d->storage == PS_CHUNKS_LZ4 ? PS_PACKED_LZ4 : PS_PACKED_PLAIN;
    return d->storage != PS_THROUGH_HDF5 || d->contiguous_at >= 0;
}

/* Whether every chunk of a dataset is one pattern, and all are packed as the first one's are. */
static bool is_usable(const ps_hdf5_dataset *d, const ps_hdf5_reader *reader, bool is_first, ps_packing *packing, char why[PS_PACKED_WHY]) {
    ps_packing own;
    ps_dtype dtype = reader->base.info.dtype;
    if (!packing_of(d, &own)) return say(why, "a layout or a filter that the HDF5 library undoes");
    if (d->contiguous_at < 0 && (d->chunk[0] != 1 || d->chunk[1] != 1 || d->chunk[2] != d->rows || d->chunk[3] != d->columns))
        return say(why, "chunks that are not one pattern each");
    if (d->big_endian && d->stored_bytes > 1) return say(why, "big-endian counts");
    if (d->stored_bytes != ps_dtype_bytes(dtype)) return say(why, "counts of another type than stored");
    if (reader->segments.channels && d->lead[1] > 1) return say(why, "several channels");
    if (!is_first && own != *packing) return say(why, "data files that are packed differently");
    *packing = own;
    return true;
}

/* ---- where chunks lie ---------------------------------------------------------------------------------------------------------- */

static ps_code build_index(ps_hdf5_dataset *dataset, ps_error *error) {
    ps_code code = PS_OK;
    ps_hdf5_lock();
    ps_hdf5_note(dataset->path, 0, 0);
    if (!dataset->index) code = ps_chunk_index_build(dataset, error);
    ps_hdf5_unlock();
    return code;
}

/* Positions of one segment. A chunk that is missing or lies outside of its file is left to the reader, which says so. */
static bool take_places(ps_packed_recording *r, const ps_segment *segment, const ps_chunk_index *index, int32_t file,
                        char why[PS_PACKED_WHY]) {
    if (!index->places) return say(why, "an index of chunks that only the HDF5 library reads");
    for (int64_t i = 0; i < segment->n; i++) {
        const ps_chunk_place *p = &index->places[segment->source_first + i];
        if (p->address < 0 || p->bytes > index->file_bytes - p->address) return say(why, "chunks that are not there");
        if (p->filter_mask != 0) return say(why, "chunks that left out a filter");
        r->places[segment->first + i] = (packed_place){p->address, p->bytes, file};
        r->bytes += p->bytes;
    }
    return true;
}

/* n patterns that lie as they are delivered, in file number `file`. */
static bool take_plain(ps_packed_recording *r, int64_t first, int64_t n, int32_t file, const ps_reader_plain *plain,
                       char why[PS_PACKED_WHY]) {
    struct stat status;
    int64_t bytes = r->pattern_bytes;
    if (fstat(plain->descriptor, &status) != 0 || plain->first_byte > status.st_size - bytes ||
        (n - 1) > (status.st_size - bytes - plain->first_byte) / plain->stride_bytes)
        return say(why, "patterns that are not there");
    for (int64_t i = 0; i < n; i++)
        r->places[first + i] = (packed_place){plain->first_byte + i * plain->stride_bytes, (uint32_t)bytes, file};
    r->bytes += n * bytes;
    return true;
}

static ps_code add_contiguous(ps_packed_recording *r, const ps_segment *segment, int32_t i, bool *usable, char why[PS_PACKED_WHY],
                              ps_error *error) {
    packed_file *file = &r->files[i];
    file->path = strdup(segment->path);
    if (!file->path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    PS_TRY(ps_regular_open(segment->path, PS_E_INPUT, &file->descriptor, error));
    ps_reader_plain plain = {file->path, file->descriptor, segment->opened->contiguous_at + segment->source_first * r->pattern_bytes,
                             r->pattern_bytes};
    *usable = take_plain(r, segment->first, segment->n, i, &plain, why);
    return PS_OK;
}

static ps_code add_plain_file(ps_packed_recording *r, const ps_reader_plain *plain, bool *usable, char why[PS_PACKED_WHY],
                              ps_error *error) {
    r->packing = PS_PACKED_PLAIN;
    r->files[0].path = strdup(plain->path);
    if (!r->files[0].path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    r->files[0].descriptor = fcntl(plain->descriptor, F_DUPFD_CLOEXEC, 0);
    *usable = r->files[0].descriptor >= 0 || say(why, "more data files than may be open");
    if (*usable) *usable = take_plain(r, 0, r->n_positions, 0, plain, why);
    return PS_OK;
}

/* *usable false: why says the reason. */
static ps_code add_segment(ps_packed_recording *r, ps_hdf5_reader *reader, int64_t i, bool *usable, char why[PS_PACKED_WHY],
                           ps_error *error) {
    ps_segment *segment = &reader->segments.segments[i];
    packed_file *file = &r->files[i];
    *usable = segment->path != NULL;
    if (!*usable) return say(why, "missing detector frames"), PS_OK;
    PS_TRY(ps_segments_use(&reader->segments, i, error));
    *usable = is_usable(segment->opened, reader, i == 0, &r->packing, why);
    if (!*usable) return PS_OK;
    if (segment->opened->contiguous_at >= 0) return add_contiguous(r, segment, (int32_t)i, usable, why, error);
    PS_TRY(build_index(segment->opened, error));
    *usable = take_places(r, segment, segment->opened->index, (int32_t)i, why);
    if (!*usable) return PS_OK;
    file->path = strdup(segment->path);
    if (!file->path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    file->descriptor = fcntl(segment->opened->index->descriptor, F_DUPFD_CLOEXEC, 0);
    *usable = file->descriptor >= 0 || say(why, "more data files than may be open");
    return PS_OK;
}

static ps_code allocate(ps_packed_recording *r, const ps_recording *info, int64_t n_files, ps_error *error) {
    r->n_positions = info->n_positions;
    r->n_files = n_files;
    r->pattern_bytes = info->detector_rows * info->detector_columns * (int64_t)ps_dtype_bytes(info->dtype);
    r->places = malloc((size_t)r->n_positions * sizeof *r->places);
    r->files = malloc((size_t)r->n_files * sizeof *r->files);
    if (!r->places || !r->files) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the places of chunks");
    for (int64_t i = 0; i < r->n_files; i++) r->files[i] = (packed_file){.descriptor = -1};
    return PS_OK;
}

static ps_code add_hdf5(ps_packed_recording *r, ps_hdf5_reader *reader, bool *usable, char why[PS_PACKED_WHY], ps_error *error) {
    PS_TRY(allocate(r, &reader->base.info, reader->segments.n_segments, error));
    for (int64_t i = 0; *usable && i < r->n_files; i++) PS_TRY(add_segment(r, reader, i, usable, why, error));
    return PS_OK;
}

static ps_code add_file(ps_packed_recording *r, const ps_reader *format, bool *usable, char why[PS_PACKED_WHY], ps_error *error) {
    ps_reader_plain plain;
    if (!format->ops->plain || !format->ops->plain(format, &plain)) {
        *usable = say(why, "patterns that do not lie in the file as they are delivered");
        return PS_OK;
    }
    PS_TRY(allocate(r, &format->info, 1, error));
    return add_plain_file(r, &plain, usable, why, error);
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
    r->limit = limit;
    PS_GO(is_hdf5 ? add_hdf5(r, (ps_hdf5_reader *)format, &usable, why, error) : add_file(r, format, &usable, why, error));
    if (!usable) goto done;
    *recording = r;
    r = NULL;
done:
    ps_packed_close(r);
    return code;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------- */

/* Patterns from begin on, before end, that one read brings: neighbours in one file with small gaps at most; *bytes of it. */
static int64_t end_of_run(const ps_packed_recording *r, int64_t begin, int64_t end, size_t *bytes) {
    int64_t i = begin;
    for (; i < end; i++) {
        const packed_place *p = &r->places[i], *before = p - 1;
        if (i > begin && (p->file != before->file || p->address < before->address + before->bytes ||
                          p->address - before->address - before->bytes > LARGEST_GAP))
            break;
        *bytes = (size_t)(p->address + p->bytes - r->places[begin].address);
    }
    return i;
}

/* The same gaps are counted as ps_packed_read makes. */
int64_t ps_packed_fit(const ps_packed_recording *r, int64_t first, size_t room_bytes) {
    size_t used = 0;
    int64_t i = first;
    for (; i < r->n_positions; i++) {
        size_t bytes = 0;
        if (i > first && end_of_run(r, i - 1, i + 1, &bytes) == i + 1)
            bytes -= r->places[i - 1].bytes;
        else
            bytes = r->places[i].bytes;
        if (bytes > room_bytes - used) break;
        used += bytes;
    }
    return i - first;
}

ps_code ps_packed_read(const ps_packed_recording *r, int64_t first, int64_t n, uint8_t *room, ps_packed_pattern *patterns, size_t *used,
                       ps_error *error) {
    *used = 0;
    for (int64_t begin = first, end; begin < first + n; begin = end) {
        size_t bytes = 0;
        end = end_of_run(r, begin, first + n, &bytes);
        const packed_place *from = &r->places[begin];
        PS_TRY(ps_file_read(r->files[from->file].path, r->files[from->file].descriptor, from->address, bytes, room + *used, error));
        for (int64_t i = begin; i < end; i++) {
            patterns[i - first].offset = (uint32_t)(*used + (size_t)(r->places[i].address - from->address));
            patterns[i - first].bytes = r->places[i].bytes;
        }
        *used += bytes;
    }
    return PS_OK;
}

/* ---- into a frame -------------------------------------------------------------------------------------------------------------- */

/* What the reading threads share. */
typedef struct {
    const ps_packed_recording *recording;
    ps_frame *frame;
    const ps_packed_watch *watch;
    uint8_t *too_large;
    int64_t next; /* position */
    ps_error failure;
} putting;

typedef struct {
    uint8_t *own; /* where the backend has no rooms */
    ps_packed_pattern *patterns;
    int64_t patterns_room;
} reading_thread;

enum { OWN_ROOM = 8 << 20, MOST_THREADS = 15 /* more do not read faster, and each holds a room */ };

static bool may_go_on(putting *p) {
    if (p->failure.code == PS_OK && p->watch && !p->watch->goes_on(p->watch->context))
        PS_FAIL(&p->failure, PS_E_INTERRUPTED, "reading was stopped");
    return p->failure.code == PS_OK;
}

/* The next patterns for a room; false: none are left, or somebody failed. */
static bool claim(putting *p, size_t room_bytes, int64_t *first, int64_t *n) {
    *n = 0;
#pragma omp critical(ps_packed_claim)
    while (*n == 0 && may_go_on(p) && p->next < p->recording->n_positions) {
        *first = p->next;
        *n = ps_packed_fit(p->recording, p->next, room_bytes);
        if (*n == 0) p->too_large[p->next] = 1;
        p->next += *n > 0 ? *n : 1;
    }
    return *n > 0;
}

static ps_code find_room(putting *p, reading_thread *t, uint8_t **room, size_t *bytes, ps_error *error) {
    PS_TRY(ps_frame_unpack_room(p->frame, room, bytes, error));
    if (*room) return PS_OK;
    if (!t->own) t->own = malloc(OWN_ROOM);
    *room = t->own;
    *bytes = OWN_ROOM;
    return t->own ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for packed patterns");
}

static ps_code grow(reading_thread *t, int64_t n, ps_error *error) {
    if (n <= t->patterns_room) return PS_OK;
    free(t->patterns);
    t->patterns = malloc((size_t)n * sizeof *t->patterns);
    t->patterns_room = t->patterns ? n : 0;
    return t->patterns ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a table of patterns");
}

/* A room of which nothing came is given back, or others would wait for it. */
static void give_back(putting *p, uint8_t *room) {
    ps_packed nothing = {.packing = p->recording->packing, .bytes = room};
#pragma omp critical(ps_packed_put)
    ps_frame_unpack_put(p->frame, &nothing, NULL);
}

/* One room: read, put. *more false: nothing was left for it. */
static ps_code put_room(putting *p, reading_thread *t, bool *more, ps_error *error) {
    uint8_t *room;
    size_t bytes, used = 0;
    int64_t first, n;
    ps_code code = PS_OK;
    PS_TRY(find_room(p, t, &room, &bytes, error));
    *more = claim(p, bytes, &first, &n);
    if (*more) code = grow(t, n, error);
    if (*more && code == PS_OK) code = ps_packed_read(p->recording, first, n, room, t->patterns, &used, error);
    if (!*more || code != PS_OK) {
        give_back(p, room);
        return code;
    }
    ps_packed packed = {p->recording->packing, first, n, room, used, t->patterns};
#pragma omp critical(ps_packed_put)
    code = ps_frame_unpack_put(p->frame, &packed, error);
    return code;
}

static void run_thread(putting *p) {
    reading_thread t = {0};
    ps_error own = {0};
    bool more = true;
    while (more && own.code == PS_OK) put_room(p, &t, &more, &own);
    if (own.code != PS_OK) {
#pragma omp critical(ps_packed_claim)
        if (p->failure.code == PS_OK) p->failure = own;
    }
    free(t.own);
    free(t.patterns);
}

ps_code ps_packed_put(const ps_packed_recording *recording, ps_frame *frame, int n_threads, const ps_packed_watch *watch,
                      uint8_t *too_large, ps_error *error) {
    putting p = {.recording = recording, .frame = frame, .watch = watch, .too_large = too_large};
    int threads = n_threads > 0 ? n_threads : omp_get_max_threads();
    memset(too_large, 0, (size_t)recording->n_positions);
#pragma omp parallel num_threads(threads < MOST_THREADS ? threads : MOST_THREADS)
    run_thread(&p);
    if (p.failure.code != PS_OK && error) *error = p.failure;
    return p.failure.code;
}
