/* A compressed copy of a finished output. */
#ifndef PS_STORE_PACK_H
#define PS_STORE_PACK_H

#include <stdint.h>

#include "core/error.h"

typedef struct {
    const char *to;    /* the copy; NULL: OUT.packed.h5 beside the file */
    int64_t level;     /* of deflate, 1 to 9 */
    int64_t n_threads; /* 0: all */
} ps_pack_options;

typedef struct {
    int64_t bytes_before, bytes_after;
    int64_t n_verified; /* done frames whose CRC the copy gives back */
} ps_pack_report;

/* Rank-local. Images become one chunk each, shuffled and deflated (filters every HDF5 has); all else is copied as it is. The copy appears
 * under its name only after every done frame read back from it has the CRC recorded for it. Refuses a file that is being written, and a
 * copy that exists. The copy can be looked at in every way, but not be written to: resume needs the original. */
ps_code ps_pack(const char *path, const ps_pack_options *options, ps_pack_report *report, ps_error *error);

#endif
