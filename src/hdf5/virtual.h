/* Virtual datasets whose sources are whole patterns: seen as the list of their sources, so that these can be unpacked like any other. */
#ifndef PS_HDF5_VIRTUAL_H
#define PS_HDF5_VIRTUAL_H

#include "hdf5/dataset.h"

typedef struct {
    char *path, *name; /* source file (found, or as it is written when it is not there) and dataset */
    bool exists;
    int64_t first, n;     /* positions of the virtual dataset */
    int64_t source_first; /* in the source */
    bool whole_source;    /* the source must hold exactly n positions */
} ps_virtual_piece;

/* Pieces in order of `first`; owned by the caller: ps_virtual_free. *whole_frames false: the mapping is of another kind (parts of
 * patterns, strides), which only the HDF5 library can read; every source is there then, or PS_E_INPUT names the one that is not. */
ps_code ps_virtual_list(const ps_hdf5_dataset *dataset, ps_virtual_piece **pieces, int64_t *n_pieces, bool *whole_frames, ps_error *error);
void ps_virtual_free(ps_virtual_piece *pieces, int64_t n_pieces);

#endif
