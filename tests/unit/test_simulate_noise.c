/* Random numbers against published answers, Poisson numbers against the distribution. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tasks/simulate/poisson.h"
#include "tasks/simulate/random.h"

static void check_block(uint64_t key, const uint32_t counter[4], const uint32_t expected[4]) {
    ps_random_bits bits = ps_random_block(key, counter[0], counter[1], counter[2], counter[3]);
    for (int i = 0; i < 4; i++) assert_int_equal(bits.word[i], expected[i]);
}

/* The known answers that come with Random123 for philox4x32, 10 rounds. */
static void philox_gives_known_answers(void **state) {
    (void)state;
    check_block(0, (uint32_t[]){0, 0, 0, 0}, (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_block(UINT64_MAX, (uint32_t[]){UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
                (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check_block(0x299f31d0a4093822, (uint32_t[]){0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

static void units_span_zero_to_one(void **state) {
    (void)state;
    assert_true(ps_random_to_unit(0, 0) == 0.0);
    double largest = ps_random_to_unit(UINT32_MAX, UINT32_MAX);
    assert_true(largest < 1.0 && 1.0 - largest < 1e-15);
    assert_true(ps_random_to_unit(0x80000000, 0) == 0.5);
}

enum { DRAWN = 400003, MOST_BINS = 4000 };

/* Pearson's statistic of counts against Poisson probabilities; neighbouring counts are pooled until 20 are expected. */
static double chi_square(const uint32_t *counts, double mean, int *degrees) {
    double *observed = calloc(MOST_BINS, sizeof *observed), sum = 0.0, pooled_expected = 0.0, pooled_observed = 0.0;
    double seen = 0.0, cumulative = 0.0;
    *degrees = -1;
    for (int i = 0; i < DRAWN; i++) observed[counts[i] < MOST_BINS ? counts[i] : MOST_BINS - 1] += 1.0;
    for (int k = 0; k < MOST_BINS; k++) {
        double probability = exp(k * log(mean) - mean - lgamma(k + 1.0));
        pooled_expected += DRAWN * probability;
        pooled_observed += observed[k];
        if (pooled_expected < 20.0 || DRAWN * (1.0 - cumulative - probability) < 20.0) {
            cumulative += probability;
            continue;
        }
        cumulative += probability;
        seen += pooled_observed;
        sum += (pooled_observed - pooled_expected) * (pooled_observed - pooled_expected) / pooled_expected;
        pooled_expected = pooled_observed = 0.0;
        ++*degrees;
    }
    pooled_expected += DRAWN * (1.0 - cumulative); /* the tail */
    pooled_observed = DRAWN - seen;
    free(observed);
    ++*degrees;
    return sum + (pooled_observed - pooled_expected) * (pooled_observed - pooled_expected) / pooled_expected;
}

static void check_distribution(double mean, uint32_t pixel) {
    float *means = malloc(DRAWN * sizeof *means);
    uint32_t *counts = malloc(DRAWN * sizeof *counts);
    int degrees;
    for (int i = 0; i < DRAWN; i++) means[i] = (float)mean;
    ps_poisson_draw(&(ps_noise_source){42, 1, pixel}, DRAWN, means, counts);
    double found = chi_square(counts, mean, &degrees);
    if (!(fabs(found - degrees) <= 4.0 * sqrt(2.0 * degrees) + 4.0))
        fail_msg("mean %g: chi-square %g with %d degrees of freedom", mean, found, degrees);
    free(means);
    free(counts);
}

/* Both algorithms, either side of where they change at 64, and where the second is worst. */
static void counts_are_poisson(void **state) {
    (void)state;
    const double means[] = {0.015625, 0.75, 3.5, 12.0, 63.875, 64.0, 65.5, 300.0, 2500.0};
    for (uint32_t i = 0; i < sizeof means / sizeof *means; i++) check_distribution(means[i], i);
}

static void large_means_spread_as_their_root(void **state) {
    (void)state;
    enum { N = 100000 };
    float *means = malloc(N * sizeof *means);
    uint32_t *counts = malloc(N * sizeof *counts);
    const double mean = 1073741824.0;
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < N; i++) means[i] = (float)mean;
    ps_poisson_draw(&(ps_noise_source){1, 2, 3}, N, means, counts);
    for (int i = 0; i < N; i++) {
        double z = (counts[i] - mean) / sqrt(mean);
        sum += z / N;
        squares += z * z / N;
    }
    assert_true(fabs(sum) <= 5.0 / sqrt(N));
    assert_true(fabs(squares - 1.0) <= 5.0 * sqrt(2.0 / N));
    free(means);
    free(counts);
}

static void zero_mean_is_zero_counts(void **state) {
    (void)state;
    float means[300] = {0};
    uint32_t counts[300];
    memset(counts, 1, sizeof counts);
    means[130] = 5e9f;
    ps_poisson_draw(&(ps_noise_source){9, 0, 0}, 300, means, counts);
    for (int i = 0; i < 300; i++) assert_int_equal(counts[i], i == 130 ? UINT32_MAX : 0);
}

/* A position's count is its own: other positions' means, and how many are drawn, do not matter; the source does. */
static void counts_depend_on_place_alone(void **state) {
    (void)state;
    enum { N = 1000 };
    float means[N], others[N];
    uint32_t a[N], b[N], c[N];
    int64_t differ = 0;
    for (int i = 0; i < N; i++) {
        means[i] = i % 2 ? 7.5f : 100.0f;
        others[i] = i % 3 ? means[i] : 1.0f;
    }
    ps_poisson_draw(&(ps_noise_source){1, 0, 5}, N, means, a);
    ps_poisson_draw(&(ps_noise_source){1, 0, 5}, 501, means, b);
    assert_memory_equal(a, b, 501 * sizeof *a);
    ps_poisson_draw(&(ps_noise_source){1, 0, 5}, N, others, b);
    for (int i = 0; i < N; i++)
        if (i % 3) assert_int_equal(a[i], b[i]);
    const ps_noise_source sources[] = {{2, 0, 5}, {1, 1, 5}, {1, 0, 6}};
    for (int s = 0; s < 3; s++) {
        ps_poisson_draw(&sources[s], N, means, c);
        differ = 0;
        for (int i = 0; i < N; i++) differ += a[i] != c[i];
        assert_true(differ > N / 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_known_answers), cmocka_unit_test(units_span_zero_to_one),
        cmocka_unit_test(counts_are_poisson),         cmocka_unit_test(large_means_spread_as_their_root),
        cmocka_unit_test(zero_mean_is_zero_counts),   cmocka_unit_test(counts_depend_on_place_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
