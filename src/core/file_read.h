/* Plain reads at an offset, whole or an error. Thread-safe. */
#ifndef PS_CORE_FILE_READ_H
#define PS_CORE_FILE_READ_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* All n_bytes, or PS_E_INPUT naming path and offset (the file ends, or the system's reason). */
ps_code ps_file_read(const char *path, int descriptor, int64_t offset, size_t n_bytes, void *bytes, ps_error *error);
/* As many as there are up to n_bytes: *got. */
ps_code ps_file_read_some(const char *path, int descriptor, int64_t offset, size_t n_bytes, void *bytes, size_t *got, ps_error *error);
/* The first bytes of a file; how many there are up to n_bytes, 0 when it cannot be opened. */
size_t ps_file_start(const char *path, void *bytes, size_t n_bytes);

#endif
