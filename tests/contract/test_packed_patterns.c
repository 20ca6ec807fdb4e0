/* Packed patterns give the bits that plain counts give, on every backend: every packing, element type, block size and order of puts; counts
 * that are none; limits and tallies; damaged patterns are told and leave the others alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lz4.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/compare.h"
#include "contract/problem.h"
#include "core/byte_order.h"
#include "hdf5/bit_shuffle.h"

static uint32_t state = 1;
static uint32_t next_random(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void put_big_endian(uint8_t *bytes, int n, uint64_t value) {
    for (int i = 0; i < n; i++) bytes[i] = (uint8_t)(value >> 8 * (n - 1 - i));
}

/* --- packing --- */

/* How patterns are packed; block: elements (bitshuffle-LZ4: a multiple of 8) or bytes (LZ4). */
typedef struct {
    ps_packing packing;
    size_t block;
    bool big_endian;
} way;

static const way ways[] = {{PS_PACKED_BSLZ4, 8, false},    {PS_PACKED_BSLZ4, 24, false},    {PS_PACKED_BSLZ4, 104, false},
                           {PS_PACKED_BSLZ4, 1000, false}, {PS_PACKED_BSLZ4, 4096, false},  {PS_PACKED_BSLZ4, 100000, false},
                           {PS_PACKED_LZ4, 100, false},    {PS_PACKED_LZ4, 1 << 20, false}, {PS_PACKED_PLAIN, 0, false},
                           {PS_PACKED_BSLZ4, 24, true},    {PS_PACKED_BSLZ4, 4096, true},   {PS_PACKED_LZ4, 100, true},
                           {PS_PACKED_PLAIN, 0, true}};
enum { N_WAYS = sizeof ways / sizeof *ways };

static size_t pack_block(const uint8_t *bytes, size_t n, bool may_store, uint8_t *to) {
    int used = LZ4_compress_default((const char *)bytes, (char *)to + 4, (int)n, may_store ? (int)n - 1 : LZ4_compressBound((int)n));
    if (used <= 0) memcpy(to + 4, bytes, n), used = (int)n;
    put_big_endian(to, 4, (uint64_t)used);
    return 4 + (size_t)used;
}

/* Returns the bytes written to stream. */
static size_t pack(way how, const uint8_t *elements, size_t n, size_t element_bytes, uint8_t *stream) {
    size_t all = n * element_bytes, at = 12;
    if (how.packing == PS_PACKED_PLAIN) return memcpy(stream, elements, all), all;
    bool planes = how.packing == PS_PACKED_BSLZ4;
    size_t block = planes ? how.block * element_bytes : how.block, rest = planes ? n % 8 * element_bytes : 0;
    uint8_t *rows = malloc(all + 1);
    put_big_endian(stream, 8, all);
    put_big_endian(stream + 8, 4, block);
    for (size_t done = 0, some; done < all - rest; done += some) {
        some = all - rest - done < block ? all - rest - done : block;
        if (planes) ps_bit_shuffle(elements + done, some / element_bytes, element_bytes, rows);
        at += pack_block(planes ? rows : elements + done, some, !planes, stream + at);
    }
    memcpy(stream + at, elements + all - rest, rest);
    free(rows);
    return at + rest;
}

/* Patterns of one recording. */
typedef struct {
    size_t element_bytes, pattern_bytes;
    int64_t n_positions;
    uint8_t *counts; /* [n_positions, pattern_bytes] */
    uint8_t *bytes;  /* all streams, with gaps between them */
    size_t n_bytes;
    ps_packed_pattern *patterns; /* [n_positions] */
} recording;

static recording make_recording(const problem *p, ps_dtype dtype, way how) {
    recording r = {.element_bytes = ps_dtype_bytes(dtype), .n_positions = p->n_positions};
    size_t n = (size_t)p->n_pixels, values = (size_t)p->n_positions * n;
    r.pattern_bytes = n * r.element_bytes;
    r.counts = malloc(values * r.element_bytes);
    for (size_t i = 0; i < values; i++) {
        float value = p->counts[i];
        uint32_t bits = p->counts[i];
        if (dtype == PS_F32) memcpy(&bits, &value, sizeof bits);
        if (dtype == PS_U16 && i % 5 == 0) bits *= 200; /* high planes too */
        if (dtype == PS_I32 && i % 7 == 0) bits = (uint32_t) - (int32_t)bits;
        memcpy(r.counts + i * r.element_bytes, &bits, r.element_bytes);
    }
    r.bytes = malloc((size_t)p->n_positions * (3 * r.pattern_bytes + 24 + n));
    r.patterns = malloc((size_t)p->n_positions * sizeof *r.patterns);
    for (int64_t i = 0; i < p->n_positions; i++) {
        r.n_bytes += next_random() % 7; /* streams begin anywhere */
        uint8_t *elements = r.counts + (size_t)i * r.pattern_bytes;
        if (how.big_endian) ps_swap_bytes(elements, n, r.element_bytes);
        size_t used = pack(how, elements, n, r.element_bytes, r.bytes + r.n_bytes);
        if (how.big_endian) ps_swap_bytes(elements, n, r.element_bytes);
        r.patterns[i] = (ps_packed_pattern){(uint32_t)r.n_bytes, (uint32_t)used};
        r.n_bytes += used;
    }
    return r;
}

static void free_recording(recording *r) {
    free(r->counts);
    free(r->bytes);
    free(r->patterns);
}

static void put(ps_frame *frame, const recording *r, way how, int64_t first, int64_t n) {
    ps_packed packed = {how.packing, first, n, r->bytes, r->n_bytes, r->patterns + first};
    REQUIRE_OK(ps_frame_unpack_put(frame, &packed, &error));
}

/* Through the backend's own memory where it has some. */
static void put_through_room(ps_frame *frame, const recording *r, way how, int64_t first, int64_t n) {
    uint8_t *room;
    size_t bytes;
    REQUIRE_OK(ps_frame_unpack_room(frame, &room, &bytes, &error));
    if (!room) {
        put(frame, r, how, first, n);
        return;
    }
    for (int64_t done = 0, some; done < n; done += some) {
        size_t used = 0;
        ps_packed_pattern *patterns = malloc((size_t)n * sizeof *patterns);
        if (done > 0) REQUIRE_OK(ps_frame_unpack_room(frame, &room, &bytes, &error));
        for (some = 0; done + some < n && used + r->patterns[first + done + some].bytes <= bytes; some++) {
            ps_packed_pattern from = r->patterns[first + done + some];
            memcpy(room + used, r->bytes + from.offset, from.bytes);
            patterns[some] = (ps_packed_pattern){(uint32_t)used, from.bytes};
            used += from.bytes;
        }
        assert_true(some > 0);
        ps_packed packed = {how.packing, first + done, some, room, used, patterns};
        REQUIRE_OK(ps_frame_unpack_put(frame, &packed, &error));
        free(patterns);
    }
}

/* --- comparing --- */

/* Means, marks and spectra of two frames, to the last bit. */
static void require_same_counts(const trial *t, ps_frame *found, ps_frame *expected, const char *what) {
    size_t active = (size_t)t->p.plan.desc.n_active;
    double *values[2] = {malloc(3 * active * sizeof(double)), malloc(3 * active * sizeof(double))};
    int64_t *marks[2] = {malloc(active * sizeof(int64_t)), malloc(active * sizeof(int64_t))};
    ps_frame *frames[2] = {found, expected};
    for (int64_t frequency = 0; frequency < t->p.plan.desc.n_frequencies; frequency += t->p.plan.desc.n_frequencies / 2 + 1) {
        for (int i = 0; i < 2; i++) {
            REQUIRE_OK(ps_frame_mean_counts(frames[i], values[i], marks[i], &error));
            REQUIRE_OK(ps_frame_get_spectrum(frames[i], frequency, 3.0, values[i] + active, &error));
        }
        if (memcmp(values[0], values[1], 3 * active * sizeof(double)) != 0 || memcmp(marks[0], marks[1], active * sizeof(int64_t)) != 0)
            fail_msg("%s: %s: other counts than from plain patterns, frequency %lld", t->b->ops->name, what, (long long)frequency);
    }
    for (int i = 0; i < 2; i++) free(values[i]), free(marks[i]);
}

static void end_without_refusal(const trial *t, ps_frame *frame, ps_unpack_tally *tally) {
    uint8_t *refused = malloc((size_t)t->p.n_positions);
    int64_t n_refused = -1;
    REQUIRE_OK(ps_frame_unpack_end(frame, refused, &n_refused, tally, &error));
    assert_int_equal(n_refused, 0);
    free(refused);
}

static void try_way(const trial *t, ps_dtype dtype, way how) {
    char what[96];
    snprintf(what, sizeof what, "%s, packing %d, blocks of %zu%s", ps_dtype_name(dtype), (int)how.packing, how.block,
             how.big_endian ? ", big endian" : "");
    recording r = make_recording(&t->p, dtype, how);
    ps_frame *packed, *plain = problem_frame(&t->run, dtype, r.counts);
    REQUIRE_OK(ps_frame_create(t->run.system, dtype, &packed, &error));
    REQUIRE_OK(ps_frame_unpack_begin(packed, how.big_endian ? &(ps_unpack_rules){.big_endian = true} : NULL, &error));
    int64_t n = t->p.n_positions, third = n / 3;
    put(packed, &r, how, n - third, third);
    put_through_room(packed, &r, how, 0, third);
    put(packed, &r, how, third, n - 2 * third);
    end_without_refusal(t, packed, NULL);
    require_same_counts(t, packed, plain, what);
    ps_frame_destroy(packed);
    ps_frame_destroy(plain);
    free_recording(&r);
}

/* One of each: on backends that leave unpacking to the host, and with PS_CONTRACT_FEW=1, for tools under which everything is slow. */
static bool are_few(void **test_state) {
    const contract_backend *b = *test_state;
    return !b->ops->unpack || getenv("PS_CONTRACT_FEW");
}

static void counts_are_those_of_plain_patterns(void **test_state) {
    static const ps_dtype types[] = {PS_U8, PS_U16, PS_U32, PS_I8, PS_I16, PS_I32, PS_F32};
    static const int sizes[] = {PROBLEM_USUAL, PROBLEM_MANY_PIXELS, 5};
    for (size_t s = are_few(test_state) ? 2 : 0; s < sizeof sizes / sizeof *sizes; s++) {
        trial t;
        trial_begin(test_state, &problem_sizes[sizes[s]], 30, &t);
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            for (int w = 0; w < N_WAYS; w++) try_way(&t, types[i], ways[w]);
        trial_end(&t);
    }
}

/* What a reduction and a solution answer, through a frame that is used again and again. */
static void answers_are_those_of_plain_patterns(void **test_state) {
    trial t;
    problem_answer expected;
    way how = {PS_PACKED_BSLZ4, 64, false};
    trial_begin(test_state, &problem_sizes[PROBLEM_MANY_PIXELS], 31, &t);
    recording r = make_recording(&t.p, PS_U8, how);
    ps_frame *plain = problem_frame(&t.run, PS_U8, r.counts);
    problem_reduce(&t.run, plain);
    problem_ask(&t.run, plain, &expected);
    for (int again = 0; again < 3; again++) {
        ps_frame *frame;
        REQUIRE_OK(ps_frame_create(t.run.system, PS_U8, &frame, &error));
        REQUIRE_OK(ps_frame_unpack_begin(frame, NULL, &error));
        for (int64_t i = t.p.n_positions - 1; i >= 0; i--) put(frame, &r, how, i, 1);
        end_without_refusal(&t, frame, NULL);
        problem_reduce(&t.run, frame);
        trial_require(&t, frame, "packed", &expected);
        ps_frame_destroy(frame);
    }
    problem_answer_free(&expected);
    ps_frame_destroy(plain);
    free_recording(&r);
    trial_end(&t);
}

/* --- limits, marks, tallies --- */

static ps_unpack_tally tally_of(const recording *r, int64_t position, ps_dtype dtype, const uint8_t *looks, uint32_t limit) {
    ps_unpack_tally tally = {{0}, {0}, 0};
    uint32_t invalid = ps_dtype_invalid_value(dtype);
    for (size_t i = 0; i < r->pattern_bytes / r->element_bytes; i++) {
        uint32_t value = 0;
        memcpy(&value, r->counts + (size_t)position * r->pattern_bytes + i * r->element_bytes, r->element_bytes);
        bool limited = limit && value >= limit && value != invalid;
        for (int which = 0; which < 2; which++) {
            tally.marked[which] += (looks[i] >> which & 1) && (limited || value == invalid);
            tally.lit[which] += (looks[i] >> which & 1) && !limited && value != invalid && value != 0;
        }
        tally.n_limited += limited;
    }
    return tally;
}

static void try_rules(const trial *t, ps_dtype dtype, way how, uint32_t limit) {
    size_t n = (size_t)t->p.n_pixels, positions = (size_t)t->p.n_positions;
    recording r = make_recording(&t->p, dtype, how), limited;
    uint8_t *looks = malloc(n);
    ps_unpack_tally *tally = malloc(positions * sizeof *tally);
    for (size_t i = 0; i < n; i++) looks[i] = (uint8_t)(i % 11 == 0 ? 0 : i % 3 == 0 ? 3 : 2);
    for (size_t i = 0; i < positions * n; i += 1 + next_random() % 20)
        memset(r.counts + i * r.element_bytes, next_random() % 3 ? 0xff : 0, r.element_bytes);
    limited = r;
    limited.n_bytes = 0;
    for (size_t i = 0; i < positions; i++) {
        size_t used = pack(how, r.counts + i * r.pattern_bytes, n, r.element_bytes, r.bytes + limited.n_bytes);
        r.patterns[i] = (ps_packed_pattern){(uint32_t)limited.n_bytes, (uint32_t)used};
        limited.n_bytes += used;
    }
    r.n_bytes = limited.n_bytes;
    ps_frame *frame, *plain;
    REQUIRE_OK(ps_frame_create(t->run.system, dtype, &frame, &error));
    REQUIRE_OK(ps_frame_unpack_begin(frame, &(ps_unpack_rules){.limit = limit, .looks = looks}, &error));
    put_through_room(frame, &r, how, 0, t->p.n_positions);
    end_without_refusal(t, frame, tally);
    for (size_t i = 0; i < positions; i++) {
        ps_unpack_tally expected = tally_of(&r, (int64_t)i, dtype, looks, limit);
        if (memcmp(&expected, &tally[i], sizeof expected) != 0)
            fail_msg("%s: pattern %zu: lit %u %u, marked %u %u, limited %u, expected %u %u, %u %u, %u", t->b->ops->name, i, tally[i].lit[0],
                     tally[i].lit[1], tally[i].marked[0], tally[i].marked[1], tally[i].n_limited, expected.lit[0], expected.lit[1],
                     expected.marked[0], expected.marked[1], expected.n_limited);
    }
    for (size_t i = 0; limit && i < positions * n; i++) {
        uint32_t value = 0;
        memcpy(&value, r.counts + i * r.element_bytes, r.element_bytes);
        if (value >= limit) memset(r.counts + i * r.element_bytes, 0xff, r.element_bytes);
    }
    plain = problem_frame(&t->run, dtype, r.counts);
    require_same_counts(t, frame, plain, "limits");
    ps_frame_destroy(frame);
    ps_frame_destroy(plain);
    free(looks);
    free(tally);
    free_recording(&r);
}

static void marks_limits_and_tallies(void **test_state) {
    static const ps_dtype types[] = {PS_U16, PS_U8, PS_U32};
    trial t;
    trial_begin(test_state, &problem_sizes[PROBLEM_MANY_PIXELS], 32, &t);
    for (int i = 0; i < (are_few(test_state) ? 1 : 3); i++)
        for (int w = 0; w < N_WAYS; w++) {
            try_rules(&t, types[i], ways[w], 0);
            try_rules(&t, types[i], ways[w], 101);
        }
    trial_end(&t);
}

/* --- damage --- */

/* Two patterns are damaged: they and no others are refused, and plain counts take their place. */
static void damaged_patterns_are_refused(void **test_state) {
    trial t;
    trial_begin(test_state, &problem_sizes[PROBLEM_MANY_PIXELS], 33, &t);
    for (int w = 0; w < N_WAYS; w++) {
        way how = ways[w];
        recording r = make_recording(&t.p, PS_U16, how);
        ps_frame *frame, *plain = problem_frame(&t.run, PS_U16, r.counts);
        uint8_t refused[64];
        int64_t n_refused = -1;
        assert_true(t.p.n_positions <= 64);
        r.patterns[3].bytes -= 2; /* ends early */
        if (how.packing != PS_PACKED_PLAIN)
            memset(r.bytes + r.patterns[7].offset + 12, 0x7f, 4); /* a length that leads out */
        else
            r.patterns[7].bytes++;
        REQUIRE_OK(ps_frame_create(t.run.system, PS_U16, &frame, &error));
        REQUIRE_OK(ps_frame_unpack_begin(frame, &(ps_unpack_rules){.big_endian = how.big_endian}, &error));
        put(frame, &r, how, 0, t.p.n_positions);
        REQUIRE_OK(ps_frame_unpack_end(frame, refused, &n_refused, NULL, &error));
        for (int64_t i = 0; i < t.p.n_positions; i++) assert_int_equal(refused[i], i == 3 || i == 7);
        assert_int_equal(n_refused, 2);
        ps_error e = {0};
        problem_require_refused(ps_frame_mean_counts(frame, NULL, NULL, &e), &e, PS_E_ARGUMENT, "positions uploaded");
        REQUIRE_OK(ps_frame_upload(frame, 3, 1, r.counts + 3 * r.pattern_bytes, &error));
        REQUIRE_OK(ps_frame_upload(frame, 7, 1, r.counts + 7 * r.pattern_bytes, &error));
        require_same_counts(&t, frame, plain, "damage");
        ps_frame_destroy(frame);
        ps_frame_destroy(plain);
        free_recording(&r);
    }
    trial_end(&t);
}

/* Bytes changed anywhere: what the plain decoder takes is taken, with the same counts, and nothing else. */
static void any_damage_is_judged_as_on_the_host(void **test_state) {
    trial t;
    trial_begin(test_state, &problem_sizes[PROBLEM_MANY_PIXELS], 34, &t);
    uint8_t *looks = calloc((size_t)t.p.n_pixels, 1); /* a tally, so that every block is unpacked */
    for (int round = 0; round < (are_few(test_state) ? 8 : 40); round++) {
        way how = ways[round % 8];
        recording r = make_recording(&t.p, PS_U16, how);
        ps_frame *frame, *plain;
        uint8_t refused[64];
        int64_t n_refused = -1;
        for (int64_t i = 0; i < t.p.n_positions; i++)
            for (int flips = next_random() % 3; flips > 0; flips--)
                r.bytes[r.patterns[i].offset + next_random() % r.patterns[i].bytes] = (uint8_t)next_random();
        REQUIRE_OK(ps_frame_create(t.run.system, PS_U16, &frame, &error));
        REQUIRE_OK(ps_frame_unpack_begin(frame, &(ps_unpack_rules){.looks = looks}, &error));
        put(frame, &r, how, 0, t.p.n_positions);
        REQUIRE_OK(ps_frame_unpack_end(frame, refused, &n_refused, NULL, &error));
        for (int64_t i = 0; i < t.p.n_positions; i++) {
            uint8_t *counts = r.counts + (size_t)i * r.pattern_bytes, *back = malloc(r.pattern_bytes);
            bool good =
                ps_unpack_pattern(how.packing, PS_U16, t.p.n_pixels, NULL, r.bytes + r.patterns[i].offset, r.patterns[i].bytes, back, NULL);
            if (refused[i]) REQUIRE_OK(ps_frame_upload(frame, i, 1, counts, &error));
            if (!refused[i]) memcpy(counts, back, r.pattern_bytes);
            assert_true(good || refused[i]);
            free(back);
        }
        plain = problem_frame(&t.run, PS_U16, r.counts);
        require_same_counts(&t, frame, plain, "any damage");
        ps_frame_destroy(frame);
        ps_frame_destroy(plain);
        free_recording(&r);
    }
    free(looks);
    trial_end(&t);
}

/* --- order and arguments --- */

static void order_and_arguments(void **test_state) {
    trial t;
    way how = {PS_PACKED_BSLZ4, 64, false};
    ps_error e = {0};
    uint8_t refused[128], *room;
    size_t bytes;
    int64_t n;
    ps_frame *frame;
    trial_begin(test_state, &problem_sizes[PROBLEM_USUAL], 35, &t);
    recording r = make_recording(&t.p, PS_U16, how);
    ps_packed all = {how.packing, 0, t.p.n_positions, r.bytes, r.n_bytes, r.patterns}, bad = all;
    REQUIRE_OK(ps_frame_create(t.run.system, PS_F64, &frame, &error));
    problem_require_refused(ps_frame_unpack_begin(frame, NULL, &e), &e, PS_E_ARGUMENT, "float64 are not unpacked");
    ps_frame_destroy(frame);
    REQUIRE_OK(ps_frame_create(t.run.system, PS_U16, &frame, &error));
    problem_require_refused(ps_frame_unpack_put(frame, &all, &e), &e, PS_E_ARGUMENT, "before ps_frame_unpack_begin");
    problem_require_refused(ps_frame_unpack_room(frame, &room, &bytes, &e), &e, PS_E_ARGUMENT, "before ps_frame_unpack_begin");
    problem_require_refused(ps_frame_unpack_end(frame, refused, &n, NULL, &e), &e, PS_E_ARGUMENT, "before ps_frame_unpack_begin");
    problem_require_refused(ps_frame_unpack_begin(frame, &(ps_unpack_rules){.limit = 70000}, &e), &e, PS_E_ARGUMENT, "at most 65535");
    REQUIRE_OK(ps_frame_unpack_begin(frame, NULL, &error));
    problem_require_refused(ps_frame_unpack_begin(frame, NULL, &e), &e, PS_E_ARGUMENT, "began twice");
    problem_require_refused(ps_frame_upload(frame, 0, 1, r.counts, &e), &e, PS_E_ARGUMENT, "takes packed patterns");
    bad.n_bytes = 10;
    problem_require_refused(ps_frame_unpack_put(frame, &bad, &e), &e, PS_E_ARGUMENT, "packed pattern 0");
    bad = all;
    bad.packing = (ps_packing)9;
    problem_require_refused(ps_frame_unpack_put(frame, &bad, &e), &e, PS_E_ARGUMENT, "unknown packing 9");
    bad = all;
    bad.first_position = 1;
    problem_require_refused(ps_frame_unpack_put(frame, &bad, &e), &e, PS_E_ARGUMENT, "positions from 1 on uploaded");
    put(frame, &r, how, 0, t.p.n_positions);
    problem_require_refused(ps_frame_unpack_put(frame, &all, &e), &e, PS_E_ARGUMENT, "uploaded twice");
    problem_require_refused(ps_frame_mean_counts(frame, NULL, NULL, &e), &e, PS_E_ARGUMENT, "still being unpacked");
    REQUIRE_OK(ps_frame_unpack_room(frame, &room, &bytes, &error)); /* given back with the frame */
    ps_frame_destroy(frame);
    free_recording(&r);
    trial_end(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_plain_patterns),
        cmocka_unit_test(answers_are_those_of_plain_patterns),
        cmocka_unit_test(marks_limits_and_tallies),
        cmocka_unit_test(damaged_patterns_are_refused),
        cmocka_unit_test(any_damage_is_judged_as_on_the_host),
        cmocka_unit_test(order_and_arguments),
    };
    return contract_run(tests, sizeof tests / sizeof tests[0]) != 0;
}
