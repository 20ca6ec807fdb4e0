/* A part of a frame's results held against the file, by a few threads where it is large. Internal to the store. */
#ifndef PS_STORE_PART_CHECK_H
#define PS_STORE_PART_CHECK_H

#include "store/rows.h"

enum { PS_PART_CHECK_MOST = 4 }; /* threads */

typedef struct ps_part_check ps_part_check;

/* n_threads: 1 to PS_PART_CHECK_MOST. All memory that checking takes is allocated here. */
ps_code ps_part_check_create(int n_threads, ps_part_check **check, ps_error *error);
void ps_part_check_destroy(ps_part_check *check); /* NULL is allowed */

/* Reads that part of the row back through fd. *same: the file holds exactly the bytes of values; *crc: CRC-32 of values, whatever the
 * number of threads. One call at a time. */
ps_code ps_part_check_run(ps_part_check *check, const ps_rows *rows, int fd, int64_t row, int64_t part, const void *values, uint32_t *crc,
                          bool *same, ps_error *error);

#endif
