#include "input/odd_patterns.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const double least_lit = 0.01;      /* of the usual number of lit pixels */
static const double most_by_chance = 1e-3; /* empty runs expected in a recording that are still taken for a fault */
static const double most_excess = 10.0;    /* times, and plus, the expected number of empty patterns */
enum { USUAL_PART = 10 };                  /* one in ten patterns has no say in what is usual */

/* ---- tally -------------------------------------------------------------------------------------------------------------------- */

/* Most patterns show in an eighth of their pixels that they are good: in the first PROBE of every PERIOD. */
enum { PROBE = 192, PERIOD = 8 * PROBE, ENOUGH_LIT = 64, MOST_MARKED_PART = 4 };

/* A pattern of one value throughout is a fill value, no measurement; a few pixels may be alike by chance. */
enum { FEW_PIXELS = 64 };

static bool is_good(ps_pattern_tally some, int64_t n_pixels) {
    return some.lit >= ENOUGH_LIT && some.marked <= n_pixels / (8 * MOST_MARKED_PART);
}

void ps_patterns_looks(int64_t n_pixels, const uint8_t *bad, uint8_t *looks) {
    for (int64_t i = 0; i < n_pixels; i++) looks[i] = bad && bad[i] ? 0 : i % PERIOD < PROBE ? 3 : 2;
}

ps_pattern_tally ps_patterns_choose(const uint32_t lit[2], const uint32_t marked[2], int64_t n_pixels) {
    ps_pattern_tally some = {lit[0], marked[0]}, all = {lit[1], marked[1]};
    return is_good(some, n_pixels) ? some : all;
}

/* Counters as wide as the values keep the loop in vector registers; PROBE values cannot overflow them. */
#define DEFINE_TALLY(dtype, type, counter, is_marked)                                                                                \
    static void add_##dtype(const type *values, int64_t n, ps_pattern_tally *sum) {                                                  \
        counter zero = 0, marked = 0;                                                                                                \
        for (int64_t k = 0; k < n; k++) {                                                                                            \
            type value = values[k];                                                                                                  \
            zero = (counter)(zero + (value == 0));                                                                                   \
            marked = (counter)(marked + (is_marked));                                                                                \
        }                                                                                                                            \
        sum->marked += (uint32_t)marked;                                                                                             \
        sum->lit += (uint32_t)n - (uint32_t)zero - (uint32_t)marked;                                                                 \
    }                                                                                                                                \
    static ps_pattern_tally every_##dtype(const type *values, int64_t n_pixels, const int32_t *bad, int64_t n_bad, int64_t period) { \
        ps_pattern_tally sum = {0};                                                                                                  \
        for (int64_t from = 0; from < n_pixels; from += period)                                                                      \
            add_##dtype(values + from, n_pixels - from < PROBE ? n_pixels - from : PROBE, &sum);                                     \
        for (int64_t i = 0; i < n_bad; i++) {                                                                                        \
            type value = values[bad[i]];                                                                                             \
            bool is_counted = bad[i] % period < PROBE, no_count = is_marked;                                                         \
            sum.marked -= is_counted && no_count;                                                                                    \
            sum.lit -= is_counted && !no_count && value != 0;                                                                        \
        }                                                                                                                            \
        return sum;                                                                                                                  \
    }                                                                                                                                \
    static bool is_flat_##dtype(const type *values, int64_t n_pixels, const int32_t *bad, int64_t n_bad) {                           \
        int64_t first = 0, b = 0;                                                                                                    \
        while (b < n_bad && bad[b] == first) first++, b++;                                                                           \
        for (int64_t k = first + 1; k < n_pixels; k++) {                                                                             \
            bool is_bad = b < n_bad && bad[b] == k;                                                                                  \
            if (!is_bad && values[k] != values[first]) return false;                                                                 \
            b += is_bad;                                                                                                             \
        }                                                                                                                            \
        return n_pixels - n_bad >= FEW_PIXELS;                                                                                       \
    }                                                                                                                                \
    static ps_pattern_tally tally_##dtype(const type *values, int64_t n_pixels, const int32_t *bad, int64_t n_bad) {                 \
        ps_pattern_tally some = every_##dtype(values, n_pixels, bad, n_bad, PERIOD);                                                 \
        if (some.lit > 0 && is_flat_##dtype(values, n_pixels, bad, n_bad)) return (ps_pattern_tally){.marked = 0};                   \
        return is_good(some, n_pixels) ? some : every_##dtype(values, n_pixels, bad, n_bad, PROBE);                                  \
    }
DEFINE_TALLY(PS_U8, uint8_t, uint8_t, value == UINT8_MAX)
DEFINE_TALLY(PS_U16, uint16_t, uint16_t, value == UINT16_MAX)
DEFINE_TALLY(PS_U32, uint32_t, uint32_t, value == UINT32_MAX)
DEFINE_TALLY(PS_I8, int8_t, uint8_t, false)
DEFINE_TALLY(PS_I16, int16_t, uint16_t, false)
DEFINE_TALLY(PS_I32, int32_t, uint32_t, false)
DEFINE_TALLY(PS_F32, float, uint32_t, !(fabsf(value) <= FLT_MAX))
DEFINE_TALLY(PS_F64, double, uint64_t, !(fabs(value) <= DBL_MAX))
#undef DEFINE_TALLY

void ps_patterns_tally(ps_dtype dtype, const void *counts, int64_t n_positions, int64_t n_pixels, const int32_t *bad, int64_t n_bad,
                       ps_pattern_tally *tally) {
    switch (dtype) {
#define X(d, type, name)                                                                          \
    case d:                                                                                       \
        _Pragma("omp parallel for") for (int64_t p = 0; p < n_positions; p++) tally[p] =          \
            tally_##d((const type *)counts + (size_t)p * (size_t)n_pixels, n_pixels, bad, n_bad); \
        break;
        PS_DTYPES(X)
#undef X
    default: break;
    }
}

/* ---- judgement ---------------------------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The value that a part of `of` in USUAL_PART of the numbers lies below. */
static uint32_t quantile(uint32_t *numbers, int64_t n, int64_t of) {
    qsort(numbers, (size_t)n, sizeof *numbers, compare_numbers);
    return numbers[(n - 1) * of / USUAL_PART];
}

static int64_t find_marked(const ps_pattern_tally *tally, int64_t n, int64_t n_pixels, uint32_t *numbers, uint8_t *kind) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) numbers[i] = tally[i].marked;
    int64_t usual = quantile(numbers, n, 1);
    for (int64_t i = 0; i < n; i++) {
        bool is = usual < n_pixels && 2 * ((int64_t)tally[i].marked - usual) > n_pixels - usual;
        kind[i] = is ? PS_PATTERN_MARKED : PS_PATTERN_GOOD;
        found += is;
    }
    return found;
}

/* Mean of a Poisson number of which only the values above 0 were averaged. */
static double untruncated_mean(double mean) {
    double found = mean;
    for (int i = 0; i < 100 && mean > 1.0; i++) found = mean * (1.0 - exp(-found));
    return mean > 1.0 ? found : 0.0;
}

/* Patterns with hardly a lit pixel, and what they and the others say about chance. */
typedef struct {
    double limit;      /* fewer lit pixels than this make a dark pattern */
    double usual;      /* lit pixels of the others */
    int64_t n_dark, n; /* of those not marked */
} darkness;

static bool is_dark(const darkness *d, const ps_pattern_tally *tally) {
    return (double)tally->lit < d->limit;
}

static darkness measure_darkness(const ps_pattern_tally *tally, int64_t n, uint32_t *numbers, const uint8_t *kind) {
    darkness d = {.limit = 1.0};
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        if (kind[i] == PS_PATTERN_GOOD) numbers[d.n++] = tally[i].lit;
    if (d.n == 0) return d;
    d.limit = fmax(1.0, least_lit * quantile(numbers, d.n, USUAL_PART - 1));
    for (int64_t i = 0; i < d.n; i++) {
        d.n_dark += numbers[i] < d.limit;
        sum += numbers[i] < d.limit ? 0.0 : numbers[i];
    }
    d.usual = d.n > d.n_dark ? untruncated_mean(sum / (double)(d.n - d.n_dark)) : 0.0;
    return d;
}

/* Calls a run of dark patterns empty where that is no chance. */
static int64_t mark_empty(const darkness *d, const ps_pattern_tally *tally, int64_t n, uint8_t *kind) {
    double expected = (double)d->n * exp(-d->usual);
    bool are_all = (double)d->n_dark > most_excess * expected + most_excess;
    int64_t found = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        int64_t length = 0;
        for (end = i; end < n && (kind[end] == PS_PATTERN_MARKED || is_dark(d, &tally[end])); end++) length += kind[end] == PS_PATTERN_GOOD;
        bool is_fault = length > 0 && (are_all || (double)d->n * exp(-(double)length * d->usual) < most_by_chance);
        for (int64_t k = i; is_fault && k < end; k++)
            if (kind[k] == PS_PATTERN_GOOD) kind[k] = PS_PATTERN_EMPTY;
        found += is_fault ? length : 0;
        if (end == i) end++;
    }
    return found;
}

ps_code ps_patterns_judge(const ps_pattern_tally *tally, int64_t n_positions, int64_t n_pixels, uint8_t *kind, int64_t *n_empty,
                          int64_t *n_marked, ps_error *error) {
    uint32_t *numbers = malloc((size_t)n_positions * sizeof *numbers);
    if (!numbers) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to look at %" PRId64 " patterns", n_positions);
    *n_marked = find_marked(tally, n_positions, n_pixels, numbers, kind);
    darkness d = measure_darkness(tally, n_positions, numbers, kind);
    *n_empty = d.n_dark > 0 && d.n_dark < d.n ? mark_empty(&d, tally, n_positions, kind) : 0;
    free(numbers);
    return PS_OK;
}

/* ---- text --------------------------------------------------------------------------------------------------------------------- */

static int print_place(char *text, size_t room, int64_t position, int64_t columns) {
    if (columns <= 0) return snprintf(text, room, "%" PRId64, position);
    return snprintf(text, room, "%" PRId64 ".%" PRId64, position / columns, position % columns);
}

static size_t print_range(char text[PS_ODD_TEXT], int64_t begin, int64_t last, int64_t columns) {
    size_t used = (size_t)print_place(text, PS_ODD_TEXT, begin, columns);
    if (begin == last) return used;
    text[used++] = '-';
    return used + (size_t)print_place(text + used, PS_ODD_TEXT - used, last, columns);
}

static int64_t end_of_run(const uint8_t *kind, int64_t n, ps_pattern_kind which, int64_t begin) {
    while (begin < n && kind[begin] == which) begin++;
    return begin;
}

/* Ranges as long as they fit; *left: how many did not. Returns the bytes used. */
static size_t print_ranges(const uint8_t *kind, int64_t n, ps_pattern_kind which, int64_t columns, char *text, size_t room, int64_t *left) {
    size_t used = 0;
    *left = 0;
    for (int64_t i = 0; i < n; i++) {
        char range[PS_ODD_TEXT];
        if (kind[i] != which) continue;
        int64_t end = end_of_run(kind, n, which, i);
        size_t length = print_range(range, i, end - 1, columns);
        if (*left > 0 || used + length + 3 > room)
            ++*left;
        else
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "", range);
        i = end;
    }
    return used;
}

void ps_patterns_list(const uint8_t *kind, int64_t n_positions, ps_pattern_kind which, int64_t scan_columns, char text[PS_ODD_TEXT]) {
    enum { ROOM = 88 }; /* for each of the two lists */
    int64_t left, more;
    text[0] = '\0';
    size_t used = print_ranges(kind, n_positions, which, 0, text, ROOM, &left);
    if (left > 0) used += (size_t)snprintf(text + used, PS_ODD_TEXT - used, " and %" PRId64 " more", left);
    if (used == 0 || scan_columns <= 0) return;
    used += (size_t)snprintf(text + used, PS_ODD_TEXT - used, " (row.column ");
    used += print_ranges(kind, n_positions, which, scan_columns, text + used, ROOM, &more);
    snprintf(text + used, PS_ODD_TEXT - used, "%s)", more > 0 ? " ..." : "");
}
