/* What is encoded comes back the same, whatever the elements. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/bslz4.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    size_t element = (size_t)1 << (data[0] & 3), n = (size - 1) / element, bound = ps_bslz4_bound((int64_t)n, element), used = 0;
    uint8_t *stream = malloc(bound), *back = malloc(n * element + 1);
    if (ps_bslz4_encode(data + 1, (int64_t)n, element, stream, bound, &used, NULL) != PS_OK || used > bound) abort();
    if (ps_bslz4_decode(stream, used, (int64_t)n, element, back, NULL) != PS_OK || memcmp(back, data + 1, n * element) != 0) abort();
    free(stream);
    free(back);
    return 0;
}
