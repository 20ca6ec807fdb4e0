/* Byte order of elements in files. */
#ifndef PS_CORE_BYTE_ORDER_H
#define PS_CORE_BYTE_ORDER_H

#include <stddef.h>

/* Reverses the bytes of each element; elements: [n_elements], element_bytes of 1, 2, 4 or 8 each. */
void ps_swap_bytes(void *elements, size_t n_elements, size_t element_bytes);

#endif
