/* NumPy .npy files of rank 3 [position, row, column] or 4 [scan row, scan column, row, column], in C or Fortran order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/busy.h"
#include "core/byte_order.h"
#include "core/file_read.h"
#include "input/formats/formats.h"
#include "input/formats/npy_header.h"

typedef struct {
    ps_reader base;
    ps_npy_header header;
    int descriptor;
} npy_reader;

static bool probe(const char *path, const char *dataset) {
    return !dataset && ps_npy_is_file(path);
}

static void close_reader(ps_reader *reader) {
    npy_reader *r = (npy_reader *)reader;
    if (r->descriptor >= 0) close(r->descriptor);
    free(r->base.path);
    free(r);
}

static ps_code describe(npy_reader *r, ps_error *error) {
    const ps_npy_header *h = &r->header;
    ps_recording *info = &r->base.info;
    if (h->rank != 3 && h->rank != 4)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: the array has rank %d, expected 3 (position, row, column) or 4 (scan row, scan column, row, column)",
                       r->base.path, h->rank);
    if (h->n_elements == 0) return PS_FAIL(error, PS_E_INPUT, "%s: the array is empty", r->base.path);
    ps_recording_clear(info);
    snprintf(info->format, sizeof info->format, "NumPy%s", h->fortran_order ? " (Fortran order)" : "");
    snprintf(info->compression, sizeof info->compression, "none");
    info->detector_rows = h->shape[h->rank - 2];
    info->detector_columns = h->shape[h->rank - 1];
    info->n_positions = h->rank == 4 ? h->shape[0] * h->shape[1] : h->shape[0];
    info->scan_rows = h->rank == 4 ? h->shape[0] : 0;
    info->scan_columns = h->rank == 4 ? h->shape[1] : 0;
    if (h->rank == 4) snprintf(info->scan_place, sizeof info->scan_place, "shape of the array");
    info->dtype = h->dtype;
    info->big_endian = h->big_endian;
    info->n_files = 1;
    info->data_bytes = h->n_elements * (int64_t)ps_dtype_bytes(h->dtype);
    return PS_OK;
}

static ps_code open_array(const char *path, const char *dataset, const ps_reader_options *options, ps_reader **reader, ps_error *error) {
    (void)dataset, (void)options;
    ps_code code = PS_OK;
    npy_reader *r = calloc(1, sizeof *r);
    PS_GO_ALLOC(error, r);
    r->base.ops = &ps_reader_npy;
    r->descriptor = -1;
    r->base.path = strdup(path);
    PS_GO_ALLOC(error, r->base.path);
    PS_GO(ps_npy_open(path, &r->header, &r->descriptor, error));
    PS_GO(describe(r, error));
    *reader = &r->base;
    r = NULL;
done:
    if (r) ps_reader_close(&r->base);
    return code;
}

/* Places of the wanted positions in one Fortran-order plane [scan row, scan column], row fastest. */
typedef struct {
    int64_t rows, columns, first, n;
    int64_t plane_first, plane_n; /* the span of the plane that holds them all */
} fortran_span;

static int64_t place_in_plane(const fortran_span *s, int64_t position) {
    return position / s->columns + position % s->columns * s->rows;
}

static fortran_span plan_fortran(const npy_reader *r, int64_t first, int64_t n) {
    const ps_npy_header *h = &r->header;
    fortran_span s = {.rows = h->shape[0], .columns = h->rank == 4 ? h->shape[1] : 1, .first = first, .n = n};
    int64_t low = INT64_MAX, high = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = place_in_plane(&s, first + i);
        if (at < low) low = at;
        if (at > high) high = at;
    }
    s.plane_first = low;
    s.plane_n = high - low + 1;
    return s;
}

/* Pixel number `pixel` (row-major) of all wanted positions. plane: room for plane_n elements */
static ps_code read_fortran_pixel(const npy_reader *r, const fortran_span *s, int64_t pixel, uint8_t *plane, uint8_t *counts,
                                  ps_error *error) {
    const ps_recording *info = &r->base.info;
    size_t size = ps_dtype_bytes(info->dtype);
    int64_t row = pixel / info->detector_columns, column = pixel % info->detector_columns,
            n_pixels = info->detector_rows * info->detector_columns;
    int64_t offset = (row + column * info->detector_rows) * info->n_positions + s->plane_first;
    PS_TRY(
        ps_file_read(r->base.path, r->descriptor, r->header.data_offset + offset * (int64_t)size, (size_t)s->plane_n * size, plane, error));
    for (int64_t i = 0; i < s->n; i++)
        memcpy(counts + (size_t)(i * n_pixels + pixel) * size, plane + (size_t)(place_in_plane(s, s->first + i) - s->plane_first) * size,
               size);
    return PS_OK;
}

static ps_code read_fortran(const npy_reader *r, int64_t first, int64_t n, uint8_t *counts, ps_error *error) {
    fortran_span s = plan_fortran(r, first, n);
    int64_t n_pixels = r->base.info.detector_rows * r->base.info.detector_columns;
    ps_code code = PS_OK;
    uint8_t *plane = malloc((size_t)s.plane_n * ps_dtype_bytes(r->base.info.dtype));
    PS_GO_ALLOC(error, plane);
    for (int64_t pixel = 0; pixel < n_pixels; pixel++) PS_GO(read_fortran_pixel(r, &s, pixel, plane, counts, error));
done:
    free(plane);
    return code;
}

static ps_code read_counts(ps_reader *reader, int64_t first, int64_t n, void *counts, ps_error *error) {
    npy_reader *r = (npy_reader *)reader;
    const ps_recording *info = &reader->info;
    size_t size = ps_dtype_bytes(info->dtype), frame = (size_t)(info->detector_rows * info->detector_columns);
    if (r->header.fortran_order)
        PS_TRY(read_fortran(r, first, n, counts, error));
    else
        PS_TRY(ps_file_read(reader->path, r->descriptor, r->header.data_offset + first * (int64_t)(frame * size), (size_t)n * frame * size,
                            counts, error));
    ps_busy_begin(PS_RESOURCE_DECODE);
    if (info->big_endian) ps_swap_bytes(counts, (size_t)n * frame, size);
    ps_busy_end(PS_RESOURCE_DECODE);
    return PS_OK;
}

static bool find_plain(const ps_reader *reader, ps_reader_plain *plain) {
    const npy_reader *r = (const npy_reader *)reader;
    const ps_recording *info = &reader->info;
    size_t size = ps_dtype_bytes(info->dtype);
    *plain = (ps_reader_plain){.path = reader->path,
                               .descriptor = r->descriptor,
                               .first_byte = r->header.data_offset,
                               .stride_bytes = info->detector_rows * info->detector_columns * (int64_t)size,
                               .big_endian = info->big_endian && size > 1};
    return !r->header.fortran_order;
}

const ps_reader_ops ps_reader_npy = {
    .name = "NumPy", .probe = probe, .open = open_array, .close = close_reader, .read = read_counts, .plain = find_plain};
