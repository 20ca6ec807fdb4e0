/* Memory of the CPU backends: 64-byte aligned, counted, and testable.
 *
 * Everything a CPU backend keeps is allocated here, as a GPU backend allocates on its device. With poison on (tests only), new
 * and freed blocks are filled with bytes 0xff, which is NaN in every floating type and -1 in every integer, so that reading
 * what nobody wrote spoils a result; and a pointer can be asked whether it lies in such a block. Thread-safe. */
#ifndef PS_KERNELS_CPU_MEMORY_H
#define PS_KERNELS_CPU_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* count * size bytes, not zeroed; NULL when there is no memory or the product overflows. Freed by ps_cpu_free. */
void *ps_cpu_allocate(size_t count, size_t size);
void *ps_cpu_allocate_zero(size_t count, size_t size);
void ps_cpu_free(void *pointer); /* NULL is allowed */

size_t ps_cpu_memory_in_use(void); /* bytes */
size_t ps_cpu_memory_peak(void);   /* most bytes in use since the last reset */
void ps_cpu_memory_reset_peak(void);

void ps_cpu_memory_poison(bool on);
/* true when all `bytes` from pointer lie inside one block in use. */
bool ps_cpu_memory_owns(const void *pointer, size_t bytes);

#endif
