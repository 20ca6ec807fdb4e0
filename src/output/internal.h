/* What the files of the output part share about an open output. */
#ifndef PS_OUTPUT_INTERNAL_H
#define PS_OUTPUT_INTERNAL_H

#include <hdf5.h>

#include "output/layout.h"
#include "output/output.h"
#include "output/rows.h"

enum { PS_WRITE_LIMIT = 1 << 30 }; /* bytes of one write: MPI counts are int */

struct ps_output {
    MPI_Comm communicator; /* own copy */
    int rank;
    char *path, host[65];
    hid_t file, entry;
    int fd;      /* of the same file: fdatasync and reading back */
    int process; /* number of the run's /entry/process_N */
    size_t write_limit;
    int64_t n_frames;
    uint8_t *states;                                               /* [n_frames] as opened, then as this rank wrote them */
    uint8_t *written;                                              /* [n_frames] state + 1 of what this rank wrote, else 0 */
    ps_rows results[PS_N_RESULTS], columns[PS_N_COLUMNS], seconds; /* dataset < 0: not in this file */
};

const char *ps_result_name(ps_result result); /* below /entry */
const char *ps_column_name(ps_column column);

/* For tests of splitting: pieces of at most `bytes`. */
void ps_output_limit_writes(ps_output *output, size_t bytes);

#endif
