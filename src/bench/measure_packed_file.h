/* A recording of packed patterns on disk, for measuring how fast it comes to a device. */
#ifndef PS_BENCH_MEASURE_PACKED_FILE_H
#define PS_BENCH_MEASURE_PACKED_FILE_H

#include "kernels/backend.h"

typedef struct ps_bench_master ps_bench_master;

/* Writes a Dectris master of uint16 patterns, bitshuffle-LZ4, into a new folder of TMPDIR (else /tmp): as many bytes as they are packed. */
ps_code ps_bench_master_write(const ps_system_desc *desc, const ps_packed *packed, ps_bench_master **master, ps_error *error);
void ps_bench_master_remove(ps_bench_master *master);
/* Opens it, looks up its chunks (*open_s) and puts all of them into a frame whose unpacking has begun. */
ps_code ps_bench_master_put(const ps_bench_master *master, ps_frame *frame, int n_threads, double *open_s, ps_error *error);

#endif
