/* Reads and unpacks the chunks of a dataset on all threads; used by dataset.c only. */
#ifndef PS_HDF5_CHUNKS_H
#define PS_HDF5_CHUNKS_H

#include "hdf5/dataset.h"

/* As ps_hdf5_dataset_read, for a dataset whose storage is one of PS_CHUNKS_*. */
ps_code ps_hdf5_chunks_read(ps_hdf5_dataset *dataset, const ps_hdf5_read *read, ps_error *error);

/* Looks whether all chunks of the positions were written, without reading them; under ps_hdf5_lock. For a chunked dataset. */
ps_code ps_hdf5_chunks_check(ps_hdf5_dataset *dataset, const ps_hdf5_read *read, ps_error *error);

#endif
