#include "core/byte_order.h"

#include <stdint.h>
#include <string.h>

#include "core/assert.h"

#define SWAP_ALL(type, swap)                                    \
    for (size_t i = 0; i < n_elements; i++) {                   \
        type value;                                             \
        memcpy(&value, bytes + i * sizeof value, sizeof value); \
        value = swap(value);                                    \
        memcpy(bytes + i * sizeof value, &value, sizeof value); \
    }

void ps_swap_bytes(void *elements, size_t n_elements, size_t element_bytes) {
    PS_ASSERT(element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8);
    unsigned char *bytes = elements;
    if (element_bytes == 2) SWAP_ALL(uint16_t, __builtin_bswap16)
    if (element_bytes == 4) SWAP_ALL(uint32_t, __builtin_bswap32)
    if (element_bytes == 8) SWAP_ALL(uint64_t, __builtin_bswap64)
}
