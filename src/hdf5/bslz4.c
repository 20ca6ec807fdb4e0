#include "hdf5/bslz4.h"

#include <inttypes.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "hdf5/bit_shuffle.h"
#include "hdf5/lz4_block.h"

enum { HEADER_BYTES = 12, LENGTH_BYTES = 4, BLOCK_BYTES = 8192, SMALL_BLOCK = 65536 };

static void put_big_endian(uint8_t *bytes, int n_bytes, uint64_t value) {
    for (int i = 0; i < n_bytes; i++) bytes[i] = (uint8_t)(value >> 8 * (n_bytes - 1 - i));
}

static uint64_t get_big_endian(const uint8_t *bytes, int n_bytes) {
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; i++) value = value << 8 | bytes[i];
    return value;
}

size_t ps_bslz4_bound(int64_t n_elements, size_t element_bytes) {
    PS_ASSERT(n_elements >= 0 && (element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8));
    size_t bytes = (size_t)n_elements * element_bytes, n_blocks = bytes / BLOCK_BYTES + 1;
    return HEADER_BYTES + n_blocks * (LENGTH_BYTES + (size_t)LZ4_COMPRESSBOUND(BLOCK_BYTES)) + 8 * element_bytes;
}

ps_code ps_bslz4_encode(const void *elements, int64_t n_elements, size_t element_bytes, uint8_t *stream, size_t room, size_t *used,
                        ps_error *error) {
    PS_ASSERT(room >= ps_bslz4_bound(n_elements, element_bytes));
    uint8_t rows[BLOCK_BYTES];
    const uint8_t *from = elements;
    if (n_elements < 0 || element_bytes == 0 || BLOCK_BYTES % (8 * element_bytes) != 0 || room < ps_bslz4_bound(n_elements, element_bytes))
        return PS_FAIL(error, PS_E_ARGUMENT, "bslz4: cannot encode %" PRId64 " elements of %zu bytes into %zu bytes", n_elements,
                       element_bytes, room);
    put_big_endian(stream, 8, (uint64_t)n_elements * element_bytes);
    put_big_endian(stream + 8, 4, BLOCK_BYTES);
    size_t at = HEADER_BYTES, left = (size_t)n_elements;
    while (left >= 8) {
        size_t n = left < BLOCK_BYTES / element_bytes ? left - left % 8 : BLOCK_BYTES / element_bytes;
        ps_bit_shuffle(from, n, element_bytes, rows);
        int length = LZ4_compress_default((const char *)rows, (char *)stream + at + LENGTH_BYTES, (int)(n * element_bytes),
                                          LZ4_COMPRESSBOUND(BLOCK_BYTES));
        if (length <= 0) return PS_FAIL(error, PS_E_INTERNAL, "bslz4: LZ4 refused a block of %zu bytes", n * element_bytes);
        put_big_endian(stream + at, LENGTH_BYTES, (uint64_t)length);
        at += LENGTH_BYTES + (size_t)length;
        from += n * element_bytes;
        left -= n;
    }
    memcpy(stream + at, from, left * element_bytes);
    *used = at + left * element_bytes;
    return PS_OK;
}

/* Checks the header against what the dataset promises; *block_bytes: as stored. */
static ps_code check_header(const uint8_t *stream, size_t stream_bytes, size_t n_bytes, uint32_t *block_bytes, ps_error *error) {
    if (stream_bytes < HEADER_BYTES)
        return PS_FAIL(error, PS_E_INPUT, "byte 0: the stream has %zu bytes, expected a header of %d", stream_bytes, HEADER_BYTES);
    uint64_t total = get_big_endian(stream, 8);
    if (total != n_bytes)
        return PS_FAIL(error, PS_E_INPUT, "byte 0: the header says %" PRIu64 " bytes unpacked, expected %zu", total, n_bytes);
    *block_bytes = (uint32_t)get_big_endian(stream + 8, 4);
    return PS_OK;
}

/* Reads the length in front of a block at *at and steps over it. */
static ps_code next_block(const uint8_t *stream, size_t stream_bytes, size_t *at, size_t *length, ps_error *error) {
    if (stream_bytes - *at < LENGTH_BYTES)
        return PS_FAIL(error, PS_E_INPUT, "byte %zu: the stream ends, expected the length of a block", *at);
    *length = (size_t)get_big_endian(stream + *at, LENGTH_BYTES);
    size_t left = stream_bytes - *at - LENGTH_BYTES;
    if (*length > left) return PS_FAIL(error, PS_E_INPUT, "byte %zu: a block says it has %zu bytes, only %zu are left", *at, *length, left);
    *at += LENGTH_BYTES;
    return PS_OK;
}

/* The block at stream + at into bytes: [n_bytes + slack] */
static ps_code unpack_block(const uint8_t *stream, size_t at, size_t length, uint8_t *bytes, size_t n_bytes, size_t slack,
                            ps_error *error) {
    if (ps_lz4_unpack(stream + at, length, bytes, n_bytes, slack)) return PS_OK;
    return PS_FAIL(error, PS_E_INPUT, "byte %zu: damaged LZ4 block of %zu bytes (expected to unpack to %zu)", at, length, n_bytes);
}

/* Unpacks all blocks through rows: [block elements * element_bytes + PS_LZ4_SLACK]. */
static ps_code decode_blocks(const uint8_t *stream, size_t stream_bytes, size_t n_elements, size_t element_bytes, size_t block_elements,
                             uint8_t *rows, uint8_t *elements, ps_error *error) {
    size_t at = HEADER_BYTES, left = n_elements;
    while (left >= 8) {
        size_t n = left < block_elements ? left - left % 8 : block_elements, length = 0;
        PS_TRY(next_block(stream, stream_bytes, &at, &length, error));
        PS_TRY(unpack_block(stream, at, length, rows, n * element_bytes, PS_LZ4_SLACK, error));
        ps_bit_unshuffle(rows, n, element_bytes, elements);
        at += length;
        elements += n * element_bytes;
        left -= n;
    }
    if (stream_bytes - at < left * element_bytes)
        return PS_FAIL(error, PS_E_INPUT, "byte %zu: the stream ends, expected %zu more bytes", at, left * element_bytes);
    memcpy(elements, stream + at, left * element_bytes);
    return PS_OK;
}

ps_code ps_bslz4_decode(const uint8_t *stream, size_t stream_bytes, int64_t n_elements, size_t element_bytes, void *elements,
                        ps_error *error) {
    ps_code code = PS_OK;
    uint8_t small[SMALL_BLOCK + PS_LZ4_SLACK], *large = NULL;
    uint32_t block_bytes = 0;
    PS_TRY(check_header(stream, stream_bytes, (size_t)n_elements * element_bytes, &block_bytes, error));
    if (block_bytes == 0 || block_bytes % (8 * element_bytes) != 0)
        return PS_FAIL(error, PS_E_INPUT, "byte 8: the header says blocks of %u bytes, expected a multiple of %zu", block_bytes,
                       8 * element_bytes);
    size_t all = (size_t)n_elements * element_bytes, room = block_bytes < all ? block_bytes : all;
    if (room > SMALL_BLOCK) {
        large = malloc(room + PS_LZ4_SLACK);
        PS_GO_ALLOC(error, large);
    }
    PS_GO(decode_blocks(stream, stream_bytes, (size_t)n_elements, element_bytes, block_bytes / element_bytes, large ? large : small,
                        elements, error));
done:
    free(large);
    return code;
}

ps_code ps_lz4_decode(const uint8_t *stream, size_t stream_bytes, size_t n_bytes, void *elements, ps_error *error) {
    uint32_t block_bytes = 0;
    uint8_t *to = elements;
    PS_TRY(check_header(stream, stream_bytes, n_bytes, &block_bytes, error));
    if (block_bytes == 0 && n_bytes > 0) return PS_FAIL(error, PS_E_INPUT, "byte 8: the header says blocks of 0 bytes");
    for (size_t at = HEADER_BYTES, left = n_bytes; left > 0;) {
        size_t n = left < block_bytes ? left : block_bytes, length = 0;
        PS_TRY(next_block(stream, stream_bytes, &at, &length, error));
        if (length == n)
            memcpy(to, stream + at, n);
        else
            PS_TRY(unpack_block(stream, at, length, to, n, 0, error));
        at += length;
        to += n;
        left -= n;
    }
    return PS_OK;
}
