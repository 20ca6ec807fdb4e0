#include "hdf5/chunks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "core/busy.h"
#include "core/byte_order.h"
#include "core/file_read.h"
#include "hdf5/bslz4.h"
#include "hdf5/failure.h"
#include "hdf5/index.h"
#include "hdf5/lock.h"

/* The chunks that hold positions [first, first + n): a box of the chunk grid, in the order lead[0], lead[1], rows, columns. */
typedef struct {
    ps_hdf5_dataset *dataset;
    int64_t first, n, frame_offset;
    uint8_t *missing;                  /* [n] or NULL */
    int64_t box_first[4], box_size[4]; /* in chunks */
    int64_t n_chunks;
    uint8_t *counts;
} chunk_read;

/* Buffers of one thread. */
typedef struct {
    uint8_t *stream, *elements;
    size_t stream_room;
} chunk_scratch;

/* A chunk as it is in the file; data is borrowed. */
typedef struct {
    const uint8_t *data;
    size_t bytes;
    uint32_t filter_mask;
} stored_chunk;

static int64_t ceiling_divide(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static size_t chunk_elements(const ps_hdf5_dataset *d) {
    return (size_t)(d->chunk[0] * d->chunk[1] * d->chunk[2] * d->chunk[3]);
}

static chunk_read plan_read(ps_hdf5_dataset *d, const ps_hdf5_read *read) {
    PS_ASSERT(read->n > 0 && read->first >= 0 && read->first + read->n <= d->n_positions);
    int64_t first = read->first, n = read->n;
    chunk_read r = {
        .dataset = d, .first = first, .n = n, .frame_offset = read->frame_offset, .missing = read->missing, .counts = read->counts};
    int64_t last = first + n - 1, row0 = first / d->lead[1], row1 = last / d->lead[1];
    int64_t column0 = row0 == row1 ? first % d->lead[1] : 0, column1 = row0 == row1 ? last % d->lead[1] : d->lead[1] - 1;
    int64_t begin[4] = {row0, column0, 0, 0}, end[4] = {row1 + 1, column1 + 1, d->rows, d->columns};
    r.n_chunks = 1;
    for (int i = 0; i < 4; i++) {
        r.box_first[i] = begin[i] / d->chunk[i];
        r.box_size[i] = ceiling_divide(end[i], d->chunk[i]) - r.box_first[i];
        r.n_chunks *= r.box_size[i];
    }
    return r;
}

/* origin: the first element of chunk number index of the box. */
static void chunk_origin(const chunk_read *r, int64_t index, int64_t origin[4]) {
    for (int i = 3; i >= 0; i--) {
        origin[i] = (r->box_first[i] + index % r->box_size[i]) * r->dataset->chunk[i];
        index /= r->box_size[i];
    }
}

/* Where HDF5 keeps the chunk: origin without the axis that rank 3 lacks. */
static void stored_origin(const ps_hdf5_dataset *d, const int64_t origin[4], hsize_t stored[4]) {
    stored[0] = (hsize_t)origin[0];
    for (int i = 1, k = d->rank == 4 ? 1 : 2; i < d->rank; i++, k++) stored[i] = (hsize_t)origin[k];
}

/* "file:dataset: pattern N, chunk at byte B" before the reason; the byte only when it is known. In the calling thread. */
static ps_code name_place(const chunk_read *r, int64_t index, ps_error *error) {
    ps_hdf5_dataset *d = r->dataset;
    int64_t origin[4];
    chunk_origin(r, index, origin);
    hsize_t stored[4], bytes = 0;
    haddr_t address = HADDR_UNDEF;
    unsigned mask = 0;
    stored_origin(d, origin, stored);
    ps_hdf5_lock();
    herr_t known = H5Dget_chunk_info_by_coord(d->dataset, stored, &mask, &address, &bytes);
    ps_hdf5_unlock();
    int64_t frame = r->frame_offset + origin[0] * d->lead[1] + origin[1];
    if (known >= 0 && address != HADDR_UNDEF)
        ps_error_prefix(error, "%s:%s: pattern %" PRId64 ", chunk of %" PRIu64 " bytes at byte %" PRIu64 " of the file", d->path, d->name,
                        frame, (uint64_t)bytes, (uint64_t)address);
    else
        ps_error_prefix(error, "%s:%s: pattern %" PRId64, d->path, d->name, frame);
    return error ? error->code : PS_E_INPUT;
}

/* The wanted positions of a chunk without bytes in the file: marked, or an error. */
static ps_code never_written(const chunk_read *r, const int64_t origin[4], ps_error *error) {
    const ps_hdf5_dataset *d = r->dataset;
    if (!r->missing) return PS_FAIL(error, PS_E_INPUT, "was never written (its chunk has no bytes in the file)");
    for (int64_t i = 0; i < d->chunk[0] && origin[0] + i < d->lead[0]; i++)
        for (int64_t j = 0; j < d->chunk[1] && origin[1] + j < d->lead[1]; j++) {
            int64_t position = (origin[0] + i) * d->lead[1] + origin[1] + j - r->first;
            if (position < 0 || position >= r->n) continue;
#pragma omp atomic write
            r->missing[position] = 1;
        }
    return PS_OK;
}

static ps_code grow(uint8_t **buffer, size_t *room, size_t bytes, ps_error *error) {
    if (bytes <= *room) return PS_OK;
    free(*buffer);
    *room = 0;
    *buffer = malloc(bytes);
    if (!*buffer) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate %zu bytes for chunks", bytes);
    *room = bytes;
    return PS_OK;
}

/* A chunk's bytes from its known place. Any thread. */
static ps_code fetch_from_place(const chunk_read *r, const int64_t origin[4], chunk_scratch *scratch, stored_chunk *chunk,
                                ps_error *error) {
    const ps_chunk_index *index = r->dataset->index;
    int64_t place = 0;
    for (int i = 0; i < 4; i++) place = place * index->grid[i] + origin[i] / r->dataset->chunk[i];
    const ps_chunk_place *p = &index->places[place];
    if (p->address < 0) return never_written(r, origin, error); /* chunk->data stays NULL */
    if (p->bytes > index->file_bytes - p->address)
        return PS_FAIL(error, PS_E_INPUT, "the file ends at byte %" PRId64 ", inside the chunk", index->file_bytes);
    PS_TRY(grow(&scratch->stream, &scratch->stream_room, p->bytes, error));
    PS_TRY(ps_file_read(r->dataset->path, index->descriptor, p->address, p->bytes, scratch->stream, error));
    *chunk = (stored_chunk){scratch->stream, p->bytes, p->filter_mask};
    return PS_OK;
}

static ps_code unpack_chunk(const ps_hdf5_dataset *d, const stored_chunk *chunk, uint8_t *elements, ps_error *error) {
    size_t n = chunk_elements(d), n_bytes = n * d->stored_bytes;
    bool plain = d->storage == PS_CHUNKS_PLAIN || (chunk->filter_mask & 1);
    if (plain && chunk->bytes != n_bytes) return PS_FAIL(error, PS_E_INPUT, "the chunk has %zu bytes, expected %zu", chunk->bytes, n_bytes);
    if (plain)
        memcpy(elements, chunk->data, n_bytes);
    else if (d->storage == PS_CHUNKS_BSLZ4)
        PS_TRY(ps_bslz4_decode(chunk->data, chunk->bytes, (int64_t)n, d->stored_bytes, elements, error));
    else
        PS_TRY(ps_lz4_decode(chunk->data, chunk->bytes, n_bytes, elements, error));
    if (d->big_endian) ps_swap_bytes(elements, n, d->stored_bytes);
    return PS_OK;
}

/* Where in counts the chunk's elements lie one after the other, or NULL when they do not, or not all of them are wanted. */
static uint8_t *direct_target(const chunk_read *r, const int64_t origin[4]) {
    const ps_hdf5_dataset *d = r->dataset;
    bool whole_frames = d->chunk[2] == d->rows && d->chunk[3] == d->columns;
    bool in_order = d->chunk[0] == 1 || d->chunk[1] == d->lead[1];
    bool inside = origin[0] + d->chunk[0] <= d->lead[0] && origin[1] + d->chunk[1] <= d->lead[1];
    int64_t position = origin[0] * d->lead[1] + origin[1], n = d->chunk[0] * d->chunk[1];
    if (!whole_frames || !in_order || !inside || position < r->first || position + n > r->first + r->n) return NULL;
    return r->counts + (size_t)((position - r->first) * d->rows * d->columns) * d->stored_bytes;
}

/* The part of one position's pattern that the chunk holds. */
static void copy_frame_part(const chunk_read *r, const int64_t origin[4], const uint8_t *part, uint8_t *frame) {
    const ps_hdf5_dataset *d = r->dataset;
    int64_t rows = d->rows - origin[2] < d->chunk[2] ? d->rows - origin[2] : d->chunk[2];
    int64_t columns = d->columns - origin[3] < d->chunk[3] ? d->columns - origin[3] : d->chunk[3];
    for (int64_t u = 0; u < rows; u++)
        memcpy(frame + (size_t)((origin[2] + u) * d->columns + origin[3]) * d->stored_bytes,
               part + (size_t)(u * d->chunk[3]) * d->stored_bytes, (size_t)columns * d->stored_bytes);
}

static void copy_wanted(const chunk_read *r, const int64_t origin[4], const uint8_t *elements) {
    const ps_hdf5_dataset *d = r->dataset;
    size_t frame = (size_t)(d->rows * d->columns) * d->stored_bytes, part = (size_t)(d->chunk[2] * d->chunk[3]) * d->stored_bytes;
    for (int64_t i = 0; i < d->chunk[0] && origin[0] + i < d->lead[0]; i++)
        for (int64_t j = 0; j < d->chunk[1] && origin[1] + j < d->lead[1]; j++) {
            int64_t position = (origin[0] + i) * d->lead[1] + origin[1] + j - r->first;
            if (position < 0 || position >= r->n) continue;
            copy_frame_part(r, origin, elements + (size_t)(i * d->chunk[1] + j) * part, r->counts + (size_t)position * frame);
        }
}

static ps_code deliver_chunk(const chunk_read *r, const int64_t origin[4], const stored_chunk *chunk, chunk_scratch *scratch,
                             ps_error *error) {
    uint8_t *target = direct_target(r, origin);
    if (target) return unpack_chunk(r->dataset, chunk, target, error);
    if (!scratch->elements) scratch->elements = malloc(chunk_elements(r->dataset) * r->dataset->stored_bytes);
    if (!scratch->elements) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a chunk");
    PS_TRY(unpack_chunk(r->dataset, chunk, scratch->elements, error));
    copy_wanted(r, origin, scratch->elements);
    return PS_OK;
}

/* Smaller chunks are too quick for a look at the clock each: decoding is busy for as long as any of them is read. */
static bool is_large(const chunk_read *r) {
    return chunk_elements(r->dataset) * r->dataset->stored_bytes >= 16384;
}

/* Chunk number index of the box, from fetched (NULL: from its place in the file) into counts. Any thread. */
static ps_code read_chunk(const chunk_read *r, int64_t index, const stored_chunk *fetched, chunk_scratch *scratch, ps_error *error) {
    int64_t origin[4];
    stored_chunk chunk = {0};
    chunk_origin(r, index, origin);
    if (fetched)
        chunk = *fetched;
    else
        PS_TRY(fetch_from_place(r, origin, scratch, &chunk, error));
    if (!chunk.data) return fetched ? never_written(r, origin, error) : PS_OK;
    if (!is_large(r)) return deliver_chunk(r, origin, &chunk, scratch, error);
    return PS_BUSY(PS_RESOURCE_DECODE, deliver_chunk(r, origin, &chunk, scratch, error));
}

enum { SMALL_READ_BYTES = 1 << 18 }; /* less is read by one thread */

/* Chunks [begin, end) of the box on all threads; fetched: [end - begin] or NULL. Of several damaged chunks the first is reported,
 * whatever the number of threads. */
static ps_code read_chunks(const chunk_read *r, int64_t begin, int64_t end, const stored_chunk *fetched, ps_error *error) {
    ps_error first_error = {0};
    int64_t first_bad = end;
    bool worth_it = (size_t)(end - begin) * chunk_elements(r->dataset) * r->dataset->stored_bytes > SMALL_READ_BYTES;
    if (!is_large(r)) ps_busy_begin(PS_RESOURCE_DECODE);
#pragma omp parallel if (worth_it)
    {
        chunk_scratch scratch = {0};
#pragma omp for schedule(dynamic, 4)
        for (int64_t i = begin; i < end; i++) {
            ps_error own = {0};
            int64_t bad;
#pragma omp atomic read
            bad = first_bad;
            if (i > bad || read_chunk(r, i, fetched ? &fetched[i - begin] : NULL, &scratch, &own) == PS_OK) continue;
#pragma omp critical(ps_chunk_error)
            if (i < first_bad) {
#pragma omp atomic write
                first_bad = i;
                first_error = own;
            }
        }
        free(scratch.stream);
        free(scratch.elements);
    }
    if (!is_large(r)) ps_busy_end(PS_RESOURCE_DECODE);
    if (first_bad == end) return PS_OK;
    name_place(r, first_bad, &first_error);
    return ps_error_set(error, first_error.code, first_error.file, first_error.line, "%s", first_error.text);
}

enum { BATCH_CHUNKS = 1024, BATCH_BYTES = 64 << 20 };

/* Chunks that the library fetched, one after the other. */
typedef struct {
    stored_chunk chunks[BATCH_CHUNKS];
    int64_t n;
    uint8_t *bytes;
    size_t used, room;
} chunk_batch;

/* Under ps_hdf5_lock. *full: the chunk does not fit behind the others. */
static ps_code fetch_through_hdf5(const chunk_read *r, int64_t index, chunk_batch *batch, bool *full, ps_error *error) {
    int64_t origin[4];
    hsize_t stored[4], bytes = 0;
    chunk_origin(r, index, origin);
    stored_origin(r->dataset, origin, stored);
    bool known = H5Dget_chunk_storage_size(r->dataset->dataset, stored, &bytes) >= 0;
    if (!known && ps_hdf5_lacked_memory()) return ps_hdf5_fail(error, "HDF5 cannot look for the chunk");
    if (!known || bytes == 0) {
        *full = batch->n == BATCH_CHUNKS;
        if (!*full) batch->chunks[batch->n++] = (stored_chunk){0}; /* read_chunk sees to it */
        return PS_OK;
    }
    *full = batch->n == BATCH_CHUNKS || (batch->n > 0 && bytes > batch->room - batch->used);
    if (*full) return PS_OK;
    if (batch->n == 0) PS_TRY(grow(&batch->bytes, &batch->room, bytes > BATCH_BYTES ? bytes : BATCH_BYTES, error));
    uint8_t *data = batch->bytes + batch->used;
    stored_chunk *chunk = &batch->chunks[batch->n];
    if (H5Dread_chunk(r->dataset->dataset, H5P_DEFAULT, stored, &chunk->filter_mask, data) < 0)
        return ps_hdf5_fail(error, "HDF5 cannot read the chunk");
    chunk->data = data;
    chunk->bytes = bytes;
    batch->used += bytes;
    batch->n++;
    return PS_OK;
}

/* As many chunks from begin on as one batch takes. */
static ps_code fill_batch(const chunk_read *r, int64_t begin, chunk_batch *batch, ps_error *error) {
    ps_code code = PS_OK;
    bool full = false;
    batch->n = 0;
    batch->used = 0;
    ps_hdf5_lock();
    ps_hdf5_note(r->dataset->path, r->frame_offset + r->first, r->n);
    ps_busy_begin(PS_RESOURCE_FILE);
    for (int64_t i = begin; i < r->n_chunks && !full && code == PS_OK; i++) code = fetch_through_hdf5(r, i, batch, &full, error);
    ps_busy_end(PS_RESOURCE_FILE);
    ps_hdf5_unlock();
    return code == PS_OK ? PS_OK : name_place(r, begin + batch->n, error);
}

static ps_code read_in_batches(const chunk_read *r, ps_error *error) {
    ps_code code = PS_OK;
    chunk_batch *batch = calloc(1, sizeof *batch);
    PS_GO_ALLOC(error, batch);
    for (int64_t begin = 0; begin < r->n_chunks; begin += batch->n) {
        PS_GO(fill_batch(r, begin, batch, error));
        PS_GO(read_chunks(r, begin, begin + batch->n, batch->chunks, error));
    }
done:
    if (batch) free(batch->bytes);
    free(batch);
    return code;
}

ps_code ps_hdf5_chunks_read(ps_hdf5_dataset *dataset, const ps_hdf5_read *read, ps_error *error) {
    PS_ASSERT(dataset->storage != PS_THROUGH_HDF5 && read->counts);
    chunk_read r = plan_read(dataset, read);
    ps_code code = PS_OK;
    ps_hdf5_lock();
    ps_hdf5_note(dataset->path, 0, 0);
    if (!dataset->index || !dataset->index->is_found) code = PS_BUSY(PS_RESOURCE_FILE, ps_chunk_index_build(dataset, error));
    ps_hdf5_unlock();
    PS_TRY(code);
    return dataset->index->places ? read_chunks(&r, 0, r.n_chunks, NULL, error) : read_in_batches(&r, error);
}

ps_code ps_hdf5_chunks_check(ps_hdf5_dataset *dataset, const ps_hdf5_read *read, ps_error *error) {
    chunk_read r = plan_read(dataset, read);
    for (int64_t i = 0; i < r.n_chunks; i++) {
        int64_t origin[4];
        hsize_t stored[4], bytes = 0;
        chunk_origin(&r, i, origin);
        stored_origin(dataset, origin, stored);
        bool known = H5Dget_chunk_storage_size(dataset->dataset, stored, &bytes) >= 0, written = known && bytes > 0;
        if (!known && ps_hdf5_lacked_memory()) {
            ps_hdf5_fail(error, "HDF5 cannot look for the chunk");
            return name_place(&r, i, error);
        }
        if (!written && never_written(&r, origin, error) != PS_OK) return name_place(&r, i, error);
    }
    return PS_OK;
}
