/* NumPy's .npy files: the header, and how elements lie. */
#ifndef PS_INPUT_FORMATS_NPY_HEADER_H
#define PS_INPUT_FORMATS_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/types.h"

enum { PS_NPY_MAX_RANK = 8 };

typedef struct {
    ps_dtype dtype;
    bool big_endian, fortran_order;
    int rank;
    int64_t shape[PS_NPY_MAX_RANK];
    int64_t n_elements;
    int64_t data_offset; /* bytes */
} ps_npy_header;

/* start: the first n_bytes of the file. *needed: bytes the header takes; when it is more than n_bytes, PS_OK comes back with nothing
 * else filled, and the caller tries again with that many. Versions 1 to 3. name: for messages. */
ps_code ps_npy_parse(const char *name, const uint8_t *start, size_t n_bytes, ps_npy_header *header, size_t *needed, ps_error *error);
bool ps_npy_is_file(const char *path);
/* Opens, parses, and sees that the file holds what the header says. *descriptor: close it. */
ps_code ps_npy_open(const char *path, ps_npy_header *header, int *descriptor, ps_error *error);

#endif
