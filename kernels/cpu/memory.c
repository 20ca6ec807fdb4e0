#include "kernels/cpu/memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"

enum { ALIGNMENT = 64, POISON = 0xff };

/* Lies in front of every block, in a cell of its own so that the block keeps its alignment. */
typedef struct block {
    struct block *previous, *next;
    size_t bytes;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block blocks = {&blocks, &blocks, 0};
static size_t in_use, peak;
static bool poison;

static void link_block(block *b) {
    pthread_mutex_lock(&lock);
    b->next = &blocks;
    b->previous = blocks.previous;
    b->previous->next = b;
    blocks.previous = b;
    in_use += b->bytes;
    if (in_use > peak) peak = in_use;
    pthread_mutex_unlock(&lock);
}

static void unlink_block(block *b) {
    pthread_mutex_lock(&lock);
    b->previous->next = b->next;
    b->next->previous = b->previous;
    in_use -= b->bytes;
    pthread_mutex_unlock(&lock);
}

void *ps_cpu_allocate(size_t count, size_t size) {
    PS_ASSERT(size > 0);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT;
    block *b = aligned_alloc(ALIGNMENT, rounded);
    if (!b) return NULL;
    b->bytes = bytes;
    void *pointer = (char *)b + ALIGNMENT;
    if (poison) memset(pointer, POISON, rounded - ALIGNMENT);
    link_block(b);
    return pointer;
}

void *ps_cpu_allocate_zero(size_t count, size_t size) {
    void *pointer = ps_cpu_allocate(count, size);
    if (pointer) memset(pointer, 0, count * size);
    return pointer;
}

void ps_cpu_free(void *pointer) {
    if (!pointer) return;
    block *b = (block *)((char *)pointer - ALIGNMENT);
    unlink_block(b);
    if (poison) memset(pointer, POISON, b->bytes);
    free(b);
}

size_t ps_cpu_memory_in_use(void) {
    pthread_mutex_lock(&lock);
    size_t bytes = in_use;
    pthread_mutex_unlock(&lock);
    return bytes;
}

size_t ps_cpu_memory_peak(void) {
    pthread_mutex_lock(&lock);
    size_t bytes = peak;
    pthread_mutex_unlock(&lock);
    return bytes;
}

void ps_cpu_memory_reset_peak(void) {
    pthread_mutex_lock(&lock);
    peak = in_use;
    pthread_mutex_unlock(&lock);
}

void ps_cpu_memory_poison(bool on) {
    poison = on;
}

bool ps_cpu_memory_owns(const void *pointer, size_t bytes) {
    bool found = false;
    uintptr_t begin = (uintptr_t)pointer;
    pthread_mutex_lock(&lock);
    for (const block *b = blocks.next; b != &blocks && !found; b = b->next) {
        uintptr_t first = (uintptr_t)b + ALIGNMENT;
        found = begin >= first && begin + bytes <= first + b->bytes;
    }
    pthread_mutex_unlock(&lock);
    return found;
}
