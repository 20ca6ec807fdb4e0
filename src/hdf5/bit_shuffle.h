/* The bit transposition of the bitshuffle filter on one block.
 *
 * A block of n elements of E bytes is stored as 8 E bit-rows of n/8 bytes: bit-row 8 b + t holds bit t of byte b of every
 * element, element i at bit i & 7 of byte i >> 3. Bytes of an element are taken in memory order. */
#ifndef PS_HDF5_BIT_SHUFFLE_H
#define PS_HDF5_BIT_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

/* elements: [n_elements, element_bytes]; rows: [8 * element_bytes, n_elements / 8]; n_elements a multiple of 8; the buffers do
 * not overlap. Thread-safe. */
void ps_bit_shuffle(const uint8_t *elements, size_t n_elements, size_t element_bytes, uint8_t *rows);
void ps_bit_unshuffle(const uint8_t *rows, size_t n_elements, size_t element_bytes, uint8_t *elements);

#endif
