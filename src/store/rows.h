/* A contiguous dataset seen as rows, one per frame: written through HDF5 (MPI-IO), read back through POSIX from its place in the file. */
#ifndef PS_STORE_ROWS_H
#define PS_STORE_ROWS_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum { PS_ROWS_MAX_RANK = 4, PS_ROWS_PIECE = 1 << 20 }; /* bytes that are read back at a time */

typedef struct {
    hid_t dataset, type; /* of the file; the memory's type is the same */
    const char *name;    /* borrowed */
    int rank;
    hsize_t dims[PS_ROWS_MAX_RANK]; /* dims[0]: frames */
    uint64_t offset;                /* of the first row in the file, bytes */
    size_t element_bytes, row_bytes;
} ps_rows;

/* *present false, and no error, when entry has no such dataset. */
ps_code ps_rows_open(hid_t entry, const char *name, ps_rows *rows, bool *present, ps_error *error);
void ps_rows_close(ps_rows *rows);

/* Independent write of one row (row_bytes of data), in pieces of at most limit_bytes. Takes ps_hdf5_lock and ps_mpi_lock for each piece. */
ps_code ps_rows_write(const ps_rows *rows, int64_t row, const void *data, size_t limit_bytes, ps_error *error);
/* A row with four axes is dims[1] parts (images of one strength each) that lie one behind the other; any other row is one. */
int64_t ps_rows_parts(const ps_rows *rows);
size_t ps_rows_part_bytes(const ps_rows *rows);
uint64_t ps_rows_part_offset(const ps_rows *rows, int64_t row, int64_t part); /* in the file, bytes */
/* As ps_rows_write, of one part. */
ps_code ps_rows_write_part(const ps_rows *rows, int64_t row, int64_t part, const void *data, size_t limit_bytes, ps_error *error);
/* CRC-32 of a row as it stands in the file, continuing from *crc. */
ps_code ps_rows_crc(const ps_rows *rows, int fd, int64_t row, uint32_t *crc, ps_error *error);
/* *same: the file holds exactly these bytes at that place. room: [PS_ROWS_PIECE], scratch. */
ps_code ps_rows_compare(const ps_rows *rows, int fd, uint64_t offset, size_t bytes, const void *data, char *room, bool *same,
                        ps_error *error);
ps_code ps_rows_read(const ps_rows *rows, int fd, int64_t row, void *data, ps_error *error);
ps_code ps_rows_read_part(const ps_rows *rows, int fd, int64_t row, int64_t part, void *data, ps_error *error);

#endif
