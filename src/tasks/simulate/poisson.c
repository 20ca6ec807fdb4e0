#include "tasks/simulate/poisson.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tasks/simulate/random.h"
#include "tasks/simulate/vector.h"

enum { BATCH = 128 };                       /* positions drawn together */
static const double inversion_below = 64.0; /* larger means: PTRS, which is exact from 10 on */
static const int most_terms = 400;          /* of the cumulative sum, past which rounding leaves it below 1 */

/* Numbers of positions 2 pair and 2 pair + 1, two words each; draw 0 holds the first number of every position. */
static inline __attribute__((always_inline)) ps_random_bits draw_bits(const ps_noise_source *source, uint64_t pair, uint32_t draw) {
    return ps_random_block(source->seed, (uint32_t)pair, (uint32_t)(pair >> 32) << 16 | draw, source->pixel, source->frame);
}

/* unit: [BATCH] first numbers of positions first ... first + BATCH - 1; first is even. */
PS_VECTOR static void first_numbers(const ps_noise_source *source, int64_t first, double *restrict unit) {
    for (int i = 0; i < BATCH / 2; i++) {
        ps_random_bits bits = draw_bits(source, (uint64_t)first / 2 + (uint64_t)i, 0);
        unit[2 * i] = ps_random_to_unit(bits.word[0], bits.word[1]);
        unit[2 * i + 1] = ps_random_to_unit(bits.word[2], bits.word[3]);
    }
}

/* exp(-x) for 0 <= x < inversion_below: 2^-k times a Taylor sum; relative error below 1e-14. */
static inline __attribute__((always_inline)) double exp_negative(double x) {
    const double shift = 0x1.8p52;
    union {
        double value;
        uint64_t bits;
    } turns = {.value = x * 1.44269504088896340736 + shift}, power;
    double k = turns.value - shift, r = (k * 6.93147180369123816490e-01 - x) + k * 1.90821492927058770002e-10, sum = 1.0;
#pragma GCC unroll 13
    for (int n = 13; n > 0; n--) sum = 1.0 + sum * r * (1.0 / n);
    power.bits = (1023 - (turns.bits & 1023)) << 52;
    return sum * power.value;
}

/* counts[i]: how many terms of the cumulative sum lie below unit[i]. mean: [BATCH], each below inversion_below. */
PS_VECTOR static void invert(const double *restrict unit, const double *restrict mean, uint32_t *restrict counts) {
    double term[BATCH], sum[BATCH], count[BATCH];
    for (int i = 0; i < BATCH; i++) {
        sum[i] = term[i] = exp_negative(mean[i]);
        count[i] = 0.0;
    }
    int64_t left = 1;
    for (int n = 1; left && n < most_terms; n++) {
        double inverse = 1.0 / n;
        left = 0;
        for (int i = 0; i < BATCH; i++) {
            int64_t more = unit[i] > sum[i];
            left |= more;
            count[i] += more ? 1.0 : 0.0;
            term[i] *= mean[i] * inverse;
            sum[i] += term[i];
        }
    }
    for (int i = 0; i < BATCH; i++) counts[i] = (uint32_t)count[i];
}

/* The constants of PTRS for one mean (Hoermann 1993, algorithm PTRS). */
typedef struct {
    double mean, a, b, inverse_alpha, quick;
} rejection;

static rejection rejection_of(double mean) {
    double b = 0.931 + 2.53 * sqrt(mean);
    return (rejection){mean, -0.059 + 0.02483 * b, b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0)};
}

static bool accepted(const rejection *r, double distance, double count, double v) {
    int sign = 0;
    if (!(distance > 0.0) || count < 0.0) return false;
    if (distance >= 0.07 && v <= r->quick) return true;
    return log(v * r->inverse_alpha / (r->a / (distance * distance) + r->b)) <=
           count * log(r->mean) - r->mean - lgamma_r(count + 1.0, &sign);
}

static uint32_t reject(const ps_noise_source *source, int64_t position, double mean, double unit) {
    rejection r = rejection_of(mean);
    int word = (int)(position & 1) * 2;
    for (uint32_t draw = 1;; draw += 2) {
        ps_random_bits bits = draw_bits(source, (uint64_t)position / 2, draw);
        double u = unit - 0.5, distance = 0.5 - fabs(u), count = floor((2.0 * r.a / distance + r.b) * u + mean + 0.43);
        if (accepted(&r, distance, count, ps_random_to_unit(bits.word[word], bits.word[word + 1])))
            return count < (double)UINT32_MAX ? (uint32_t)count : UINT32_MAX;
        bits = draw_bits(source, (uint64_t)position / 2, draw + 1);
        unit = ps_random_to_unit(bits.word[word], bits.word[word + 1]);
    }
}

/* small: means that invert takes, 0 for the others. Returns bit 0: invert is needed, not all counts are 0; bit 1: there are others. */
PS_VECTOR static int sort_means(const double *restrict unit, const float *restrict mean, double *restrict small) {
    int64_t counts = 0, others = 0;
    for (int i = 0; i < BATCH; i++) {
        double m = (double)mean[i];
        int64_t large = !(m < inversion_below);
        small[i] = large ? 0.0 : m;
        counts |= unit[i] > 1.0 - small[i]; /* 1 - m <= exp(-m), the chance of count 0 */
        others |= large;
    }
    return (int)(counts | others << 1);
}

static void draw_batch(const ps_noise_source *source, int64_t first, const float mean[BATCH], uint32_t counts[BATCH]) {
    double unit[BATCH], small[BATCH];
    first_numbers(source, first, unit);
    int needed = sort_means(unit, mean, small);
    if (needed & 1)
        invert(unit, small, counts);
    else
        memset(counts, 0, BATCH * sizeof *counts);
    for (int i = 0; needed & 2 && i < BATCH; i++)
        if (!((double)mean[i] < inversion_below)) counts[i] = reject(source, first + i, (double)mean[i], unit[i]);
}

void ps_poisson_draw(const ps_noise_source *source, int64_t n_positions, const float *mean, uint32_t *counts) {
    int64_t whole = n_positions / BATCH * BATCH, rest = n_positions - whole;
    for (int64_t first = 0; first < whole; first += BATCH) draw_batch(source, first, mean + first, counts + first);
    if (rest == 0) return;
    float last_mean[BATCH] = {0};
    uint32_t last_counts[BATCH];
    memcpy(last_mean, mean + whole, (size_t)rest * sizeof *mean);
    draw_batch(source, whole, last_mean, last_counts);
    memcpy(counts + whole, last_counts, (size_t)rest * sizeof *counts);
}
