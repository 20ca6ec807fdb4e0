/* Patterns that were not measured: which are called so, which are chance, and how they are listed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "input/odd_patterns.h"

enum { N_POSITIONS = 600, MOST_PIXELS = 3000 };

static ps_pattern_tally tally[N_POSITIONS];
static uint8_t kind[N_POSITIONS];

static void judge(int64_t n_pixels, int64_t n_empty, int64_t n_marked) {
    int64_t empty, marked;
    ps_error error = {0};
    if (ps_patterns_judge(tally, N_POSITIONS, n_pixels, kind, &empty, &marked, &error) != PS_OK) fail_msg("%s", error.text);
    if (empty != n_empty || marked != n_marked)
        fail_msg("%d empty and %d marked, expected %d and %d", (int)empty, (int)marked, (int)n_empty, (int)n_marked);
    for (int i = 0; i < N_POSITIONS; i++) {
        n_empty -= kind[i] == PS_PATTERN_EMPTY;
        n_marked -= kind[i] == PS_PATTERN_MARKED;
    }
    assert_int_equal(n_empty, 0);
    assert_int_equal(n_marked, 0);
}

static void fill(uint32_t lit, uint32_t marked) {
    for (int i = 0; i < N_POSITIONS; i++) tally[i] = (ps_pattern_tally){lit + (uint32_t)(i % 3), marked};
}

static void empty_ones_are_found(void **state) {
    (void)state;
    fill(1000, 30);
    judge(2000, 0, 0);
    tally[17].lit = 0;
    judge(2000, 1, 0);
    tally[18].lit = 9; /* a few hot pixels */
    tally[19].lit = 11;
    judge(2000, 2, 0);
    for (int i = 0; i < N_POSITIONS * 6 / 10; i++) tally[i].lit = 0;
    judge(2000, N_POSITIONS * 6 / 10, 0);
    for (int i = 0; i < N_POSITIONS; i++) tally[i].lit = 0; /* a recording without counts is odd as a whole */
    judge(2000, 0, 0);
}

static void chance_is_told_from_faults(void **state) {
    (void)state;
    fill(3, 0);
    for (int i = 0; i < N_POSITIONS; i += 25) tally[i].lit = 0; /* 4 %: what 3 counts a pattern give */
    judge(2000, 0, 0);
    for (int i = 500; i < N_POSITIONS; i++) tally[i].lit = 0;
    judge(2000, 100, 0);
    fill(9, 0);
    tally[44].lit = 0; /* exp(-10) of 600 */
    judge(2000, 0, 0);
    tally[45].lit = tally[46].lit = 0;
    judge(2000, 3, 0);
    fill(9, 0);
    for (int i = 0; i < N_POSITIONS; i += 5) tally[i].lit = 0; /* far more than chance gives */
    judge(2000, 120, 0);
    fill(30, 0);
    tally[44].lit = 0;
    judge(2000, 1, 0);
}

static void marked_ones_are_found(void **state) {
    (void)state;
    fill(1000, 500); /* gaps */
    tally[3] = (ps_pattern_tally){0, 2000};
    tally[4] = (ps_pattern_tally){700, 1200}; /* a module; less than half of what else holds counts */
    tally[5] = (ps_pattern_tally){100, 1300};
    judge(2000, 0, 2);
    assert_int_equal(kind[3], PS_PATTERN_MARKED);
    assert_int_equal(kind[5], PS_PATTERN_MARKED);
    for (int i = 0; i < N_POSITIONS / 2; i++) tally[i] = (ps_pattern_tally){0, 2000};
    judge(2000, 0, N_POSITIONS / 2);
    tally[N_POSITIONS - 1].lit = 0;
    judge(2000, 1, N_POSITIONS / 2);
    fill(0, 2000);
    for (int i = 0; i < N_POSITIONS; i++) tally[i].lit = 0;
    judge(2000, 0, 0);
}

/* Whatever the type: lit, zero, without a count; what is bad is not looked at. */
static void counts_are_tallied(void **state) {
    (void)state;
    static uint8_t u8[2 * MOST_PIXELS];
    static uint16_t u16[2 * MOST_PIXELS];
    static uint32_t u32[2 * MOST_PIXELS];
    static float f32[2 * MOST_PIXELS];
    static double f64[2 * MOST_PIXELS];
    const void *arrays[] = {u8, u16, u32, f32, f64};
    const ps_dtype types[] = {PS_U8, PS_U16, PS_U32, PS_F32, PS_F64};
    const int32_t bad[] = {0, 2, 777, 2221};
    const int64_t n_pixels = 2222;
    for (int i = 0; i < 2 * n_pixels; i++) { /* the first pattern of few lit pixels, the second of many */
        bool lit = i < n_pixels ? i % 97 == 2 : i % 2 == 0, marked = i < n_pixels && i % 10 == 7;
        u8[i] = marked ? UINT8_MAX : lit;
        u16[i] = marked ? UINT16_MAX : lit;
        u32[i] = marked ? UINT32_MAX : lit;
        f32[i] = marked ? (i % 20 == 7 ? NAN : INFINITY) : lit ? -0.5f : 0.0f;
        f64[i] = marked ? NAN : lit;
    }
    uint32_t n_lit = 0, n_marked = 0;
    for (int i = 0; i < n_pixels; i++) {
        bool is_bad = i == 0 || i == 2 || i == 777 || i == 2221;
        n_marked += i % 10 == 7 && !is_bad;
        n_lit += i % 97 == 2 && i % 10 != 7 && !is_bad;
    }
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        ps_patterns_tally(types[t], arrays[t], 2, n_pixels, bad, 4, tally);
        assert_int_equal(tally[0].lit, n_lit);
        assert_int_equal(tally[0].marked, n_marked);
        assert_true(tally[1].lit >= 64 && tally[1].lit <= n_pixels / 2 && tally[1].marked == 0);
    }
}

static void assert_list(int64_t columns, const char *expected) {
    char text[PS_ODD_TEXT];
    ps_patterns_list(kind, N_POSITIONS, PS_PATTERN_EMPTY, columns, text);
    assert_string_equal(text, expected);
}

static void positions_are_listed(void **state) {
    (void)state;
    memset(kind, 0, sizeof kind);
    assert_list(20, "");
    kind[0] = kind[21] = kind[22] = kind[599] = PS_PATTERN_EMPTY;
    kind[23] = PS_PATTERN_MARKED;
    assert_list(20, "0, 21-22, 599 (row.column 0.0, 1.1-1.2, 29.19)");
    assert_list(0, "0, 21-22, 599");
    for (int i = 0; i < N_POSITIONS; i += 2) kind[i] = PS_PATTERN_EMPTY;
    char text[PS_ODD_TEXT];
    ps_patterns_list(kind, N_POSITIONS, PS_PATTERN_EMPTY, 20, text);
    assert_true(strlen(text) < PS_ODD_TEXT - 1 && strstr(text, " and 2") && strstr(text, " ...)"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_ones_are_found), cmocka_unit_test(chance_is_told_from_faults), cmocka_unit_test(marked_ones_are_found),
        cmocka_unit_test(counts_are_tallied),   cmocka_unit_test(positions_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
