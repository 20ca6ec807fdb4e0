/* Decoding of bitshuffle-LZ4 recordings, from the page cache to counts, against the HDF5 library with the filter's plugin. */
#ifndef PS_BENCH_MEASURE_DECODE_H
#define PS_BENCH_MEASURE_DECODE_H

#include "bench/measure.h"

/* Writes a recording of 192 x 192 uint16 (10 counts a pixel) to TMPDIR, else /tmp, measures, and removes it. Rows: all threads, one
 * thread, and the plugin where there is one. */
ps_code ps_bench_decode(const ps_bench_options *options, ps_bench_report *report, ps_error *error);

#endif
