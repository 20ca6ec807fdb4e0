/* Detector counts in one HDF5 dataset: rank 3 [position, row, column] or rank 4 [scan row, scan column, row, column].
 *
 * Chunks that are not compressed, or compressed with bitshuffle-LZ4 (filter 32008) or LZ4 (32004), are unpacked here by all
 * threads and need no plugin. Everything else (contiguous data, deflate, ...) goes through the HDF5 library. */
#ifndef PS_HDF5_DATASET_H
#define PS_HDF5_DATASET_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/types.h"

typedef enum { PS_CHUNKS_PLAIN, PS_CHUNKS_BSLZ4, PS_CHUNKS_LZ4, PS_THROUGH_HDF5 } ps_hdf5_storage;

typedef struct {
    char *path, *name; /* the file, the dataset in it */
    int rank;          /* 3 or 4, as stored */
    int64_t lead[2];   /* positions: [lead[0], lead[1]]; rank 3: lead[1] is 1 */
    int64_t n_positions, rows, columns;
    ps_dtype dtype;  /* what read() delivers */
    bool big_endian; /* as stored */
    ps_stored stored;
    bool is_virtual;
    ps_hdf5_storage storage;
    int64_t chunk[4];              /* lead[0], lead[1], rows, columns of a chunk; 0 without chunks */
    size_t stored_bytes;           /* of an element */
    int64_t contiguous_at;         /* byte of path where contiguous data begins, one element as it is delivered (but for its byte order)
                                      after the other; -1: it does not lie so */
    char compression[32];          /* for people */
    int64_t image_low, image_high; /* attributes image_nr_low and image_nr_high; 0: not there */
    hid_t file, dataset;
    struct ps_chunk_index *index; /* of PS_CHUNKS_*: NULL until the first read; index.h */
} ps_hdf5_dataset;

/* Owned by the caller: ps_hdf5_dataset_close. Rank-local. */
ps_code ps_hdf5_dataset_open(const char *path, const char *name, ps_hdf5_dataset **dataset, ps_error *error);
void ps_hdf5_dataset_close(ps_hdf5_dataset *dataset);

/* Bytes on disk; of a virtual dataset, which has none of its own, unpacked. The library walks the whole index of chunks for it. */
int64_t ps_hdf5_dataset_bytes(const ps_hdf5_dataset *dataset);
/* *empty: no chunk of it was ever written, as far as its index says so at once. */
ps_code ps_hdf5_dataset_is_empty(ps_hdf5_dataset *dataset, bool *empty, ps_error *error);

/* A read of positions [first, first + n) of a dataset. */
typedef struct {
    int64_t first, n;
    int64_t frame_offset; /* added to positions in messages: the place of the dataset in its recording */
    void *counts;         /* [n, rows, columns] of dtype, native byte order; undefined after an error */
    uint8_t *missing;     /* [n] set to 1 for positions that were never written, whose counts are undefined; NULL: they are an error */
} ps_hdf5_read;
ps_code ps_hdf5_dataset_read(ps_hdf5_dataset *dataset, const ps_hdf5_read *read, ps_error *error);

#endif
