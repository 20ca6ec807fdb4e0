/* Chunks as a file may hold them: the first bytes choose element size and count, the rest is the stream. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/bslz4.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4) return 0;
    size_t element = (size_t)1 << (data[0] & 3), n = (size_t)data[1] | (size_t)data[2] << 8;
    uint8_t *elements = malloc(n * element + 1), *stream = malloc(size);
    ps_error error = {0};
    memcpy(stream, data + 3, size - 3); /* exactly as long as it is said to be */
    if (data[0] & 4) {                  /* a header that fits, so that blocks are reached */
        uint64_t total = n * element;
        for (int i = 0; i < 8 && size > 15; i++) stream[i] = (uint8_t)(total >> 8 * (7 - i));
        if (size > 15) memcpy(stream + 8, (uint8_t[]){0, 0, data[0] & 8 ? 32 : 0, data[0] & 8 ? 0 : 64}, 4);
    }
    if (data[0] & 16)
        ps_lz4_decode(stream, size - 3, n * element, elements, &error);
    else
        ps_bslz4_decode(stream, size - 3, (int64_t)n, element, elements, &error);
    free(elements);
    free(stream);
    return 0;
}
