#include "bench/fit_counts.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/parameters.h"

enum { N_WAVES = 48, PARTS = 2 * N_WAVES, POSITIONS = 2048 };

typedef struct {
    const ps_bench_fit_case *problem;
    int64_t n_bright;          /* pixels that the disc reaches */
    int32_t *pixel;            /* [n_bright] of the detector */
    float *mean;               /* [n_bright] */
    float *waves;              /* [PARTS, n_bright] real and imaginary part of each wave's g, times counts */
    int64_t index[N_WAVES][2]; /* of the wave's frequency in the scan's transform */
} maker;

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static double uniform(uint64_t *state) {
    return (double)(mix(*state += UINT64_C(0x9e3779b97f4a7c15)) >> 11) * 0x1p-53;
}

/* Frequencies well inside what scan and aperture hold, each once and without its partner. */
static void choose_waves(maker *m, uint64_t *state) {
    const ps_optics *o = &m->problem->optics;
    double extent = (double)m->problem->scan * o->scan_step_A[0], k_max = 1e-3 * o->semiangle_mrad / ps_wavelength_A(o->voltage_V);
    double most = fmin(0.45 * (double)m->problem->scan, 1.3 * k_max * extent);
    for (int i = 0; i < N_WAVES;) {
        int64_t row = (int64_t)floor(uniform(state) * most) + 1, column = (int64_t)floor((2.0 * uniform(state) - 1.0) * most);
        double size = hypot((double)row, (double)column);
        bool is_new = size < most && size > 0.1 * most;
        for (int j = 0; j < i; j++) is_new = is_new && (m->index[j][0] != row || m->index[j][1] != column);
        if (is_new) m->index[i][0] = row, m->index[i++][1] = column;
    }
}

static double complex wave(const ps_probe *probe, double k_row, double k_column) {
    double aperture = ps_probe_aperture(probe, k_row, k_column);
    return aperture > 0.0 ? aperture * cexp(-I * ps_probe_chi(probe, k_row, k_column)) : 0.0;
}

static void fill_waves(maker *m, const ps_trial *trial, const double *k, const double complex *amplitude) {
    const ps_optics *o = &m->problem->optics;
    double extent = (double)m->problem->scan * o->scan_step_A[0];
#pragma omp parallel for
    for (int i = 0; i < N_WAVES; i++) {
        double q[2] = {(double)m->index[i][0] / extent, (double)m->index[i][1] / extent};
        for (int64_t p = 0; p < m->n_bright; p++) {
            double complex here = wave(&trial->probe, k[2 * p], k[2 * p + 1]);
            double complex minus = wave(&trial->probe, k[2 * p] - q[0], k[2 * p + 1] - q[1]);
            double complex plus = wave(&trial->probe, k[2 * p] + q[0], k[2 * p + 1] + q[1]);
            double complex g = 2.0 * m->problem->mean * amplitude[i] * I * (conj(here) * minus - here * conj(plus));
            m->waves[(2 * i) * m->n_bright + p] = (float)creal(g);
            m->waves[(2 * i + 1) * m->n_bright + p] = (float)-cimag(g);
        }
    }
}

static ps_code prepare(const ps_bench_fit_case *problem, maker *m, ps_error *error) {
    const ps_optics *o = &problem->optics;
    int64_t n_pixels = problem->detector * problem->detector;
    uint64_t state = 20241024;
    ps_trial trial;
    double complex amplitude[N_WAVES];
    ps_code code = PS_OK;
    double *k = malloc(2 * (size_t)n_pixels * sizeof *k);
    *m = (maker){.problem = problem, .pixel = malloc((size_t)n_pixels * sizeof *m->pixel)};
    m->mean = malloc((size_t)n_pixels * sizeof *m->mean);
    PS_GO_ALLOC(error, k && m->pixel && m->mean);
    ps_fit_trial(o, o->scan_step_A, &trial);
    for (int64_t i = 0; i < n_pixels; i++) {
        double *at = k + 2 * m->n_bright;
        for (int axis = 0; axis < 2; axis++)
            at[axis] = trial.to_k[axis][0] * (double)(i / problem->detector) + trial.to_k[axis][1] * (double)(i % problem->detector) +
                       trial.to_k[axis][2];
        double aperture = ps_probe_aperture(&trial.probe, at[0], at[1]);
        if (aperture == 0.0) continue;
        m->pixel[m->n_bright] = (int32_t)i;
        m->mean[m->n_bright++] = (float)(problem->mean * aperture * aperture);
    }
    m->waves = malloc((size_t)(PARTS * m->n_bright) * sizeof *m->waves);
    PS_GO_ALLOC(error, m->waves);
    choose_waves(m, &state);
    for (int i = 0; i < N_WAVES; i++) amplitude[i] = 0.03 * cexp(2.0 * M_PI * I * uniform(&state));
    fill_waves(m, &trial, k, amplitude);
done:
    free(k);
    return code;
}

/* Of about the variance of counts: 64 coins, scaled, and what rounding needs to be right in the mean. */
static uint16_t count(float mean, uint64_t seed) {
    if (!(mean > 0.0f)) return 0;
    uint64_t coins = mix(seed);
    float noise = (float)(__builtin_popcountll(coins) - 32) * 0.25f * sqrtf(mean);
    float value = mean + noise + (float)(mix(coins) >> 40) * 0x1p-24f;
    return value > 0.0f ? (uint16_t)value : 0;
}

/* One position's pattern; sums: [n_bright] scratch. */
static void make_pattern(const maker *m, int64_t position, float *sums, uint16_t *pattern) {
    double row = (double)(position / m->problem->scan), column = (double)(position % m->problem->scan);
    memcpy(sums, m->mean, (size_t)m->n_bright * sizeof *sums);
    for (int i = 0; i < PARTS; i++) {
        double turns = ((double)m->index[i / 2][0] * row + (double)m->index[i / 2][1] * column) / (double)m->problem->scan;
        float factor = (float)(i % 2 ? sin(2.0 * M_PI * turns) : cos(2.0 * M_PI * turns));
        const float *own = m->waves + i * m->n_bright;
        for (int64_t p = 0; p < m->n_bright; p++) sums[p] += factor * own[p];
    }
    for (int64_t p = 0; p < m->n_bright; p++)
        pattern[m->pixel[p]] = count(sums[p], (uint64_t)(position * m->n_bright + p) * UINT64_C(0x9e3779b97f4a7c15));
}

ps_code ps_bench_fit_upload(const ps_bench_fit_case *problem, ps_frame *frame, ps_error *error) {
    int64_t n_pixels = problem->detector * problem->detector, n_positions = problem->scan * problem->scan;
    maker m;
    uint16_t *patterns = NULL;
    float *sums = NULL;
    ps_code code = PS_OK;
    PS_GO(prepare(problem, &m, error));
    patterns = calloc((size_t)(POSITIONS * n_pixels), sizeof *patterns);
    sums = malloc((size_t)(POSITIONS * m.n_bright) * sizeof *sums);
    PS_GO_ALLOC(error, patterns && sums);
    for (int64_t first = 0; first < n_positions; first += POSITIONS) {
        int64_t n = n_positions - first < POSITIONS ? n_positions - first : POSITIONS;
#pragma omp parallel for
        for (int64_t i = 0; i < n; i++) make_pattern(&m, first + i, sums + i * m.n_bright, patterns + i * n_pixels);
        PS_GO(ps_frame_upload(frame, first, n, patterns, error));
    }
done:
    free(m.pixel);
    free(m.mean);
    free(m.waves);
    free(patterns);
    free(sums);
    return code;
}
