/* The fast way on CPU cores: threads own tiles of pixels and run through a batch's patterns tile by tile, so that the bins in use of a
 * tile's pixels stay in the core's first cache and no counter is shared. 8- and 16-bit integers go through the map's slot table, other
 * types through a guess that the edges correct. A value costs two loads, one increment and its share of the moments. */
#include <math.h>

#include "kernels/cpu/histogram_cpu.h"

enum { TILE = 64, PREFETCH_FRAMES = 16, FRAMES_PER_PARTIAL = 8192 /* |sum| < 2^17 * 2^13 fits int32 */ };

static inline int64_t guessed_slot(const ps_histogram_map *map, double value) {
    const double *edges = map->edges;
    int64_t n = map->n_bins;
    if (!(value >= edges[0])) return n + (value < edges[0] && isfinite(value) ? PS_SLOT_UNDERFLOW : PS_SLOT_NONFINITE);
    if (!(value <= edges[n])) return n + (isfinite(value) ? PS_SLOT_OVERFLOW : PS_SLOT_NONFINITE);
    double position = (value - edges[0]) * map->scale;
    int64_t slot = (int64_t)position;
    double fraction = position - (double)slot;
    if (fraction > map->guess_error && fraction < 1 - map->guess_error) return slot;
    if (slot >= n) slot = n - 1;
    while (value < edges[slot]) slot--;
    while (slot + 1 < n && value >= edges[slot + 1]) slot++;
    return slot;
}

/* Moments of a tile over up to FRAMES_PER_PARTIAL patterns. */
typedef struct {
    int32_t sum[TILE], minimum[TILE], maximum[TILE];
    uint32_t n_saturated[TILE];
    uint64_t square[TILE];
} small_partial;

static void partial_clear(small_partial *partial) {
    for (int j = 0; j < TILE; j++) {
        partial->sum[j] = 0, partial->square[j] = 0, partial->n_saturated[j] = 0;
        partial->minimum[j] = INT32_MAX, partial->maximum[j] = INT32_MIN;
    }
}

/* The moments of a tile join those of its pixels, and their sum the total. */
#define DEFINE_FLUSH(name, type)                                                           \
    static void name(const type *partial, ps_cpu_pixel *pixels, int n, ps_int128 *total) { \
        for (int j = 0; j < n; j++) {                                                      \
            pixels[j].sum += partial->sum[j];                                              \
            pixels[j].square += partial->square[j];                                        \
            pixels[j].n_saturated += partial->n_saturated[j];                              \
            pixels[j].minimum = fmin(pixels[j].minimum, partial->minimum[j]);              \
            pixels[j].maximum = fmax(pixels[j].maximum, partial->maximum[j]);              \
            *total += partial->sum[j];                                                     \
        }                                                                                  \
    }
DEFINE_FLUSH(partial_flush, small_partial)

/* One row of a tile: counts and moments of n pixels of one pattern. */
#define DEFINE_SMALL(NAME, TYPE)                                                                                                           \
    static inline __attribute__((always_inline)) void row_count_##NAME(const TYPE *row, int n, const int32_t *base, const uint32_t *slots, \
                                                                       uint32_t *counts, int64_t n_slots) {                                \
        uint32_t place[TILE];                                                                                                              \
        for (int j = 0; j < n; j++) place[j] = slots[row[j] - base[j]];                                                                    \
        for (int j = 0; j < n; j++, counts += n_slots) counts[place[j]]++;                                                                 \
    }                                                                                                                                      \
    static inline __attribute__((always_inline)) void row_moments_##NAME(const TYPE *row, int n, const int32_t *centre,                    \
                                                                         int32_t saturation, small_partial *partial) {                     \
        for (int j = 0; j < n; j++) {                                                                                                      \
            int32_t value = row[j] - centre[j];                                                                                            \
            uint32_t size = (uint32_t)(value < 0 ? -value : value);                                                                        \
            partial->sum[j] += value;                                                                                                      \
            partial->square[j] += (uint64_t)size * size;                                                                                   \
            partial->n_saturated[j] += row[j] >= saturation;                                                                               \
            partial->minimum[j] = value < partial->minimum[j] ? value : partial->minimum[j];                                               \
            partial->maximum[j] = value > partial->maximum[j] ? value : partial->maximum[j];                                               \
        }                                                                                                                                  \
    }                                                                                                                                      \
    static inline __attribute__((always_inline)) void tile_##NAME(ps_cpu_histogram *h, const TYPE *frames, int64_t n_frames,               \
                                                                  int64_t first, int n, ps_int128 *total) {                                \
        int32_t centre[TILE], base[TILE];                                                                                                  \
        uint32_t *counts = h->counts + first * h->n_slots;                                                                                 \
        int32_t saturation = h->desc.saturation > INT32_MAX ? INT32_MAX : (int32_t)ceil(fmax(h->desc.saturation, INT32_MIN));              \
        small_partial partial;                                                                                                             \
        for (int j = 0; j < n; j++) {                                                                                                      \
            centre[j] = h->centre ? (int32_t)h->centre[first + j] : 0;                                                                     \
            base[j] = centre[j] + (int32_t)h->map->first_value;                                                                            \
        }                                                                                                                                  \
        for (int64_t begin = 0; begin < n_frames; begin += FRAMES_PER_PARTIAL) {                                                           \
            int64_t end = begin + FRAMES_PER_PARTIAL < n_frames ? begin + FRAMES_PER_PARTIAL : n_frames;                                   \
            partial_clear(&partial);                                                                                                       \
            for (int64_t f = begin; f < end; f++) {                                                                                        \
                const TYPE *row = frames + f * h->desc.n_pixels + first;                                                                   \
                if (f + PREFETCH_FRAMES < end) {                                                                                           \
                    __builtin_prefetch(row + PREFETCH_FRAMES * h->desc.n_pixels);                                                          \
                    __builtin_prefetch((const char *)(row + PREFETCH_FRAMES * h->desc.n_pixels + n) - 1);                                  \
                }                                                                                                                          \
                row_count_##NAME(row, n, base, h->map->slots, counts, h->n_slots);                                                         \
                if (!h->desc.counts_only) row_moments_##NAME(row, n, centre, saturation, &partial);                                        \
            }                                                                                                                              \
            if (!h->desc.counts_only) partial_flush(&partial, h->pixels + first, n, total);                                                \
        }                                                                                                                                  \
    }
DEFINE_SMALL(u8, uint8_t)
DEFINE_SMALL(u16, uint16_t)
DEFINE_SMALL(i8, int8_t)
DEFINE_SMALL(i16, int16_t)

/* The same of wide types over one call; |sum| < 2^38 * 2^16 fits int64. */
typedef struct {
    int64_t sum[TILE];
    ps_uint128 square[TILE];
    double minimum[TILE], maximum[TILE];
    uint64_t n_saturated[TILE];
} wide_partial;

static void wide_clear(wide_partial *partial) {
    for (int j = 0; j < TILE; j++) {
        partial->sum[j] = 0, partial->square[j] = 0, partial->n_saturated[j] = 0;
        partial->minimum[j] = INFINITY, partial->maximum[j] = -INFINITY;
    }
}

DEFINE_FLUSH(wide_flush, wide_partial)
#undef DEFINE_FLUSH

/* ps_histogram_quantum without calls: adding and taking away 1.5 * 2^52 rounds to the nearest, to even between two. */
static inline int64_t quantum_of(double value, double units) {
    const double limit = 0x1p38, rounder = 0x1.8p52;
    double scaled = value * units;
    scaled = scaled < -limit ? -limit : scaled > limit ? limit : scaled;
    return (int64_t)((scaled + rounder) - rounder);
}

static inline __attribute__((always_inline)) void wide_add(wide_partial *partial, int j, double value, bool saturated, double units) {
    int64_t quantum = quantum_of(value, units);
    partial->sum[j] += quantum;
    partial->square[j] += (ps_uint128)((ps_int128)quantum * quantum);
    partial->n_saturated[j] += saturated;
    partial->minimum[j] = value < partial->minimum[j] ? value : partial->minimum[j];
    partial->maximum[j] = value > partial->maximum[j] ? value : partial->maximum[j];
}

/* 32-bit integers and floats: the difference is exact in double but for float32's own rounding. */
#define DEFINE_WIDE(NAME, TYPE, DIFFERENCE)                                                                                      \
    static void tile_##NAME(ps_cpu_histogram *h, const TYPE *frames, int64_t n_frames, int64_t first, int n, ps_int128 *total) { \
        double centre[TILE];                                                                                                     \
        wide_partial partial;                                                                                                    \
        wide_clear(&partial);                                                                                                    \
        for (int j = 0; j < n; j++) centre[j] = h->centre ? h->centre[first + j] : 0;                                            \
        for (int64_t f = 0; f < n_frames; f++) {                                                                                 \
            const TYPE *row = frames + f * h->desc.n_pixels + first;                                                             \
            for (int j = 0; j < n; j++) {                                                                                        \
                double value = DIFFERENCE(row[j], centre[j]);                                                                    \
                int64_t slot = guessed_slot(h->map, value);                                                                      \
                h->counts[(first + j) * h->n_slots + slot]++;                                                                    \
                if (h->desc.counts_only || slot == h->map->n_bins + PS_SLOT_NONFINITE) continue;                                 \
                wide_add(&partial, j, value, (double)row[j] >= h->desc.saturation, h->map->units);                               \
            }                                                                                                                    \
        }                                                                                                                        \
        if (!h->desc.counts_only) wide_flush(&partial, h->pixels + first, n, total);                                             \
    }
#define DIFFERENCE_DOUBLE(value, centre) ((double)(value) - (centre))
#define DIFFERENCE_FLOAT(value, centre) ((double)(float)((value) - (float)(centre)))
DEFINE_WIDE(u32, uint32_t, DIFFERENCE_DOUBLE)
DEFINE_WIDE(i32, int32_t, DIFFERENCE_DOUBLE)
DEFINE_WIDE(f32, float, DIFFERENCE_FLOAT)
DEFINE_WIDE(f64, double, DIFFERENCE_DOUBLE)

/* Whole tiles get their size as a constant, so that the compiler unrolls and vectorises. */
#define CALL_TILE(NAME, TYPE)                                               \
    if (n == TILE)                                                          \
        tile_##NAME(h, (const TYPE *)frames, n_frames, first, TILE, total); \
    else                                                                    \
        tile_##NAME(h, (const TYPE *)frames, n_frames, first, n, total);    \
    break

static void count_tile(ps_cpu_histogram *h, const void *frames, int64_t n_frames, int64_t first, int n, ps_int128 *total) {
    switch (h->map->dtype) {
    case PS_U8: CALL_TILE(u8, uint8_t);
    case PS_U16: CALL_TILE(u16, uint16_t);
    case PS_U32: CALL_TILE(u32, uint32_t);
    case PS_I8: CALL_TILE(i8, int8_t);
    case PS_I16: CALL_TILE(i16, int16_t);
    case PS_I32: CALL_TILE(i32, int32_t);
    case PS_F32: CALL_TILE(f32, float);
    case PS_F64: CALL_TILE(f64, double);
    default: break;
    }
}

ps_int128 ps_cpu_histogram_count_fast(ps_cpu_histogram *h, const void *frames, int64_t n_frames) {
    int64_t n_tiles = (h->desc.n_pixels + TILE - 1) / TILE;
    ps_int128 total = 0;
#pragma omp parallel num_threads(h->n_threads)
    {
        ps_int128 mine = 0;
#pragma omp for schedule(static)
        for (int64_t tile = 0; tile < n_tiles; tile++) {
            int64_t first = tile * TILE, left = h->desc.n_pixels - first;
            count_tile(h, frames, n_frames, first, left < TILE ? (int)left : TILE, &mine);
        }
#pragma omp critical(ps_histogram_total)
        total += mine;
    }
    return total;
}
