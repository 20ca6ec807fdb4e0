/* Random numbers that depend on where they are used and not on when: Philox4x32-10 (Salmon et al., SC11) turns a key and a counter into
 * 128 random bits, so any rank or thread may draw any number. */
#ifndef PS_TASKS_SIMULATE_RANDOM_H
#define PS_TASKS_SIMULATE_RANDOM_H

#include <stdint.h>

typedef struct {
    uint32_t word[4];
} ps_random_bits;

/* Inline and unrolled so that a loop over counters becomes vector code. */
static inline __attribute__((always_inline)) ps_random_bits ps_random_block(uint64_t key, uint32_t x0, uint32_t x1, uint32_t x2,
                                                                            uint32_t x3) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)0xD2511F53u * x0, q = (uint64_t)0xCD9E8D57u * x2;
        x0 = (uint32_t)(q >> 32) ^ x1 ^ k0;
        x2 = (uint32_t)(p >> 32) ^ x3 ^ k1;
        x1 = (uint32_t)q;
        x3 = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (ps_random_bits){{x0, x1, x2, x3}};
}

/* What a number is for, so that no two uses share numbers. Counting noise is drawn under another key (poisson.h). */
typedef enum { PS_RANDOM_OFFSET, PS_RANDOM_VACANCY, PS_RANDOM_HOP, PS_RANDOM_PHASE, PS_RANDOM_AMPLITUDE } ps_random_use;

/* The number with index (a, b) of a use: uniform in [0, 1), 52 bits. */
double ps_random_uniform(uint64_t seed, ps_random_use use, uint32_t a, uint32_t b);
/* Two independent standard normal numbers. */
void ps_random_normals(uint64_t seed, ps_random_use use, uint32_t a, uint32_t b, double normals[2]);

/* Uniform in [0, 1) from the upper 52 bits of two words, by way of [1, 2): vector code on every instruction set. */
static inline __attribute__((always_inline)) double ps_random_to_unit(uint32_t high, uint32_t low) {
    union {
        uint64_t bits;
        double value;
    } number = {.bits = ((uint64_t)high << 32 | low) >> 12 | UINT64_C(0x3FF0000000000000)};
    return number.value - 1.0;
}

#endif
