/* Round trips of every element size and length, the layout of the stream, and damage of every kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lz4.h>

#include "hdf5/bit_shuffle.h"
#include "hdf5/bslz4.h"
#include "hdf5/lz4_block.h"

static uint64_t state = 1;
static uint32_t next_random(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

/* Poisson-like small values in the lowest byte, now and then a full element */
static void fill_counts(uint8_t *bytes, size_t n_elements, size_t element_bytes) {
    memset(bytes, 0, n_elements * element_bytes);
    for (size_t i = 0; i < n_elements; i++) {
        bytes[i * element_bytes] = (uint8_t)(next_random() % 7);
        if (next_random() % 50 == 0)
            for (size_t b = 0; b < element_bytes; b++) bytes[i * element_bytes + b] = (uint8_t)next_random();
    }
}

static void test_shuffle_matches_definition(void **unused) {
    (void)unused;
    static const size_t sizes[] = {1, 2, 4, 8};
    for (size_t s = 0; s < 4; s++)
        for (size_t n = 8; n <= 1400; n += n < 64 ? 8 : 168) {
            size_t e = sizes[s], columns = n / 8;
            uint8_t *elements = malloc(n * e), *rows = malloc(n * e), *back = malloc(n * e);
            for (size_t i = 0; i < n * e; i++) elements[i] = (uint8_t)next_random();
            ps_bit_shuffle(elements, n, e, rows);
            for (size_t i = 0; i < n; i++)
                for (size_t bit = 0; bit < 8 * e; bit++)
                    assert_int_equal(rows[bit * columns + (i >> 3)] >> (i & 7) & 1, elements[i * e + bit / 8] >> (bit % 8) & 1);
            ps_bit_unshuffle(rows, n, e, back);
            assert_memory_equal(back, elements, n * e);
            free(elements), free(rows), free(back);
        }
}

static void test_round_trip(void **unused) {
    (void)unused;
    static const size_t sizes[] = {1, 2, 4, 8};
    static const int64_t lengths[] = {0, 1, 7, 8, 9, 15, 255, 1520, 4095, 4096, 4097, 8200, 36864, 100003};
    for (size_t s = 0; s < 4; s++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            size_t e = sizes[s], n = (size_t)lengths[k], bound = ps_bslz4_bound(lengths[k], e), used = 0;
            uint8_t *elements = malloc(n * e + 1), *stream = malloc(bound), *back = malloc(n * e + 1);
            fill_counts(elements, n, e);
            assert_int_equal(ps_bslz4_encode(elements, lengths[k], e, stream, bound, &used, NULL), PS_OK);
            assert_true(used <= bound);
            ps_error error = {0};
            assert_int_equal(ps_bslz4_decode(stream, used, lengths[k], e, back, &error), PS_OK);
            assert_memory_equal(back, elements, n * e);
            free(elements), free(stream), free(back);
        }
}

/* 20 elements: a block of 16, then 4 as they are. */
static void test_header_layout(void **unused) {
    (void)unused;
    uint16_t counts[20];
    uint8_t stream[20000];
    size_t used = 0;
    for (int i = 0; i < 20; i++) counts[i] = (uint16_t)(i * i);
    assert_int_equal(ps_bslz4_encode(counts, 20, 2, stream, sizeof stream, &used, NULL), PS_OK);
    static const uint8_t header[] = {0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 32, 0};
    assert_memory_equal(stream, header, sizeof header);
    assert_memory_equal(stream + used - 8, counts + 16, 8);
}

static void expect_damage(const uint8_t *stream, size_t bytes, int64_t n, const char *text) {
    uint16_t *back = malloc((size_t)n * 2);
    uint8_t *copy = malloc(bytes ? bytes : 1); /* exactly as long as it says, for the sanitizer */
    memcpy(copy, stream, bytes);
    ps_error error = {0};
    assert_int_equal(ps_bslz4_decode(copy, bytes, n, 2, back, &error), PS_E_INPUT);
    if (!strstr(error.text, text)) fail_msg("'%s' does not say '%s'", error.text, text);
    free(back), free(copy);
}

static void test_damage_is_named(void **unused) {
    (void)unused;
    enum { N = 9003 };
    uint16_t counts[N];
    uint8_t *stream = malloc(ps_bslz4_bound(N, 2)), *bad = malloc(ps_bslz4_bound(N, 2));
    size_t used = 0;
    fill_counts((uint8_t *)counts, N, 2);
    assert_int_equal(ps_bslz4_encode(counts, N, 2, stream, ps_bslz4_bound(N, 2), &used, NULL), PS_OK);
    expect_damage(stream, 5, N, "byte 0: the stream has 5 bytes");
    expect_damage(stream, used, N + 1, "byte 0: the header says 18006 bytes unpacked, expected 18008");
    expect_damage(stream, 14, N, "byte 12: the stream ends");
    expect_damage(stream, used - 1, N, "the stream ends, expected 6 more bytes");
    memcpy(bad, stream, used);
    memset(bad + 8, 0, 4);
    expect_damage(bad, used, N, "byte 8: the header says blocks of 0 bytes");
    bad[11] = 24;
    expect_damage(bad, used, N, "byte 8: the header says blocks of 24 bytes");
    memcpy(bad, stream, used);
    bad[12] = 0x7f;
    expect_damage(bad, used, N, "byte 12: a block says it has");
    memcpy(bad, stream, used);
    memset(bad + 16, 0xff, 40);
    expect_damage(bad, used, N, "byte 16: damaged LZ4 block");
    free(stream), free(bad);
}

static void test_any_damage_is_survived(void **unused) {
    (void)unused;
    enum { N = 3000 };
    uint16_t counts[N];
    uint8_t *stream = malloc(ps_bslz4_bound(N, 2));
    size_t used = 0;
    for (int trial = 0; trial < 3000; trial++) {
        fill_counts((uint8_t *)counts, N, 2);
        assert_int_equal(ps_bslz4_encode(counts, N, 2, stream, ps_bslz4_bound(N, 2), &used, NULL), PS_OK);
        for (int flips = 0; flips < 3; flips++) stream[next_random() % used] = (uint8_t)next_random();
        size_t cut = trial % 2 ? used : next_random() % used;
        uint8_t *copy = malloc(cut ? cut : 1);
        memcpy(copy, stream, cut);
        ps_error error = {0};
        ps_code code = ps_bslz4_decode(copy, cut, N, 2, counts, &error);
        assert_true(code == PS_OK || code == PS_E_INPUT);
        free(copy);
    }
    free(stream);
}

/* Bytes with runs and repeats of many periods. */
static void fill_runs(uint8_t *bytes, size_t n) {
    for (size_t at = 0; at < n;) {
        size_t period = 1 + next_random() % 70, length = next_random() % 300;
        for (size_t i = 0; i < length && at < n; i++, at++)
            bytes[at] = at >= period && next_random() % 40 ? bytes[at - period] : (uint8_t)next_random();
    }
}

/* The library packs; what is unpacked here must be what was packed, and nothing beyond the slack may change. */
static void test_lz4_blocks(void **unused) {
    (void)unused;
    for (size_t n = 0; n < 3000; n += n < 100 ? 1 : 97)
        for (size_t slack = 0; slack <= PS_LZ4_SLACK; slack += PS_LZ4_SLACK) {
            uint8_t *bytes = malloc(n + 1), *packed = malloc((size_t)LZ4_COMPRESSBOUND(3000)), *back = malloc(n + slack + 1);
            fill_runs(bytes, n);
            int length = LZ4_compress_default((char *)bytes, (char *)packed, (int)n, LZ4_COMPRESSBOUND(3000));
            uint8_t *exact = malloc((size_t)length);
            memcpy(exact, packed, (size_t)length);
            assert_true(ps_lz4_unpack(exact, (size_t)length, back, n, slack));
            assert_memory_equal(back, bytes, n);
            assert_false(ps_lz4_unpack(exact, (size_t)length, back, n + 1, 0));
            if (n > 0) assert_false(ps_lz4_unpack(exact, (size_t)length, back, n - 1, slack));
            for (int cut = 0; cut < length; cut++) assert_false(ps_lz4_unpack(exact, (size_t)cut, back, n, slack));
            free(bytes), free(packed), free(back), free(exact);
        }
}

/* Damaged blocks that both this and the library accept give the same bytes. (The library lets an offset of 0 pass.) */
static void test_lz4_damage(void **unused) {
    (void)unused;
    enum { N = 600 };
    uint8_t bytes[N], packed[LZ4_COMPRESSBOUND(N)], mine[N + PS_LZ4_SLACK], theirs[N];
    for (int trial = 0; trial < 20000; trial++) {
        fill_runs(bytes, N);
        int length = LZ4_compress_default((char *)bytes, (char *)packed, N, sizeof packed);
        packed[next_random() % (size_t)length] = (uint8_t)next_random();
        uint8_t *exact = malloc((size_t)length);
        memcpy(exact, packed, (size_t)length);
        bool good = ps_lz4_unpack(exact, (size_t)length, mine, N, trial % 2 ? PS_LZ4_SLACK : 0);
        int found = LZ4_decompress_safe((char *)exact, (char *)theirs, length, N);
        if (good && found == N) assert_memory_equal(mine, theirs, N);
        free(exact);
    }
}

static void test_lz4_stream(void **unused) {
    (void)unused;
    /* two blocks of 4 bytes stored as they are, a last one of 2 */
    static const uint8_t stream[] = {0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 4, 0, 0, 0, 4, 1,
                                     2, 3, 4, 0, 0, 0, 4, 5,  6, 7, 8, 0, 0, 0, 2, 9, 10};
    uint8_t back[10];
    ps_error error = {0};
    assert_int_equal(ps_lz4_decode(stream, sizeof stream, 10, back, &error), PS_OK);
    for (int i = 0; i < 10; i++) assert_int_equal(back[i], i + 1);
    for (size_t cut = 0; cut < sizeof stream; cut++) assert_int_equal(ps_lz4_decode(stream, cut, 10, back, NULL), PS_E_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shuffle_matches_definition),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_header_layout),
        cmocka_unit_test(test_damage_is_named),
        cmocka_unit_test(test_any_damage_is_survived),
        cmocka_unit_test(test_lz4_blocks),
        cmocka_unit_test(test_lz4_damage),
        cmocka_unit_test(test_lz4_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
