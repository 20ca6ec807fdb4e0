/* Files that get their names only when they are whole. */
#ifndef PS_TASKS_SIMULATE_PARTIAL_H
#define PS_TASKS_SIMULATE_PARTIAL_H

#include <hdf5.h>

#include "core/error.h"

char *ps_partial_path(const char *path); /* "path.part"; malloc'd; NULL: out of memory */
/* Creates path.part, an HDF5 file, over what an earlier run may have left there. */
ps_code ps_partial_create(const char *path, hid_t *file, ps_error *error);
/* Closes what ps_partial_create made; see ps_h5_close_written. *file may be invalid. */
ps_code ps_partial_close(const char *path, hid_t *file, ps_error *error);
ps_code ps_partial_rename(const char *path, ps_error *error); /* path.part to path, replacing it */
void ps_partial_remove(const char *path);                     /* path.part, if it is there */

#endif
