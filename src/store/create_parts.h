/* The parts of a new file below /entry; internal to creating it. All write the tree of spec, and on an error leave it unfinished. */
#ifndef PS_STORE_CREATE_PARTS_H
#define PS_STORE_CREATE_PARTS_H

#include <hdf5.h>

#include "store/output.h"

/* The groups of the job's methods. */
ps_code ps_create_methods(hid_t entry, const ps_output_spec *spec, ps_error *error);
/* /entry/frames */
ps_code ps_create_frames(hid_t entry, const ps_output_spec *spec, ps_error *error);
/* /entry/optics_INDEX */
ps_code ps_create_optics(hid_t entry, const ps_output_spec *spec, int64_t index, ps_error *error);

/* A dataset of [rank] dims; values NULL: room for them. units: NULL: none. */
ps_code ps_create_f32(hid_t parent, const char *name, int rank, const hsize_t *dims, const char *units, ps_error *error);
ps_code ps_create_f64(hid_t parent, const char *name, int rank, const hsize_t *dims, const double *values, const char *units,
                      ps_error *error);
/* A soft link `former` to `name`, for readers of files of format 1. */
ps_code ps_create_former_name(hid_t parent, const char *name, const char *former, ps_error *error);

#endif
