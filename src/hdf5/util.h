/* What every HDF5 reader needs: files opened with clear errors, numbers and texts looked up by path.
 *
 * The readers make all their HDF5 calls in the calling thread and under ps_hdf5_lock (lock.h). */
#ifndef PS_HDF5_UTIL_H
#define PS_HDF5_UTIL_H

#include <hdf5.h>
#include <stdbool.h>

#include "core/error.h"
#include "hdf5/lock.h"

/* Opens read-only. PS_E_INPUT says whether the file is missing, not readable, no HDF5 file, or damaged. Close with H5Fclose. */
ps_code ps_hdf5_open(const char *path, hid_t *file, ps_error *error);
bool ps_hdf5_is_file(const char *path);                /* an HDF5 signature is there */
bool ps_hdf5_exists(hid_t location, const char *path); /* every link on the way resolves */

/* The first element of a numeric dataset, or a string dataset; false when there is none. */
bool ps_hdf5_number(hid_t location, const char *path, double *value);
bool ps_hdf5_numbers(hid_t location, const char *path, size_t n, double *values); /* the first n; false: fewer */
bool ps_hdf5_text(hid_t location, const char *path, char *text, size_t bytes);
/* The same of an attribute of the object at path. */
bool ps_hdf5_attribute_number(hid_t location, const char *path, const char *name, double *value);
bool ps_hdf5_attribute_text(hid_t location, const char *path, const char *name, char *text, size_t bytes);

#endif
