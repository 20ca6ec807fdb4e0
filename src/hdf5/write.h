/* Small HDF5 helpers of the output part. Every function that can fail says what it was doing and what HDF5, or errno, said. */
#ifndef PS_HDF5_WRITE_H
#define PS_HDF5_WRITE_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

void ps_h5_quiet(void); /* stops HDF5 from printing its error stack; every public function of this part calls it first */

/* PS_E_HDF5 with "what", the innermost reason on HDF5's error stack and, when an errno is there, its meaning and usual cure. */
ps_code ps_h5_fail(ps_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* PS_E_IO with "what", the meaning of errnum and its usual cure. */
ps_code ps_io_fail(ps_error *error, int errnum, const char *format, ...) __attribute__((format(printf, 3, 4)));

void ps_h5_close(hid_t *id); /* any kind of id; sets it to H5I_INVALID_HID */

/* Closes a file that was written: HDF5 may only now write, and fail. Sets *file to H5I_INVALID_HID, which also stands for none. After an
 * error the process must end without closing the library (ps_hdf5_mark_broken in core/lock.h). */
ps_code ps_h5_close_written(hid_t *file, const char *path, ps_error *error);

/* Opens for reading without file locks, so that a file that is being written can be read, on any file system. */
ps_code ps_h5_open_read(const char *path, hid_t *file, ps_error *error);

/* group: may be NULL when it is not wanted open. */
ps_code ps_h5_group(hid_t parent, const char *name, const char *nx_class, hid_t *group, ps_error *error);
ps_code ps_h5_attribute_text(hid_t object, const char *name, const char *text, ps_error *error);
ps_code ps_h5_attribute_texts(hid_t object, const char *name, const char *const *texts, int64_t n, ps_error *error);
/* Attribute of a child that is named: "units" of "row", for example. */
ps_code ps_h5_describe(hid_t parent, const char *child, const char *attribute, const char *text, ps_error *error);

/* Contiguous dataset, space allocated at once. values: of memory_type, or NULL to leave zeros; rank 0: a scalar. */
ps_code ps_h5_dataset(hid_t parent, const char *name, hid_t file_type, hid_t memory_type, int rank, const hsize_t *dims, const void *values,
                      ps_error *error);
/* Scalar fixed-length UTF-8 string of `capacity` bytes; longer text is cut at a character. */
ps_code ps_h5_text(hid_t parent, const char *name, size_t capacity, const char *text, ps_error *error);
/* [n] fixed-length UTF-8 strings; texts NULL: empty ones. */
ps_code ps_h5_texts(hid_t parent, const char *name, size_t capacity, int64_t n, const char *const *texts, ps_error *error);
ps_code ps_h5_integer(hid_t parent, const char *name, int64_t value, ps_error *error);
ps_code ps_h5_number(hid_t parent, const char *name, double value, const char *units, ps_error *error);

hid_t ps_h5_text_type(size_t capacity); /* fixed length, UTF-8, padded with zeros; to be closed */
/* Copies text into room of `capacity` bytes, padded with zeros, cut between characters. */
void ps_h5_pad_text(char *room, size_t capacity, const char *text);

#endif
