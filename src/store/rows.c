#include "store/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "cluster/mpi_lock.h"
#include "core/assert.h"
#include "hdf5/lock.h"
#include "hdf5/write.h"

static ps_code measure(ps_rows *rows, ps_error *error) {
    ps_code code = PS_OK;
    hid_t space = H5Dget_space(rows->dataset);
    rows->type = H5Dget_type(rows->dataset);
    rows->rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    haddr_t offset = H5Dget_offset(rows->dataset);
    if (rows->type < 0 || rows->rank < 1 || rows->rank > PS_ROWS_MAX_RANK || offset == HADDR_UNDEF) {
        code = ps_h5_fail(error,
                          "/entry/%s is not laid out as this program writes it (contiguous, 1 to 4 axes); a packed copy cannot be resumed",
                          rows->name);
        goto done;
    }
    H5Sget_simple_extent_dims(space, rows->dims, NULL);
    rows->offset = offset;
    rows->element_bytes = H5Tget_size(rows->type);
    rows->row_bytes = rows->element_bytes;
    for (int axis = 1; axis < rows->rank; axis++) rows->row_bytes *= rows->dims[axis];
done:
    ps_h5_close(&space);
    return code;
}

ps_code ps_rows_open(hid_t entry, const char *name, ps_rows *rows, bool *present, ps_error *error) {
    *rows = (ps_rows){.dataset = H5I_INVALID_HID, .type = H5I_INVALID_HID, .name = name};
    rows->dataset = H5Dopen2(entry, name, H5P_DEFAULT);
    *present = rows->dataset >= 0;
    H5Eclear2(H5E_DEFAULT);
    if (!*present) return PS_OK;
    ps_code code = measure(rows, error);
    if (code != PS_OK) ps_rows_close(rows);
    return code;
}

void ps_rows_close(ps_rows *rows) {
    ps_h5_close(&rows->type);
    ps_h5_close(&rows->dataset);
}

static ps_code write_box(const ps_rows *rows, const hsize_t *start, const hsize_t *count, const char *data, ps_error *error) {
    ps_code code = PS_OK;
    ps_hdf5_lock();
    ps_mpi_lock();
    hid_t memory = H5Screate_simple(rows->rank, count, NULL), space = H5Dget_space(rows->dataset);
    if (memory < 0 || space < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dwrite(rows->dataset, rows->type, memory, space, H5P_DEFAULT, data) < 0) {
        code = ps_h5_fail(error, "cannot write row %llu of /entry/%s", (unsigned long long)start[0], rows->name);
        ps_hdf5_mark_broken();
    }
    ps_h5_close(&space);
    ps_h5_close(&memory);
    ps_mpi_unlock();
    ps_hdf5_unlock();
    return code;
}

/* Of a row, what lies at `part` of its axis first_axis (0: all of the row). Pieces are boxes of whole "lines": everything behind the
 * outermost axis that can be cut and still keep under the limit. */
static ps_code write_span(const ps_rows *rows, int64_t row, int first_axis, hsize_t part, const char *data, size_t limit_bytes,
                          ps_error *error) {
    size_t span_bytes = rows->row_bytes / (first_axis ? rows->dims[1] : 1), line_bytes = span_bytes;
    int axis = first_axis; /* the axis that is cut */
    while (axis + 1 < rows->rank && line_bytes > limit_bytes) line_bytes /= rows->dims[++axis];
    hsize_t n_lines = span_bytes / line_bytes, per_piece = limit_bytes / line_bytes;
    if (per_piece == 0) per_piece = 1;
    for (hsize_t line = 0, n = 0; line < n_lines; line += n) {
        hsize_t start[PS_ROWS_MAX_RANK] = {(hsize_t)row}, count[PS_ROWS_MAX_RANK], rest = line;
        if (first_axis == 1) start[1] = part;
        for (int a = 0; a < rows->rank; a++) count[a] = a > axis ? rows->dims[a] : 1;
        for (int a = axis; a > first_axis; a--, rest /= rows->dims[a + 1]) start[a] = rest % rows->dims[a];
        n = axis == first_axis ? 1 : rows->dims[axis] - start[axis];
        if (n > per_piece) n = per_piece;
        count[axis] = n;
        PS_TRY(write_box(rows, start, count, data + line * line_bytes, error));
    }
    return PS_OK;
}

ps_code ps_rows_write(const ps_rows *rows, int64_t row, const void *data, size_t limit_bytes, ps_error *error) {
    return write_span(rows, row, 0, 0, data, limit_bytes, error);
}

int64_t ps_rows_parts(const ps_rows *rows) {
    return rows->rank == PS_ROWS_MAX_RANK ? (int64_t)rows->dims[1] : 1;
}

size_t ps_rows_part_bytes(const ps_rows *rows) {
    return rows->row_bytes / (size_t)ps_rows_parts(rows);
}

uint64_t ps_rows_part_offset(const ps_rows *rows, int64_t row, int64_t part) {
    return rows->offset + (uint64_t)row * rows->row_bytes + (uint64_t)part * ps_rows_part_bytes(rows);
}

ps_code ps_rows_write_part(const ps_rows *rows, int64_t row, int64_t part, const void *data, size_t limit_bytes, ps_error *error) {
    PS_ASSERT(part >= 0 && part < ps_rows_parts(rows));
    return write_span(rows, row, rows->rank == PS_ROWS_MAX_RANK, (hsize_t)part, data, limit_bytes, error);
}

static ps_code read_bytes(const ps_rows *rows, int fd, uint64_t offset, size_t bytes, char *data, ps_error *error) {
    while (bytes > 0) {
        ssize_t got = pread(fd, data, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return ps_io_fail(error, errno, "cannot read /entry/%s at byte %llu", rows->name, (unsigned long long)offset);
        if (got == 0)
            return PS_FAIL(error, PS_E_IO, "cannot read /entry/%s at byte %llu: the file ends there", rows->name,
                           (unsigned long long)offset);
        data += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return PS_OK;
}

ps_code ps_rows_read(const ps_rows *rows, int fd, int64_t row, void *data, ps_error *error) {
    return read_bytes(rows, fd, rows->offset + (uint64_t)row * rows->row_bytes, rows->row_bytes, data, error);
}

ps_code ps_rows_read_part(const ps_rows *rows, int fd, int64_t row, int64_t part, void *data, ps_error *error) {
    size_t bytes = ps_rows_part_bytes(rows);
    return read_bytes(rows, fd, rows->offset + (uint64_t)row * rows->row_bytes + (uint64_t)part * bytes, bytes, data, error);
}

/* A piece of a row and what is done with it. */
typedef void (*piece_visit)(const char *piece, size_t bytes, void *context);

/* room: [PS_ROWS_PIECE] */
static ps_code visit_span(const ps_rows *rows, int fd, uint64_t offset, size_t span_bytes, char *room, piece_visit visit, void *context,
                          ps_error *error) {
    for (size_t left = span_bytes; left > 0;) {
        size_t bytes = left < PS_ROWS_PIECE ? left : PS_ROWS_PIECE;
        PS_TRY(read_bytes(rows, fd, offset, bytes, room, error));
        visit(room, bytes, context);
        offset += bytes;
        left -= bytes;
    }
    return PS_OK;
}

static void add_crc(const char *piece, size_t bytes, void *context) {
    uint32_t *crc = context;
    *crc = (uint32_t)crc32_z(*crc, (const Bytef *)piece, bytes);
}

ps_code ps_rows_crc(const ps_rows *rows, int fd, int64_t row, uint32_t *crc, ps_error *error) {
    char *room = malloc(PS_ROWS_PIECE);
    if (!room) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to read /entry/%s", rows->name);
    uint64_t offset = rows->offset + (uint64_t)row * rows->row_bytes;
    ps_code code = visit_span(rows, fd, offset, rows->row_bytes, room, add_crc, crc, error);
    free(room);
    return code;
}

typedef struct {
    const char *expected;
    bool same;
} comparison;

static void compare_piece(const char *piece, size_t bytes, void *context) {
    comparison *c = context;
    c->same = c->same && memcmp(piece, c->expected, bytes) == 0;
    c->expected += bytes;
}

ps_code ps_rows_compare(const ps_rows *rows, int fd, uint64_t offset, size_t bytes, const void *data, char *room, bool *same,
                        ps_error *error) {
    comparison c = {data, true};
    ps_code code = visit_span(rows, fd, offset, bytes, room, compare_piece, &c, error);
    *same = code == PS_OK && c.same;
    return code;
}
