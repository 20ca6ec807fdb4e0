#include "hdf5/bit_shuffle.h"

#include <string.h>

#include "core/assert.h"

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
    PS_ASSERT(n_elements % 8 == 0);
    switch (element_bytes) { /* constants let the compiler unroll */
    case 1: shuffle_columns(elements, n_elements / 8, 1, rows); break;
    case 2: shuffle_columns(elements, n_elements / 8, 2, rows); break;
    case 4: shuffle_columns(elements, n_elements / 8, 4, rows); break;
    default: shuffle_columns(elements, n_elements / 8, element_bytes, rows);
    }
}

#ifdef __x86_64__
#include <immintrin.h>

/* Columns are taken 32 at a time: 32 bytes of each bit-row, 256 elements. Two ways to transpose the bits: GFNI does 8 x 8 bits in one
 * instruction; without it, three exchanges across the eight vectors. */
#define AVX2 __attribute__((target("avx2")))
#define GFNI __attribute__((target("avx2,gfni")))
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif
enum { COLUMNS = 32, TILE = 8 * COLUMNS };

/* Exchanges bits across two vectors: those of a at mask << shift with those of b at mask. */
#define EXCHANGE(a, b, shift, mask)                                                            \
    do {                                                                                       \
        __m256i t_ = _mm256_and_si256(_mm256_xor_si256(_mm256_srli_epi16(a, shift), b), mask); \
        (b) = _mm256_xor_si256(b, t_);                                                         \
        (a) = _mm256_xor_si256(a, _mm256_slli_epi16(t_, shift));                               \
    } while (0)

/* v[t]: 32 bytes of bit-row t. Afterwards v[l] holds, for each of the 32 columns, the byte of the column's element l. */
AVX2 INLINE void transpose_vectors(__m256i v[8]) {
    const __m256i m1 = _mm256_set1_epi8(0x55), m2 = _mm256_set1_epi8(0x33), m4 = _mm256_set1_epi8(0x0F);
    UNROLL
    for (int i = 0; i < 8; i += 2) EXCHANGE(v[i], v[i + 1], 1, m1);
    UNROLL
    for (int i = 0; i < 8; i += 4) {
        EXCHANGE(v[i], v[i + 2], 2, m2);
        EXCHANGE(v[i + 1], v[i + 3], 2, m2);
    }
    UNROLL
    for (int i = 0; i < 4; i++) EXCHANGE(v[i], v[i + 4], 4, m4);
}

/* lo and hi halves of the interleaved bytes, words or double words of a and b, 128-bit lanes apart */
#define INTERLEAVE(width, a, b, lo, hi)          \
    do {                                         \
        (lo) = _mm256_unpacklo_epi##width(a, b); \
        (hi) = _mm256_unpackhi_epi##width(a, b); \
    } while (0)

/* Brings the eight bytes of each column together: groups[i] holds columns 2i, 2i + 1 in its low lane, 2i + 16, 2i + 17 in its high one. */
AVX2 INLINE void gather_columns(const __m256i v[8], __m256i groups[8]) {
    __m256i a[8], b[8];
    UNROLL
    for (int i = 0; i < 4; i++) INTERLEAVE(8, v[2 * i], v[2 * i + 1], a[i], a[i + 4]);
    UNROLL
    for (int h = 0; h < 8; h += 4) {
        INTERLEAVE(16, a[h], a[h + 1], b[h], b[h + 2]);
        INTERLEAVE(16, a[h + 2], a[h + 3], b[h + 1], b[h + 3]);
    }
    UNROLL
    for (int h = 0; h < 4; h++) INTERLEAVE(32, b[2 * h], b[2 * h + 1], groups[2 * h], groups[2 * h + 1]);
}

/* bytes: [256], column after column */
AVX2 INLINE void store_columns(const __m256i groups[8], uint8_t *bytes) {
    UNROLL
    for (int i = 0; i < 8; i++) {
        _mm_storeu_si128((__m128i *)(bytes + 16 * i), _mm256_castsi256_si128(groups[i]));
        _mm_storeu_si128((__m128i *)(bytes + 128 + 16 * i), _mm256_extracti128_si256(groups[i], 1));
    }
}

/* rows: 8 bit-rows `stride` bytes apart, 32 bytes of each; true when all are zero, as the upper bytes of counts nearly always are. */
AVX2 INLINE int load_rows(const uint8_t *rows, size_t stride, __m256i v[8]) {
    __m256i any = _mm256_setzero_si256();
    UNROLL
    for (size_t t = 0; t < 8; t++) {
        v[t] = _mm256_loadu_si256((const __m256i *)(rows + t * stride));
        any = _mm256_or_si256(any, v[t]);
    }
    return _mm256_testz_si256(any, any);
}

/* One byte of 256 elements from 8 bit-rows; bytes: [256] */
AVX2 INLINE void unshuffle_plane_avx2(const uint8_t *rows, size_t stride, uint8_t *bytes) {
    __m256i v[8], groups[8];
    if (load_rows(rows, stride, v)) {
        memset(bytes, 0, TILE);
        return;
    }
    transpose_vectors(v);
    gather_columns(v, groups);
    store_columns(groups, bytes);
}

/* The affine product of the bytes 1, 2, 4 ... 128 with an 8 x 8 bit matrix given last row first is its transpose. */
GFNI INLINE void unshuffle_plane_gfni(const uint8_t *rows, size_t stride, uint8_t *bytes) {
    const __m256i unit = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    __m256i v[8], reversed[8], groups[8];
    if (load_rows(rows, stride, v)) {
        memset(bytes, 0, TILE);
        return;
    }
    UNROLL
    for (int t = 0; t < 8; t++) reversed[t] = v[7 - t];
    gather_columns(reversed, groups);
    UNROLL
    for (int i = 0; i < 8; i++) groups[i] = _mm256_gf2p8affine_epi64_epi8(unit, groups[i], 0);
    store_columns(groups, bytes);
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

/* unshuffle_NAME: elements of 1, 2 or 4 bytes; returns the columns done, a multiple of 32. */
#define DEFINE_UNSHUFFLE(name, target)                                                                                             \
    target static size_t unshuffle_##name(const uint8_t *rows, size_t n_columns, size_t element_bytes, uint8_t *elements) {        \
        uint8_t planes[4][TILE], pairs[2][2 * TILE];                                                                               \
        size_t j = 0;                                                                                                              \
        for (; j + COLUMNS <= n_columns; j += COLUMNS, elements += TILE * element_bytes) {                                         \
            if (element_bytes == 1) {                                                                                              \
                unshuffle_plane_##name(rows + j, n_columns, elements);                                                             \
                continue;                                                                                                          \
            }                                                                                                                      \
            for (size_t b = 0; b < element_bytes; b++) unshuffle_plane_##name(rows + 8 * b * n_columns + j, n_columns, planes[b]); \
            if (element_bytes == 2) {                                                                                              \
                MERGE(8, planes[0], planes[1], elements)                                                                           \
            } else {                                                                                                               \
                MERGE(8, planes[0], planes[1], pairs[0])                                                                           \
                MERGE(8, planes[2], planes[3], pairs[1])                                                                           \
                MERGE(16, pairs[0], pairs[1], elements)                                                                            \
            }                                                                                                                      \
        }                                                                                                                          \
        return j;                                                                                                                  \
    }
DEFINE_UNSHUFFLE(avx2, AVX2)
DEFINE_UNSHUFFLE(gfni, GFNI)
#endif

void ps_bit_unshuffle(const uint8_t *rows, size_t n_elements, size_t element_bytes, uint8_t *elements) {
    PS_ASSERT(n_elements % 8 == 0);
    size_t n_columns = n_elements / 8, done = 0;
#ifdef __x86_64__
    if (element_bytes == 1 || element_bytes == 2 || element_bytes == 4) {
        if (__builtin_cpu_supports("gfni") && __builtin_cpu_supports("avx2"))
            done = unshuffle_gfni(rows, n_columns, element_bytes, elements);
        else if (__builtin_cpu_supports("avx2"))
            done = unshuffle_avx2(rows, n_columns, element_bytes, elements);
    }
#endif
    unshuffle_columns(rows, done, n_columns, element_bytes, elements);
}
