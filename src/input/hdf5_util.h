/* What every HDF5 reader needs: files opened with clear errors, numbers and texts looked up by path, element types.
 *
 * The readers make all their HDF5 calls in the calling thread and under ps_hdf5_lock (core/lock.h). */
#ifndef PS_INPUT_HDF5_UTIL_H
#define PS_INPUT_HDF5_UTIL_H

#include <hdf5.h>
#include <stdbool.h>

#include "core/error.h"
#include "core/lock.h"
#include "core/types.h"

/* The innermost reason of the last failed HDF5 call, one line; "no reason given" when there is none. */
void ps_hdf5_reason(char *text, size_t bytes);

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

/* dtype: what read() will deliver for a stored HDF5 type; *converted: HDF5 must convert (64-bit integers become float64, half
 * precision float32); false: no detector counts. */
bool ps_hdf5_dtype(hid_t type, ps_dtype *dtype, bool *big_endian, bool *converted);
hid_t ps_hdf5_native(ps_dtype dtype); /* borrowed */

#endif
