/* The host twin of the kernel that unpacks patterns: what any packer packs comes out as it was, in every element type, block size and
 * length; damage is found as the CPU's decoder finds it; tallies are those of input/odd_patterns.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The library takes the lanes upwards, what is called from here downwards: no lane may see what another wrote in the same step. */
#define PS_UNPACK_LANES(lane) for (uint32_t lane = 31; lane < 32; lane--)

#include <cmocka.h>
#include <lz4.h>
#include <lz4hc.h>

#include "core/byte_order.h"
#include "hdf5/bit_shuffle.h"
#include "hdf5/bslz4.h"
#include "hdf5/lz4_block.h"
#include "input/odd_patterns.h"
#include "kernels/unpack.h"

static uint64_t state = 1;
static uint32_t next_random(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

static void put_big_endian(uint8_t *bytes, int n, uint64_t value) {
    for (int i = 0; i < n; i++) bytes[i] = (uint8_t)(value >> 8 * (n - 1 - i));
}

/* Bytes with runs and repeats of many periods, so that every kind of match occurs. */
static void fill_runs(uint8_t *bytes, size_t n) {
    for (size_t at = 0; at < n;) {
        size_t period = 1 + next_random() % (next_random() % 4 ? 40 : 900), length = next_random() % 1500;
        for (size_t i = 0; i < length && at < n; i++, at++)
            bytes[at] = at >= period && next_random() % 200 ? bytes[at - period] : (uint8_t)next_random();
        for (size_t i = next_random() % 3 ? 0 : next_random() % 600; i > 0 && at < n; i--) bytes[at++] = (uint8_t)next_random();
    }
}

/* What detectors see: few counts, now and then many, or none. */
static void fill_counts(uint8_t *bytes, size_t n, size_t element_bytes, int kind) {
    memset(bytes, 0, n * element_bytes);
    for (size_t i = 0; i < n; i++) {
        bytes[i * element_bytes] = (uint8_t)(kind == 0 ? next_random() % 2 & next_random() : next_random() % 30);
        if (kind != 0 && next_random() % 60 == 0)
            memset(bytes + i * element_bytes, next_random() % 2 ? 0xff : (int)next_random() & 255, element_bytes);
    }
}

static void lz4_blocks_of_every_kind(void **unused) {
    (void)unused;
    for (int trial = 0; trial < 4000; trial++) {
        size_t n = 1 + next_random() % (trial % 10 == 0 ? 70000 : 3000), room = (size_t)LZ4_compressBound((int)n);
        uint8_t *bytes = malloc(n), *packed = malloc(room), *back = malloc(n);
        fill_runs(bytes, n);
        int used = trial % 2 ? LZ4_compress_HC((const char *)bytes, (char *)packed, (int)n, (int)room, 9)
                             : LZ4_compress_default((const char *)bytes, (char *)packed, (int)n, (int)room);
        assert_true(used > 0);
        uint8_t *exact = malloc((size_t)used); /* as long as it says, for the sanitizer */
        memcpy(exact, packed, (size_t)used);
        assert_true(ps_unpack_lz4(exact, (uint32_t)used, back, (uint32_t)n));
        assert_memory_equal(back, bytes, n);
        assert_false(ps_unpack_lz4(exact, (uint32_t)used - 1, back, (uint32_t)n));
        if (n > 1) assert_false(ps_unpack_lz4(exact, (uint32_t)used, back, (uint32_t)n - 1));
        free(bytes), free(packed), free(back), free(exact);
    }
}

static void damaged_lz4_blocks_are_judged_alike(void **unused) {
    (void)unused;
    int good = 0;
    for (int trial = 0; trial < 30000; trial++) {
        size_t n = 20 + next_random() % 900, room = (size_t)LZ4_compressBound((int)n);
        uint8_t *bytes = malloc(n), *packed = malloc(room), *back = calloc(n, 1), *expected = calloc(n, 1);
        fill_runs(bytes, n);
        size_t used = (size_t)LZ4_compress_default((const char *)bytes, (char *)packed, (int)n, (int)room);
        for (int flips = 0; flips < 2; flips++) packed[next_random() % used] = (uint8_t)next_random();
        uint8_t *exact = malloc(used);
        memcpy(exact, packed, used);
        bool is_good = ps_lz4_unpack(exact, used, expected, n, 0);
        assert_int_equal(ps_unpack_lz4(exact, (uint32_t)used, back, (uint32_t)n), is_good);
        if (is_good) assert_memory_equal(back, expected, n);
        good += is_good;
        free(bytes), free(packed), free(back), free(expected), free(exact);
    }
    assert_true(good > 100 && good < 29000); /* both were tried */
}

/* A stream of blocks of any size; returns its bytes. block_elements: a multiple of 8 */
static size_t pack(const uint8_t *elements, size_t n, size_t element_bytes, size_t block_elements, uint8_t *stream) {
    put_big_endian(stream, 8, n * element_bytes);
    put_big_endian(stream + 8, 4, block_elements * element_bytes);
    size_t at = 12;
    uint8_t *rows = malloc(n * element_bytes + 1);
    for (size_t left = n; left >= 8;) {
        size_t some = left < block_elements ? left - left % 8 : block_elements;
        ps_bit_shuffle(elements + (n - left) * element_bytes, some, element_bytes, rows);
        int used = LZ4_compress_default((const char *)rows, (char *)stream + at + 4, (int)(some * element_bytes),
                                        LZ4_compressBound((int)(some * element_bytes)));
        assert_true(used > 0);
        put_big_endian(stream + at, 4, (uint64_t)used);
        at += 4 + (size_t)used;
        left -= some;
    }
    memcpy(stream + at, elements + (n - n % 8) * element_bytes, n % 8 * element_bytes);
    free(rows);
    return at + n % 8 * element_bytes;
}

static const ps_dtype types[] = {PS_U8, PS_U16, PS_U32, PS_I8, PS_I16, PS_I32, PS_F32};
enum { N_TYPES = sizeof types / sizeof *types };

static void patterns_of_every_type_and_size(void **unused) {
    (void)unused;
    static const size_t lengths[] = {1, 7, 8, 9, 31, 33, 64, 1520, 4095, 4096, 4097, 8200, 36864, 37001};
    static const size_t blocks[] = {8, 24, 40, 512, 1000, 4096, 70000};
    for (size_t t = 0; t < N_TYPES; t++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
                size_t e = ps_dtype_bytes(types[t]), n = lengths[l], block = blocks[b];
                uint8_t *elements = malloc(n * e), *back = malloc(n * e), *stream = malloc(64 + n * e * 2 + (n / block + 2) * 64);
                fill_counts(elements, n, e, (int)(l + b) % 2);
                size_t used = pack(elements, n, e, block, stream);
                uint8_t *exact = malloc(used);
                memcpy(exact, stream, used);
                assert_true(ps_unpack_pattern(PS_PACKED_BSLZ4, types[t], (int64_t)n, NULL, exact, used, back, NULL));
                assert_memory_equal(back, elements, n * e);
                assert_false(ps_unpack_pattern(PS_PACKED_BSLZ4, types[t], (int64_t)n, NULL, exact, used - 1, back, NULL));
                free(elements), free(back), free(stream), free(exact);
            }
}

/* Filter 32004: a whole pattern in one block, or in several, of which some are stored as they are. */
static void lz4_streams_and_plain_ones(void **unused) {
    (void)unused;
    enum { N = 10000, BLOCK = 3000 };
    uint16_t counts[N], back[N];
    uint8_t stream[12 + 2 * N + 64];
    for (size_t block = BLOCK; block <= 1u << 30; block *= 64) {
        fill_counts((uint8_t *)counts, N, 2, 1);
        for (int i = 0; i < BLOCK / 2; i++) counts[i] = (uint16_t)next_random(); /* does not get shorter */
        put_big_endian(stream, 8, sizeof counts);
        put_big_endian(stream + 8, 4, block);
        size_t at = 12;
        for (size_t done = 0, n; done < sizeof counts; done += n) {
            n = sizeof counts - done < block ? sizeof counts - done : block;
            int used = LZ4_compress_default((const char *)counts + done, (char *)stream + at + 4, (int)n, (int)n - 1);
            if (used <= 0) memcpy(stream + at + 4, (const char *)counts + done, n), used = (int)n;
            put_big_endian(stream + at, 4, (uint64_t)used);
            at += 4 + (size_t)used;
        }
        assert_true(ps_unpack_pattern(PS_PACKED_LZ4, PS_U16, N, NULL, stream, at, back, NULL));
        assert_memory_equal(back, counts, sizeof counts);
        assert_false(ps_unpack_pattern(PS_PACKED_LZ4, PS_U16, N, NULL, stream, at - 1, back, NULL));
    }
    assert_true(ps_unpack_pattern(PS_PACKED_PLAIN, PS_U16, N, NULL, (uint8_t *)counts, sizeof counts, back, NULL));
    assert_memory_equal(back, counts, sizeof counts);
    assert_false(ps_unpack_pattern(PS_PACKED_PLAIN, PS_U16, N, NULL, (uint8_t *)counts, sizeof counts - 1, back, NULL));
}

static void damaged_streams_are_judged_alike(void **unused) {
    (void)unused;
    enum { N = 3001 };
    uint16_t counts[N], back[N], expected[N];
    uint8_t *stream = malloc(ps_bslz4_bound(N, 2));
    int good = 0;
    for (int trial = 0; trial < 20000; trial++) {
        size_t used = 0;
        fill_counts((uint8_t *)counts, N, 2, trial % 2);
        assert_int_equal(ps_bslz4_encode(counts, N, 2, stream, ps_bslz4_bound(N, 2), &used, NULL), PS_OK);
        for (int flips = 0; flips < 2; flips++) stream[next_random() % (trial % 3 ? used : 20)] = (uint8_t)next_random();
        size_t cut = trial % 4 ? used : next_random() % used;
        uint8_t *exact = malloc(cut + 1);
        memcpy(exact, stream, cut);
        bool is_good = ps_bslz4_decode(exact, cut, N, 2, expected, NULL) == PS_OK;
        assert_int_equal(ps_unpack_pattern(PS_PACKED_BSLZ4, PS_U16, N, NULL, exact, cut, back, NULL), is_good);
        if (is_good) assert_memory_equal(back, expected, sizeof back);
        good += is_good;
        free(exact);
    }
    assert_true(good > 100 && good < 19000);
    free(stream);
}

/* Tallies against a plain count, with pixels that are not looked at, of types with and without invalid-count values, and a limit. */
static void require_tallies(bool big_endian) {
    static const size_t lengths[] = {5, 8, 100, 4096, 9001};
    for (size_t t = 0; t < N_TYPES; t++)
        for (size_t l = 0; l < 5; l++)
            for (int packing = PS_PACKED_PLAIN; packing <= PS_PACKED_BSLZ4; packing++) {
                size_t e = ps_dtype_bytes(types[t]), n = lengths[l];
                uint8_t *elements = malloc(n * e), *back = malloc(n * e), *looks = malloc(n), *stream = malloc(64 + n * e * 2 + n * 8);
                bool is_unsigned = ps_dtype_invalid_value(types[t]) != 0;
                uint32_t limit = is_unsigned && l % 2 ? 20 : 0;
                int32_t bad[3] = {0, 2, 4};
                fill_counts(elements, n, e, 1);
                size_t used = n * e;
                if (big_endian) ps_swap_bytes(elements, n, e);
                if (packing == PS_PACKED_BSLZ4)
                    used = pack(elements, n, e, 1000, stream);
                else
                    memcpy(stream, elements, used);
                if (big_endian) ps_swap_bytes(elements, n, e);
                for (size_t i = 0; i < n; i++) looks[i] = i == 0 || i == 2 || i == 4 ? 0 : i % 3 ? 2 : 3;
                ps_unpack_tally tally;
                assert_true(ps_unpack_pattern((ps_packing)packing, types[t], (int64_t)n, &(ps_unpack_rules){limit, looks, big_endian},
                                              stream, used, back, &tally));
                uint32_t n_limited = 0, lit = 0;
                for (size_t i = 0; i < n; i++) {
                    uint32_t value = 0;
                    memcpy(&value, elements + i * e, e);
                    bool is = limit && value >= limit && value != ps_dtype_invalid_value(types[t]);
                    if (is) value = ps_dtype_invalid_value(types[t]);
                    memcpy(elements + i * e, &value, e);
                    n_limited += is;
                    lit += looks[i] & 1 && value && (!is_unsigned || value != ps_dtype_invalid_value(types[t])) && types[t] != PS_F32;
                }
                assert_memory_equal(back, elements, n * e);
                assert_int_equal(tally.n_limited, n_limited);
                ps_pattern_tally all; /* a pattern that is not good at first sight is tallied as a whole */
                ps_patterns_tally(types[t], elements, 1, (int64_t)n, bad, 3, &all);
                if (n <= 192) assert_true(tally.lit[1] == all.lit && tally.marked[1] == all.marked);
                if (types[t] != PS_F32) assert_int_equal(tally.lit[0], lit);
                free(elements), free(back), free(looks), free(stream);
            }
}

static void tallies_are_those_of_the_values(void **unused) {
    (void)unused;
    require_tallies(false);
    require_tallies(true);
}

/* What is chosen of the two sums of a packed pattern is what the counts' own tally says: bright, dark and marked ones, bad pixels. */
static void chosen_tallies_are_those_of_counts(void **unused) {
    (void)unused;
    static const size_t lengths[] = {100, 1536, 3001, 9001, 36864};
    for (size_t l = 0; l < 5; l++)
        for (int kind = 0; kind < 4; kind++) {
            size_t n = lengths[l];
            uint16_t *counts = calloc(n, sizeof *counts), *back = malloc(n * sizeof *counts);
            uint8_t *bad = calloc(n, 1), *looks = malloc(n);
            int32_t *list = malloc(n * sizeof *list);
            int64_t n_bad = 0;
            if (kind > 0) fill_counts((uint8_t *)counts, n, 2, kind > 1);
            if (kind == 3) memset(counts + n / 3, 0xff, n / 3 * sizeof *counts);
            for (size_t i = 0; i < n; i += 1 + next_random() % 90) {
                bad[i] = 1;
                list[n_bad++] = (int32_t)i;
            }
            ps_pattern_tally expected, found;
            ps_unpack_tally sums;
            ps_patterns_tally(PS_U16, counts, 1, (int64_t)n, list, n_bad, &expected);
            ps_patterns_looks((int64_t)n, bad, looks);
            assert_true(ps_unpack_pattern(PS_PACKED_PLAIN, PS_U16, (int64_t)n, &(ps_unpack_rules){.looks = looks}, (uint8_t *)counts,
                                          n * sizeof *counts, back, &sums));
            found = ps_patterns_choose(sums.lit, sums.marked, (int64_t)n);
            assert_int_equal(found.lit, expected.lit);
            assert_int_equal(found.marked, expected.marked);
            free(counts), free(back), free(bad), free(looks), free(list);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lz4_blocks_of_every_kind),           cmocka_unit_test(damaged_lz4_blocks_are_judged_alike),
        cmocka_unit_test(patterns_of_every_type_and_size),    cmocka_unit_test(lz4_streams_and_plain_ones),
        cmocka_unit_test(damaged_streams_are_judged_alike),   cmocka_unit_test(tallies_are_those_of_the_values),
        cmocka_unit_test(chosen_tallies_are_those_of_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
