/* What the readers of HDF5 formats share: a reader that is a list of segments, with a mask somewhere in one file. */
#ifndef PS_INPUT_FORMATS_HDF5_COMMON_H
#define PS_INPUT_FORMATS_HDF5_COMMON_H

#include "input/formats/hdf5_segments.h"
#include "input/reader.h"

typedef struct {
    ps_reader base;
    ps_segments segments;
    char *mask_dataset; /* in base.path; NULL: none */
} ps_hdf5_reader;

ps_code ps_hdf5_reader_create(const ps_reader_ops *ops, const char *path, ps_hdf5_reader **reader, ps_error *error);
void ps_hdf5_reader_close(ps_reader *reader);
ps_code ps_hdf5_reader_read(ps_reader *reader, int64_t first_position, int64_t n_positions, void *counts, ps_error *error);
ps_code ps_hdf5_reader_bytes(ps_reader *reader, int64_t *bytes, ps_error *error);
ps_code ps_hdf5_reader_mask(ps_reader *reader, uint8_t *bad, bool *present, ps_error *error);

#endif
