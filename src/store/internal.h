/* What the files of the output part share about an open output. */
#ifndef PS_STORE_INTERNAL_H
#define PS_STORE_INTERNAL_H

#include <hdf5.h>
#include <sys/types.h>

#include "store/layout.h"
#include "store/lock.h"
#include "store/output.h"
#include "store/rows.h"

enum { PS_WRITE_LIMIT = 1 << 30 }; /* bytes of one write: MPI counts are int */

struct ps_output {
    MPI_Comm communicator; /* own copy */
    int rank;
    char *path, host[65];
    ps_lock lock; /* held by rank 0 */
    hid_t file, entry;
    int fd;       /* of the same file: fdatasync and reading back */
    dev_t device; /* what it was when it was opened */
    ino_t inode;
    int64_t bytes;
    int process; /* number of the run's /entry/process_N */
    size_t write_limit;
    int64_t n_frames;
    uint8_t *states;             /* [n_frames] as opened, then as this rank wrote them */
    uint8_t *written;            /* [n_frames] state + 1 of what this rank wrote, else 0 */
    int32_t *attempts;           /* [n_frames] as opened */
    bool *begun;                 /* [n_frames] this rank wrote its attempts */
    double stage_s[PS_N_STAGES]; /* of the frames that this rank wrote */
    int n_results;
    ps_result_place places[PS_MOST_RESULTS];                          /* [n_results] */
    ps_rows results[PS_MOST_RESULTS], columns[PS_N_COLUMNS], seconds; /* dataset < 0: not in this file */
};

/* The lowest rank that failed speaks for all: its code and text become everyone's. Collective. */
ps_code ps_output_agree(MPI_Comm communicator, ps_code code, ps_error *error);
ps_code ps_output_write_state(ps_output *output, int64_t frame, ps_frame_state state, ps_error *error);
ps_code ps_output_sync(const ps_output *output, ps_error *error);
/* CRC-32 of a frame's results as they stand in the file. */
ps_code ps_output_crc(const ps_output *output, int64_t frame, uint32_t *crc, ps_error *error);

/* Closes everything below the file. */
void ps_output_forget(ps_output *output);
/* Collective: closes without writing anything more. */
void ps_output_discard(ps_output *output);

/* For tests of splitting: pieces of at most `bytes`. */
void ps_output_limit_writes(ps_output *output, size_t bytes);

#endif
