/* Where in its file every chunk of a dataset lies, so that threads can read chunks without the HDF5 library.
 *
 * HDF5 1.10 tells a chunk's place in time proportional to its number, which for a recording of 10^5 chunks takes minutes. The usual
 * index, the version-1 B-tree of HDF5's file format specification (III.A.1), is therefore read here: the inner nodes first, a few in a
 * thousand chunks, then the leaves by several threads. Other indexes are left to the library, whose H5Dread_chunk is quick but serial. */
#ifndef PS_HDF5_INDEX_H
#define PS_HDF5_INDEX_H

#include "hdf5/dataset.h"

typedef struct {
    int64_t address; /* byte of the file; -1: never written */
    uint32_t bytes, filter_mask;
} ps_chunk_place;

/* index->tree: nothing was written yet; none of version 1. */
#define PS_EMPTY_TREE UINT64_MAX /* HDF5's undefined address */
#define PS_NO_TREE UINT64_C(0)

typedef struct ps_chunk_index {
    int descriptor;   /* of the file, for reading; -1: none */
    const char *path; /* its name, the dataset's */
    int64_t file_bytes;
    int64_t grid[4];        /* chunks along lead[0], lead[1], rows, columns */
    bool is_found;          /* places are complete */
    ps_chunk_place *places; /* [grid...]; NULL: the index is of another kind, use the library */
    /* of the tree, in units of the dataset's */
    int rank;
    int64_t chunk[4];
    int64_t base; /* what addresses in the file are relative to */
    uint64_t tree;
    uint64_t *leaves; /* [n_leaves] addresses, until the places are found */
    int64_t n_leaves;
} ps_chunk_index;

/* Builds dataset->index by all threads, unless it is there; places stays NULL when the file's index is not a sound version-1 B-tree. Under
 * ps_hdf5_lock. */
ps_code ps_chunk_index_build(ps_hdf5_dataset *dataset, ps_error *error);
void ps_chunk_index_free(ps_chunk_index *index);

/* The same in steps, for who has threads of its own. Makes dataset->index, which knows no places yet. Under ps_hdf5_lock, once. */
ps_code ps_chunk_index_begin(ps_hdf5_dataset *dataset, ps_error *error);
/* Then, without the lock, one thread. *sound false: it is no sound tree, or there is no memory to walk it. */
ps_code ps_chunk_index_find_leaves(ps_chunk_index *index, bool *sound, ps_error *error);
/* Then each of the n_leaves once, by any threads at a time. false: not sound. */
bool ps_chunk_index_read_leaves(const ps_chunk_index *index, int64_t first, int64_t n);
/* Then, when all threads are done. sound: nothing was false. */
void ps_chunk_index_end(ps_chunk_index *index, bool sound);

/* Whether the tree of an index that was begun says that no chunk was ever written; a tree that is not read here says nothing. */
bool ps_chunk_index_is_empty(const ps_chunk_index *index);

#endif
