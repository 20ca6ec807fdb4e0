#include "kernels/unpack.h"

#include <stdlib.h>

bool ps_unpack_takes(ps_dtype dtype, int64_t n_pixels) {
    size_t bytes = ps_dtype_bytes(dtype);
    return bytes >= 1 && bytes <= 4 && n_pixels > 0 && n_pixels <= INT32_MAX / 4;
}

ps_unpack_meaning ps_unpack_meaning_of(ps_dtype dtype, uint32_t limit) {
    uint32_t all = 0xffffffffu >> (32 - 8 * ps_dtype_bytes(dtype));
    if (dtype == PS_F32) return (ps_unpack_meaning){.value_planes = 0x7fffffffu, .no_count_planes = 0x7f800000u};
    return (ps_unpack_meaning){.value_planes = all, .no_count_planes = ps_dtype_invalid_value(dtype), .limit = limit};
}

bool ps_unpack_shape_of(ps_packing packing, uint32_t element_bytes, bool big_endian, int64_t n_elements, const uint8_t *stream,
                        size_t n_stream, ps_unpack_shape *shape) {
    uint32_t all = (uint32_t)n_elements * element_bytes;
    *shape = (ps_unpack_shape){.packing = packing, .element_bytes = element_bytes, .n_elements = (uint32_t)n_elements};
    shape->flip = big_endian ? 8 * (element_bytes - 1) : 0;
    if (packing == PS_PACKED_PLAIN) {
        shape->block_bytes = all < PS_UNPACK_PLAIN_BLOCK ? all : PS_UNPACK_PLAIN_BLOCK;
        shape->n_blocks = (all + shape->block_bytes - 1) / shape->block_bytes;
        return true;
    }
    if (n_stream < PS_UNPACK_HEADER) return false;
    shape->block_bytes = (uint32_t)ps_unpack_big_endian(stream + 8, 4);
    uint32_t unit = packing == PS_PACKED_BSLZ4 ? 8 * element_bytes : 1;
    if (shape->block_bytes == 0 || shape->block_bytes % unit != 0) return false;
    all -= ps_unpack_rest_bytes(shape);
    shape->n_blocks = all / shape->block_bytes + (all % shape->block_bytes != 0);
    return true;
}

/* --- tallies --- */

static void add_seen(ps_unpack_tally *tally, const uint8_t *looks, uint32_t element, uint32_t lit, uint32_t marked, uint32_t limited) {
    for (int which = 0; looks && which < 2; which++) {
        tally->lit[which] += (looks[element] >> which & 1) & lit;
        tally->marked[which] += (looks[element] >> which & 1) & marked;
    }
    tally->n_limited += limited;
}

/* Of n elements one after the other, which become native, and what the limit makes of them. */
static void see_elements(const ps_unpack_shape *shape, ps_unpack_meaning meaning, const uint8_t *looks, uint32_t first, uint32_t n,
                         uint8_t *elements, ps_unpack_tally *tally) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t value = 0;
        memcpy(&value, elements + (size_t)i * shape->element_bytes, shape->element_bytes);
        value = ps_unpack_native(value, shape->flip);
        ps_unpack_seen seen = ps_unpack_see_value(&value, shape->element_bytes, meaning);
        memcpy(elements + (size_t)i * shape->element_bytes, &value, shape->element_bytes);
        add_seen(tally, looks, first + i, seen.lit, seen.marked, seen.limited);
    }
}

/* Of an unpacked block of planes: tallies it, turns it and takes its elements out. */
static void take_block(const ps_unpack_shape *shape, ps_unpack_meaning meaning, const uint8_t *looks, uint32_t first, uint32_t n,
                       uint8_t *planes, uint8_t *elements, ps_unpack_tally *tally) {
    for (uint32_t w = 0; 32 * w < n; w++) {
        ps_unpack_seen seen = ps_unpack_see(planes, n / 8, shape->element_bytes, shape->flip, w, meaning);
        for (uint32_t i = 32 * w; i < n && i < 32 * w + 32; i++)
            add_seen(tally, looks, first + i, seen.lit >> i % 32 & 1, seen.marked >> i % 32 & 1, seen.limited >> i % 32 & 1);
        ps_unpack_turn(planes, n / 8, shape->element_bytes, w, seen.limited);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t value = ps_unpack_element(planes, n, shape->element_bytes, shape->flip, ps_unpack_place(i, n));
        memcpy(elements + (size_t)i * shape->element_bytes, &value, shape->element_bytes);
    }
}

/* --- patterns --- */

static bool unpack_blocks(const ps_unpack_shape *shape, ps_unpack_meaning meaning, const uint8_t *looks, const uint8_t *stream,
                          const uint32_t *starts, uint8_t *planes, uint8_t *elements, ps_unpack_tally *tally) {
    bool has_planes = shape->packing == PS_PACKED_BSLZ4;
    uint32_t done = 0;
    for (uint32_t block = 0; block < shape->n_blocks; block++) {
        uint32_t n_bytes = ps_unpack_block_bytes(shape, block), n_from = ps_unpack_stored_bytes(shape, stream, starts[block], block);
        if (!ps_unpack_bytes(shape, stream + starts[block], n_from, has_planes ? planes : elements + done, n_bytes)) return false;
        if (has_planes)
            take_block(shape, meaning, looks, done / shape->element_bytes, n_bytes / shape->element_bytes, planes, elements + done, tally);
        done += n_bytes;
    }
    memcpy(elements + done, stream + starts[shape->n_blocks], ps_unpack_rest_bytes(shape));
    uint32_t first = has_planes ? done / shape->element_bytes : 0;
    see_elements(shape, meaning, looks, first, shape->n_elements - first, elements + (size_t)first * shape->element_bytes, tally);
    return true;
}

bool ps_unpack_pattern(ps_packing packing, ps_dtype dtype, int64_t n_elements, const ps_unpack_rules *rules, const uint8_t *stream,
                       size_t n_stream, void *elements, ps_unpack_tally *tally) {
    ps_unpack_shape shape;
    ps_unpack_tally unwanted, *sum = tally ? tally : &unwanted;
    memset(sum, 0, sizeof *sum);
    if (n_stream > UINT32_MAX || !ps_unpack_takes(dtype, n_elements) ||
        !ps_unpack_shape_of(packing, (uint32_t)ps_dtype_bytes(dtype), rules && rules->big_endian, n_elements, stream, n_stream, &shape))
        return false;
    uint32_t room = shape.n_blocks > 0 ? ps_unpack_block_bytes(&shape, 0) : 0;
    uint32_t *starts = malloc(((size_t)shape.n_blocks + 1) * sizeof *starts);
    uint8_t *planes = malloc((size_t)room + 1);
    bool good = starts && planes && ps_unpack_find_blocks(&shape, stream, (uint32_t)n_stream, starts) &&
                unpack_blocks(&shape, ps_unpack_meaning_of(dtype, rules ? rules->limit : 0), rules ? rules->looks : NULL, stream, starts,
                              planes, elements, sum);
    free(starts);
    free(planes);
    return good;
}
