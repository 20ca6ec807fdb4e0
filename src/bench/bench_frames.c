#include "bench/bench_frames.h"

#include <math.h>
#include <stdlib.h>

enum { NOISE_VALUES = 4096, LOWEST = 4171, HIGHEST = 5744, NOISE_REACH = 60, PHOTON_ADU = 1000, VALUES_PER_PHOTON = 25, MEAN_COUNTS = 10 };
static const double noise_adu = 15;

/* splitmix64's mixing step: a random number from a counter. */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Quantiles of a normal distribution, rounded: drawing one of them is drawing noise. */
static void fill_noise(double sigma, int16_t noise[NOISE_VALUES]) {
    for (int i = 0; i < NOISE_VALUES; i++) {
        double p = (i + 0.5) / NOISE_VALUES, low = -8, high = 8;
        for (int step = 0; step < 60; step++) {
            double middle = 0.5 * (low + high);
            if (0.5 * erfc(-middle / sqrt(2)) < p)
                low = middle;
            else
                high = middle;
        }
        noise[i] = (int16_t)lrint(sigma * low);
    }
}

static ps_code allocate(int64_t n_frames, int64_t n_pixels, ps_dtype dtype, ps_bench_frames *made, ps_error *error) {
    *made = (ps_bench_frames){.n_frames = n_frames, .n_pixels = n_pixels, .dtype = dtype};
    made->frames = malloc((size_t)n_frames * (size_t)n_pixels * ps_dtype_bytes(dtype));
    made->centre = calloc((size_t)n_pixels, sizeof *made->centre);
    if (made->frames && made->centre) return PS_OK;
    ps_bench_frames_free(made);
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate %lld made-up frames", (long long)n_frames);
}

static int32_t raw_value(const int16_t *noise, double centre, uint64_t counter) {
    uint64_t random = mix(counter * 0x9e3779b97f4a7c15u + 1);
    int32_t value = (int32_t)centre + noise[random % NOISE_VALUES];
    if ((random >> 16) % VALUES_PER_PHOTON == 0) value += (int32_t)((random >> 32) % PHOTON_ADU);
    return value;
}

ps_code ps_bench_frames_raw(int64_t n_frames, int64_t n_pixels, ps_dtype dtype, ps_bench_frames *made, ps_error *error) {
    int16_t noise[NOISE_VALUES];
    PS_TRY(allocate(n_frames, n_pixels, dtype, made, error));
    fill_noise(noise_adu, noise);
    for (int64_t p = 0; p < n_pixels; p++)
        made->centre[p] = LOWEST + NOISE_REACH + (double)(mix((uint64_t)p) % (uint64_t)(HIGHEST - LOWEST - 2 * NOISE_REACH));
#pragma omp parallel for schedule(static)
    for (int64_t f = 0; f < n_frames; f++)
        for (int64_t p = 0; p < n_pixels; p++) {
            int64_t at = f * n_pixels + p;
            int32_t value = raw_value(noise, made->centre[p], (uint64_t)at);
            if (dtype == PS_F32)
                ((float *)made->frames)[at] = (float)value;
            else
                ((uint16_t *)made->frames)[at] = (uint16_t)value;
        }
    return PS_OK;
}

ps_code ps_bench_frames_counts(int64_t n_frames, int64_t n_pixels, ps_dtype dtype, ps_bench_frames *made, ps_error *error) {
    int16_t noise[NOISE_VALUES];
    PS_TRY(allocate(n_frames, n_pixels, dtype, made, error));
    fill_noise(sqrt(MEAN_COUNTS), noise);
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < n_frames * n_pixels; at++) {
        int32_t value = MEAN_COUNTS + noise[mix((uint64_t)at * 0x9e3779b97f4a7c15u + 1) % NOISE_VALUES];
        if (value < 0) value = 0;
        if (dtype == PS_U8)
            ((uint8_t *)made->frames)[at] = (uint8_t)value;
        else
            ((uint16_t *)made->frames)[at] = (uint16_t)value;
    }
    return PS_OK;
}

void ps_bench_frames_free(ps_bench_frames *made) {
    free(made->frames);
    free(made->centre);
    *made = (ps_bench_frames){0};
}
