/* The host twin of the unpacking kernel on chunks as a file may hold them: it must find damage where the CPU's decoder finds it, and the
 * same counts elsewhere. The first bytes choose element type, number and filter, the rest is the stream. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/byte_order.h"
#include "hdf5/bslz4.h"
#include "kernels/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const ps_dtype types[] = {PS_U8, PS_U16, PS_U32, PS_F32};
    if (size < 4) return 0;
    ps_dtype dtype = types[data[0] & 3];
    size_t element = ps_dtype_bytes(dtype), n = 1 + ((size_t)data[1] | (size_t)data[2] << 8), bytes = n * element;
    uint8_t *expected = malloc(bytes), *found = malloc(bytes), *looks = malloc(n), *stream = malloc(size - 3);
    ps_packing packing = data[0] & 16 ? PS_PACKED_LZ4 : PS_PACKED_BSLZ4;
    ps_unpack_tally tally;
    ps_error error = {0};
    memset(looks, 3, n);
    memcpy(stream, data + 3, size - 3); /* exactly as long as it is said to be */
    if ((data[0] & 4) && size > 15) {   /* a header that fits, so that blocks are reached */
        for (int i = 0; i < 8; i++) stream[i] = (uint8_t)((uint64_t)bytes >> 8 * (7 - i));
        memcpy(stream + 8, (uint8_t[]){0, 0, data[0] & 8 ? 32 : 0, data[0] & 8 ? 0 : 64}, 4);
    }
    ps_unpack_rules rules = {.looks = looks, .big_endian = data[0] & 32};
    bool good = ps_unpack_pattern(packing, dtype, (int64_t)n, &rules, stream, size - 3, found, &tally);
    ps_code code = packing == PS_PACKED_LZ4 ? ps_lz4_decode(stream, size - 3, bytes, expected, &error)
                                            : ps_bslz4_decode(stream, size - 3, (int64_t)n, element, expected, &error);
    if (good != (code == PS_OK)) abort();
    if (good && rules.big_endian) ps_swap_bytes(expected, n, element);
    if (good && memcmp(expected, found, bytes) != 0) abort();
    if (good && (tally.lit[1] + tally.marked[1] > n || tally.lit[0] != tally.lit[1])) abort();
    free(expected);
    free(found);
    free(looks);
    free(stream);
    return 0;
}
