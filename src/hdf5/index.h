/* Where in its file every chunk of a dataset lies, so that threads can read chunks without the HDF5 library.
 *
 * HDF5 1.10 tells a chunk's place in time proportional to its number, which for a recording of 10^5 chunks takes minutes. The usual
 * index, the version-1 B-tree of HDF5's file format specification (III.A.1), is therefore read here. Other indexes are left to the
 * library, whose H5Dread_chunk is quick but serial. */
#ifndef PS_HDF5_INDEX_H
#define PS_HDF5_INDEX_H

#include "hdf5/dataset.h"

typedef struct {
    int64_t address; /* byte of the file; -1: never written */
    uint32_t bytes, filter_mask;
} ps_chunk_place;

typedef struct ps_chunk_index {
    int descriptor; /* of the file, for reading; -1: none */
    int64_t file_bytes;
    int64_t grid[4];        /* chunks along lead[0], lead[1], rows, columns */
    ps_chunk_place *places; /* [grid...]; NULL: the index is of another kind, use the library */
} ps_chunk_index;

/* Builds dataset->index; places stays NULL when the file's index is not a sound version-1 B-tree. Under ps_hdf5_lock. */
ps_code ps_chunk_index_build(ps_hdf5_dataset *dataset, ps_error *error);
void ps_chunk_index_free(ps_chunk_index *index);

#endif
