/* Unpacks LZ4 blocks. The LZ4 library does so too; on bit-shuffled counts, which are long runs of zeros between short literals, this
 * takes 10 to 45 % less time (docs/input.md), because near matches are widened before they are copied. */
#ifndef PS_HDF5_LZ4_BLOCK_H
#define PS_HDF5_LZ4_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PS_LZ4_SLACK = 64 };

/* from: [n_from]; to: [n_to + slack], of which the last `slack` bytes (0, or PS_LZ4_SLACK for full speed) may be overwritten.
 * true when the block is sound and unpacks to exactly n_to bytes. Reads and writes nothing else whatever the bytes are. Thread-safe. */
bool ps_lz4_unpack(const uint8_t *from, size_t n_from, uint8_t *to, size_t n_to, size_t slack);

#endif
