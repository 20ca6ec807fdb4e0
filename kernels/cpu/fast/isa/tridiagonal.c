/* Hermitian matrices of LANES frequencies at once, one frequency a lane, in double: docs/physics.md section 5.
 *
 * A = Q T Q^H with T real and tridiagonal serves every strength as an eigenbasis does, (A + mu)^-1 = Q (T + mu)^-1 Q^H, for a fraction
 * of its price, and every lane takes the same steps. Q is a product of Hermitian reflectors P_k = 1 - beta_k v_k v_k^H and a diagonal of
 * phases; v_k is in column k of the matrix, below the diagonal.
 * reduced: [5, n, LANES] diagonal of T, its off-diagonal (between i and i + 1), beta, phases (real, then imaginary). */
#include <math.h>
#include <stddef.h>

#include "kernels/cpu/fast/isa/variant.h"

typedef double lanes __attribute__((vector_size(8 * PS_FAST_LANES), may_alias));
typedef int64_t lane_masks __attribute__((vector_size(8 * PS_FAST_LANES)));
typedef struct {
    lanes re, im;
} complex_lanes;

#define INLINE static inline __attribute__((always_inline))

INLINE complex_lanes *entry(double *matrix, int i, int j) {
    return (complex_lanes *)matrix + (ptrdiff_t)i * (i + 1) / 2 + j;
}
INLINE const complex_lanes *const_entry(const double *matrix, int i, int j) {
    return (const complex_lanes *)matrix + (ptrdiff_t)i * (i + 1) / 2 + j;
}

/* a += b c, a += conj(b) c */
INLINE void add_product(complex_lanes *a, const complex_lanes *b, const complex_lanes *c) {
    a->re += b->re * c->re - b->im * c->im;
    a->im += b->re * c->im + b->im * c->re;
}

INLINE void add_conjugate_product(complex_lanes *a, const complex_lanes *b, const complex_lanes *c) {
    a->re += b->re * c->re + b->im * c->im;
    a->im += b->re * c->im - b->im * c->re;
}

INLINE void square_root(lanes *x) {
    double *each = (double *)x;
    /* cppcheck-suppress objectIndex ; a vector of PS_FAST_LANES doubles */
    for (int l = 0; l < PS_FAST_LANES; l++) each[l] = sqrt(each[l]);
}

/* a / b where b is not 0, else `otherwise`. */
INLINE void safe_quotient(const lanes *a, const lanes *b, double otherwise, lanes *quotient) {
    lane_masks good = *b != 0.0;
    lanes one = (lanes){0} + 1.0, other = (lanes){0} + otherwise;
    lanes value = *a / (lanes)(((lane_masks)*b & good) | ((lane_masks)one & ~good));
    *quotient = (lanes)(((lane_masks)value & good) | ((lane_masks)other & ~good));
}

/* Turns column k below the diagonal into v, and gives beta and the element e = -e^(i theta) |x| that the reflector leaves. */
static void make_reflector(int n, int k, double *matrix, lanes *beta, complex_lanes *left) {
    lanes norm = {0}, size, inverse, c, s;
    complex_lanes *first = entry(matrix, k + 1, k);
    for (int i = k + 1; i < n; i++) {
        const complex_lanes *x = entry(matrix, i, k);
        norm += x->re * x->re + x->im * x->im;
    }
    size = first->re * first->re + first->im * first->im;
    square_root(&size);
    lanes squared = norm, one = (lanes){0} + 1.0;
    square_root(&norm);
    safe_quotient(&first->re, &size, 1.0, &c);
    safe_quotient(&first->im, &size, 0.0, &s);
    lanes denominator = squared + size * norm;
    safe_quotient(&one, &denominator, 0.0, &inverse);
    *beta = inverse;
    left->re = -c * norm;
    left->im = -s * norm;
    first->re += c * norm;
    first->im += s * norm;
}

/* w = beta A v, A the trailing block; then w -= (beta/2) (v^H w) v. */
static void half_update(int n, int k, double *matrix, const lanes *beta, complex_lanes *w) {
    for (int i = k + 1; i < n; i++) w[i].re = w[i].im = (lanes){0};
    for (int i = k + 1; i < n; i++) {
        const complex_lanes *vi = entry(matrix, i, k), *diagonal = entry(matrix, i, i);
        complex_lanes sum = w[i];
        for (int j = k + 1; j < i; j++) {
            const complex_lanes *a = entry(matrix, i, j);
            add_product(&sum, a, entry(matrix, j, k));
            add_conjugate_product(&w[j], a, vi);
        }
        sum.re += diagonal->re * vi->re;
        sum.im += diagonal->re * vi->im;
        w[i] = sum;
    }
    lanes inner = {0};
    for (int i = k + 1; i < n; i++) {
        const complex_lanes *v = entry(matrix, i, k);
        w[i].re *= *beta;
        w[i].im *= *beta;
        inner += v->re * w[i].re + v->im * w[i].im;
    }
    inner *= 0.5 * *beta;
    for (int i = k + 1; i < n; i++) {
        const complex_lanes *v = entry(matrix, i, k);
        w[i].re -= inner * v->re;
        w[i].im -= inner * v->im;
    }
}

/* A -= v w^H + w v^H */
static void rank_two_update(int n, int k, double *matrix, const complex_lanes *w) {
    for (int i = k + 1; i < n; i++) {
        const complex_lanes v = *entry(matrix, i, k);
        for (int j = k + 1; j <= i; j++) {
            const complex_lanes *vj = entry(matrix, j, k);
            complex_lanes *a = entry(matrix, i, j);
            a->re -= v.re * w[j].re + v.im * w[j].im + w[i].re * vj->re + w[i].im * vj->im;
            a->im -= v.im * w[j].re - v.re * w[j].im + w[i].im * vj->re - w[i].re * vj->im;
        }
    }
}

/* Phase of the next unknown: the last one's times e/|e|, so that the off-diagonal becomes |e|. */
static void follow_phase(const complex_lanes *e, const lanes *size, const lanes *phase_re, const lanes *phase_im, lanes *next_re,
                         lanes *next_im) {
    lanes c, s;
    safe_quotient(&e->re, size, 1.0, &c);
    safe_quotient(&e->im, size, 0.0, &s);
    *next_re = *phase_re * c - *phase_im * s;
    *next_im = *phase_re * s + *phase_im * c;
}

void PS_FAST_NAME(ps_fast_tridiagonalise)(int n, double *matrix, double *reduced) {
    lanes *diagonal = (lanes *)reduced, *off = diagonal + n, *beta = off + n, *phase_re = beta + n, *phase_im = phase_re + n;
    complex_lanes w[2 * 64];
    for (int k = 0; k < n; k++) {
        beta[k] = off[k] = phase_im[k] = (lanes){0};
        phase_re[k] = beta[k] + 1.0;
    }
    for (int k = 0; k + 1 < n; k++) {
        complex_lanes e = *entry(matrix, k + 1, k);
        if (k + 2 < n) {
            make_reflector(n, k, matrix, &beta[k], &e);
            half_update(n, k, matrix, &beta[k], w);
            rank_two_update(n, k, matrix, w);
        }
        off[k] = e.re * e.re + e.im * e.im;
        square_root(&off[k]);
        follow_phase(&e, &off[k], &phase_re[k], &phase_im[k], &phase_re[k + 1], &phase_im[k + 1]);
    }
    for (int k = 0; k < n; k++) diagonal[k] = entry(matrix, k, k)->re;
}

/* vectors -= beta v (v^H vectors) */
static void reflect(int n, int k, const double *matrix, const lanes *beta, complex_lanes *vectors) {
    complex_lanes inner = {{0}, {0}};
    for (int i = k + 1; i < n; i++) add_conjugate_product(&inner, const_entry(matrix, i, k), &vectors[i]);
    inner.re *= -*beta;
    inner.im *= -*beta;
    for (int i = k + 1; i < n; i++) add_product(&vectors[i], const_entry(matrix, i, k), &inner);
}

void PS_FAST_NAME(ps_fast_to_basis)(int n, const double *matrix, const double *reduced, double *vectors) {
    const lanes *beta = (const lanes *)reduced + 2 * n, *phase_re = beta + n, *phase_im = phase_re + n;
    complex_lanes *x = (complex_lanes *)vectors;
    for (int k = 0; k + 2 < n; k++) reflect(n, k, matrix, &beta[k], x);
    for (int k = 0; k < n; k++) {
        complex_lanes turned = {{0}, {0}}, phase = {phase_re[k], phase_im[k]};
        add_conjugate_product(&turned, &phase, &x[k]);
        x[k] = turned;
    }
}

void PS_FAST_NAME(ps_fast_from_basis)(int n, const double *matrix, const double *reduced, double *vectors) {
    const lanes *beta = (const lanes *)reduced + 2 * n, *phase_re = beta + n, *phase_im = phase_re + n;
    complex_lanes *x = (complex_lanes *)vectors;
    for (int k = 0; k < n; k++) {
        complex_lanes turned = {{0}, {0}}, phase = {phase_re[k], phase_im[k]};
        add_product(&turned, &phase, &x[k]);
        x[k] = turned;
    }
    for (int k = n - 3; k >= 0; k--) reflect(n, k, matrix, &beta[k], x);
}

/* Pivots of T + mu from the top (forward[i]) and, for the trace, from the bottom (backward[i]). */
static bool form_pivots(int n, const double *reduced, double mu, lanes *forward, lanes *backward) {
    const lanes *diagonal = (const lanes *)reduced, *off = diagonal + n;
    lane_masks good = {0};
    good = ~good;
    for (int i = 0; i < n; i++) {
        forward[i] = diagonal[i] + mu;
        if (i > 0) forward[i] -= off[i - 1] * off[i - 1] / forward[i - 1];
        good &= forward[i] > 0.0;
    }
    for (int i = n - 1; backward && i >= 0; i--) {
        backward[i] = diagonal[i] + mu;
        if (i + 1 < n) backward[i] -= off[i] * off[i] / backward[i + 1];
        good &= backward[i] > 0.0;
    }
    for (int l = 0; l < PS_FAST_LANES; l++)
        if (!good[l]) return false;
    return true;
}

static void substitute(int n, const lanes *off, const lanes *pivot, const complex_lanes *c, complex_lanes *y) {
    for (int i = 0; i < n; i++) {
        y[i] = c[i];
        if (i == 0) continue;
        lanes l = off[i - 1] / pivot[i - 1];
        y[i].re -= l * y[i - 1].re;
        y[i].im -= l * y[i - 1].im;
    }
    for (int i = n - 1; i >= 0; i--) {
        lanes above_re = y[i].re, above_im = y[i].im;
        if (i + 1 < n) {
            above_re -= off[i] * y[i + 1].re;
            above_im -= off[i] * y[i + 1].im;
        }
        y[i].re = above_re / pivot[i];
        y[i].im = above_im / pivot[i];
    }
}

bool PS_FAST_NAME(ps_fast_solve_shifted)(int n, const double *reduced, double mu, const double *c, double *y, double *pivots,
                                         double *explained, double *trace) {
    const lanes *off = (const lanes *)reduced + n;
    const complex_lanes *right = (const complex_lanes *)c;
    complex_lanes *x = (complex_lanes *)y;
    lanes *forward = (lanes *)pivots, *backward = forward + n, fit = {0}, size = {0};
    if (!form_pivots(n, reduced, mu, forward, trace ? backward : NULL)) return false;
    substitute(n, off, forward, right, x);
    for (int i = 0; i < n; i++) {
        fit += right[i].re * x[i].re + right[i].im * x[i].im;
        size += x[i].re * x[i].re + x[i].im * x[i].im;
    }
    if (explained) *(lanes *)explained = fit + mu * size;
    if (!trace) return true;
    lanes sum = {0};
    for (int i = 0; i < n; i++) {
        lanes pivot = forward[i]; /* 1 / ((T + mu)^-1)_ii */
        if (i + 1 < n) pivot -= off[i] * off[i] / backward[i + 1];
        sum += 1.0 / pivot;
    }
    *(lanes *)trace = sum;
    return true;
}
