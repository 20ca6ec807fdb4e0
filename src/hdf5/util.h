/* What every HDF5 reader needs: files opened with clear errors, numbers and texts looked up by path, element types.
 *
 * The readers make all their HDF5 calls in the calling thread and under ps_hdf5_lock (core/lock.h). */
#ifndef PS_HDF5_UTIL_H
#define PS_HDF5_UTIL_H

#include <hdf5.h>
#include <stdbool.h>

#include "core/error.h"
#include "core/types.h"
#include "hdf5/lock.h"

/* The innermost reason of the last failed HDF5 call, one line; "no reason given" when there is none. */
void ps_hdf5_reason(char *text, size_t bytes);

/* Whether the last HDF5 call failed because the library could not allocate memory. */
bool ps_hdf5_lacked_memory(void);
/* Fails with this text, ": " and the innermost reason of the last HDF5 call. Where that, or something noted by ps_hdf5_note_lack since
 * ps_hdf5_forget_lack, was a lack of memory it says so, for then nothing
 * is known to be wrong with the file, and the code is PS_E_MEMORY when there is indeed none left; else PS_E_INPUT. */
ps_code ps_hdf5_fail(ps_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What a file does not say is looked for below by the dozen, and what cannot be read is taken for not said. Whether a lack of memory was
 * the reason since the last call of this function, in this thread. */
bool ps_hdf5_forget_lack(void);
bool ps_hdf5_note_lack(bool succeeded); /* after a call whose failure is not told otherwise; returns its argument */

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

/* "24-bit integers", "bool or enumerated values", ... of a stored type; text: cut to bytes. */
void ps_hdf5_type_name(hid_t type, char *text, size_t bytes);
/* dtype: what read() will deliver for a stored HDF5 type; *converted: HDF5 must convert (64-bit integers become float64, half
 * precision float32, numbers with padding in them are unpacked); false: no detector counts. */
bool ps_hdf5_dtype(hid_t type, ps_dtype *dtype, bool *big_endian, bool *converted);
hid_t ps_hdf5_native(ps_dtype dtype); /* borrowed */

#endif
