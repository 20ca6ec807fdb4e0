#include "input/bit_shuffle.h"

#include <string.h>

/* Transposes the 8 x 8 bits of x, byte r being row r. */
static inline uint64_t transpose_bits(uint64_t x) {
    uint64_t t = (x ^ (x >> 7)) & UINT64_C(0x00AA00AA00AA00AA);
    x ^= t ^ (t << 7);
    t = (x ^ (x >> 14)) & UINT64_C(0x0000CCCC0000CCCC);
    x ^= t ^ (t << 14);
    t = (x ^ (x >> 28)) & UINT64_C(0x00000000F0F0F0F0);
    return x ^ t ^ (t << 28);
}

static inline void shuffle_columns(const uint8_t *elements, size_t n_columns, size_t element_bytes, uint8_t *rows) {
    for (size_t b = 0; b < element_bytes; b++)
        for (size_t j = 0; j < n_columns; j++) {
            uint64_t x = 0;
            for (int l = 7; l >= 0; l--) x = x << 8 | elements[(8 * j + (size_t)l) * element_bytes + b];
            x = transpose_bits(x);
            for (size_t t = 0; t < 8; t++) rows[(8 * b + t) * n_columns + j] = (uint8_t)(x >> 8 * t);
        }
}

/* Columns first_column ... n_columns - 1 of the bit-rows. */
static inline void unshuffle_columns(const uint8_t *rows, size_t first_column, size_t n_columns, size_t element_bytes, uint8_t *elements) {
    for (size_t b = 0; b < element_bytes; b++)
        for (size_t j = first_column; j < n_columns; j++) {
            uint64_t x = 0;
            for (int t = 7; t >= 0; t--) x = x << 8 | rows[(8 * b + (size_t)t) * n_columns + j];
            x = transpose_bits(x);
            for (size_t l = 0; l < 8; l++) elements[(8 * j + l) * element_bytes + b] = (uint8_t)(x >> 8 * l);
        }
}

void ps_bit_shuffle(const uint8_t *elements, size_t n_elements, size_t element_bytes, uint8_t *rows) {
    switch (element_bytes) { /* constants let the compiler unroll */
    case 1: shuffle_columns(elements, n_elements / 8, 1, rows); break;
    case 2: shuffle_columns(elements, n_elements / 8, 2, rows); break;
    case 4: shuffle_columns(elements, n_elements / 8, 4, rows); break;
    default: shuffle_columns(elements, n_elements / 8, element_bytes, rows);
    }
}

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
enum { COLUMNS = 32, TILE = 8 * COLUMNS }; /* bytes of a bit-row, and elements, that one step of the AVX2 path takes */

/* Exchanges bits across two vectors: those of a at mask << shift with those of b at mask. */
#define EXCHANGE(a, b, shift, mask)                                                            \
    do {                                                                                       \
        __m256i t_ = _mm256_and_si256(_mm256_xor_si256(_mm256_srli_epi16(a, shift), b), mask); \
        (b) = _mm256_xor_si256(b, t_);                                                         \
        (a) = _mm256_xor_si256(a, _mm256_slli_epi16(t_, shift));                               \
    } while (0)

/* v[t]: 32 bytes of bit-row t. Afterwards v[l] holds, for each of the 32 columns, the byte of the column's element l. */
AVX2 static inline void transpose_vectors(__m256i v[8]) {
    const __m256i m1 = _mm256_set1_epi8(0x55), m2 = _mm256_set1_epi8(0x33), m4 = _mm256_set1_epi8(0x0F);
    for (int i = 0; i < 8; i += 2) EXCHANGE(v[i], v[i + 1], 1, m1);
    for (int i = 0; i < 8; i += 4) {
        EXCHANGE(v[i], v[i + 2], 2, m2);
        EXCHANGE(v[i + 1], v[i + 3], 2, m2);
    }
    for (int i = 0; i < 4; i++) EXCHANGE(v[i], v[i + 4], 4, m4);
}

/* lo and hi halves of the interleaved bytes, words or double words of a and b, 128-bit lanes apart */
#define INTERLEAVE(width, a, b, lo, hi)          \
    do {                                         \
        (lo) = _mm256_unpacklo_epi##width(a, b); \
        (hi) = _mm256_unpackhi_epi##width(a, b); \
    } while (0)

/* bytes: [256], element after element */
AVX2 static inline void store_interleaved(const __m256i v[8], uint8_t *bytes) {
    __m256i a[8], b[8], c[8];
    for (int i = 0; i < 4; i++) INTERLEAVE(8, v[2 * i], v[2 * i + 1], a[i], a[i + 4]);
    for (int h = 0; h < 8; h += 4) {
        INTERLEAVE(16, a[h], a[h + 1], b[h], b[h + 2]);
        INTERLEAVE(16, a[h + 2], a[h + 3], b[h + 1], b[h + 3]);
    }
    for (int h = 0; h < 4; h++) INTERLEAVE(32, b[2 * h], b[2 * h + 1], c[2 * h], c[2 * h + 1]);
    for (int i = 0; i < 8; i++) {
        _mm_storeu_si128((__m128i *)(bytes + 16 * i), _mm256_castsi256_si128(c[i]));
        _mm_storeu_si128((__m128i *)(bytes + 128 + 16 * i), _mm256_extracti128_si256(c[i], 1));
    }
}

/* One byte of 256 elements: rows: 8 bit-rows `stride` bytes apart, 32 bytes of each; bytes: [256] */
AVX2 static inline void unshuffle_plane(const uint8_t *rows, size_t stride, uint8_t *bytes) {
    __m256i v[8], any = _mm256_setzero_si256();
    for (size_t t = 0; t < 8; t++) {
        v[t] = _mm256_loadu_si256((const __m256i *)(rows + t * stride));
        any = _mm256_or_si256(any, v[t]);
    }
    if (_mm256_testz_si256(any, any)) { /* the upper bytes of counts nearly always are zero */
        memset(bytes, 0, TILE);
        return;
    }
    transpose_vectors(v);
    store_interleaved(v, bytes);
}

/* low, high: [256, width / 8 bytes]; merged: [256, width / 4 bytes] */
#define MERGE(width, low, high, merged)                                                                                          \
    for (int i_ = 0; i_ < TILE * (width) / 8; i_ += 32) {                                                                        \
        __m256i l_ = _mm256_loadu_si256((const __m256i *)((low) + i_)), h_ = _mm256_loadu_si256((const __m256i *)((high) + i_)); \
        __m256i first_, second_;                                                                                                 \
        INTERLEAVE(width, l_, h_, first_, second_);                                                                              \
        _mm256_storeu_si256((__m256i *)((merged) + 2 * i_), _mm256_permute2x128_si256(first_, second_, 0x20));                   \
        _mm256_storeu_si256((__m256i *)((merged) + 2 * i_ + 32), _mm256_permute2x128_si256(first_, second_, 0x31));              \
    }

/* Elements of 1, 2 or 4 bytes; returns the columns done, a multiple of 32. */
AVX2 static size_t unshuffle_avx2(const uint8_t *rows, size_t n_columns, size_t element_bytes, uint8_t *elements) {
    uint8_t planes[4][TILE], pairs[2][2 * TILE];
    size_t j = 0;
    for (; j + COLUMNS <= n_columns; j += COLUMNS, elements += TILE * element_bytes) {
        if (element_bytes == 1) {
            unshuffle_plane(rows + j, n_columns, elements);
            continue;
        }
        for (size_t b = 0; b < element_bytes; b++) unshuffle_plane(rows + 8 * b * n_columns + j, n_columns, planes[b]);
        if (element_bytes == 2) {
            MERGE(8, planes[0], planes[1], elements)
        } else {
            MERGE(8, planes[0], planes[1], pairs[0])
            MERGE(8, planes[2], planes[3], pairs[1])
            MERGE(16, pairs[0], pairs[1], elements)
        }
    }
    return j;
}
#endif

void ps_bit_unshuffle(const uint8_t *rows, size_t n_elements, size_t element_bytes, uint8_t *elements) {
    size_t n_columns = n_elements / 8, done = 0;
#ifdef __x86_64__
    if ((element_bytes == 1 || element_bytes == 2 || element_bytes == 4) && __builtin_cpu_supports("avx2"))
        done = unshuffle_avx2(rows, n_columns, element_bytes, elements);
#endif
    unshuffle_columns(rows, done, n_columns, element_bytes, elements);
}
