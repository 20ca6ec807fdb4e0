/* Chunks of HDF5 filter 32008, bitshuffle with LZ4, as Dectris detectors write them; needs no HDF5 and no plugin.
 *
 * A stream: uint64 bytes of all elements, uint32 bytes of a block, both big endian; then per block a big-endian uint32 length and
 * an LZ4 block that unpacks to bit-rows (bit_shuffle.h). The last full block holds what is left, down to a multiple of 8 elements;
 * at most 7 further elements follow as they are. The filter's cd_values are (0, 3, element bytes, 0, 2). */
#ifndef PS_HDF5_BSLZ4_H
#define PS_HDF5_BSLZ4_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum { PS_FILTER_LZ4 = 32004, PS_FILTER_BITSHUFFLE = 32008 };

/* Room a stream needs at most. element_bytes: 1, 2, 4 or 8. */
size_t ps_bslz4_bound(int64_t n_elements, size_t element_bytes);

/* elements: [n_elements], element_bytes each; stream: [room] bytes, room at least ps_bslz4_bound; *used: bytes written.
 * Thread-safe; the same input always gives the same bytes. */
ps_code ps_bslz4_encode(const void *elements, int64_t n_elements, size_t element_bytes, uint8_t *stream, size_t room, size_t *used,
                        ps_error *error);

/* stream: [stream_bytes]; elements: [n_elements], byte order as it was when encoded. Every length in the stream is checked; damage
 * is PS_E_INPUT and names the byte of the stream, counted from 0. Bytes behind the last element are ignored. Thread-safe. */
ps_code ps_bslz4_decode(const uint8_t *stream, size_t stream_bytes, int64_t n_elements, size_t element_bytes, void *elements,
                        ps_error *error);

/* The same for filter 32004 (LZ4): the same header, then blocks of bytes, each behind its big-endian uint32 length; a length equal
 * to the block's size means the bytes follow as they are. elements: [n_bytes]. */
ps_code ps_lz4_decode(const uint8_t *stream, size_t stream_bytes, size_t n_bytes, void *elements, ps_error *error);

#endif
