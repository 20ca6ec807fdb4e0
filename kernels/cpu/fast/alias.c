#include <math.h>
#include <string.h>

#include "core/assert.h"

#include "kernels/cpu/fast/fast.h"

enum { POWERS = PS_FAST_POWERS };

/* One homogeneous polynomial of degree n: coefficient i of x^i y^(n-i). */
typedef double homogeneous[POWERS];

static void multiply(const homogeneous a, int degree_a, const homogeneous b, int degree_b, homogeneous product) {
    homogeneous sum = {0};
    for (int i = 0; i <= degree_a; i++)
        for (int j = 0; j <= degree_b; j++) sum[i + j] += a[i] * b[j];
    memcpy(product, sum, sizeof sum);
}

/* Real and imaginary part of (x + i y)^m. */
static void complex_power(int m, homogeneous re, homogeneous im) {
    static const homogeneous x = {0, 1}, y = {1, 0};
    memset(re, 0, sizeof(homogeneous));
    memset(im, 0, sizeof(homogeneous));
    re[0] = 1.0;
    for (int degree = 0; degree < m; degree++) {
        homogeneous re_x, re_y, im_x, im_y;
        multiply(re, degree, x, 1, re_x);
        multiply(re, degree, y, 1, re_y);
        multiply(im, degree, x, 1, im_x);
        multiply(im, degree, y, 1, im_y);
        for (int i = 0; i < POWERS; i++) {
            re[i] = re_x[i] - im_y[i];
            im[i] = re_y[i] + im_x[i];
        }
    }
}

/* alpha^(n+1) cos(m (phi - angle)) = |z|^(n+1-m) Re(z^m e^(-i m angle)), z = x + i y. */
static void add_aberration(int n, int m, double size, double angle, ps_fast_polynomial *chi) {
    static const homogeneous radius2 = {1, 0, 1};
    homogeneous re, im;
    complex_power(m, re, im);
    for (int i = 0; i < POWERS; i++) re[i] = cos(m * angle) * re[i] + sin(m * angle) * im[i];
    for (int degree = m; degree < n + 1; degree += 2) multiply(re, degree, radius2, 2, re);
    for (int i = 0; i <= n + 1; i++) chi->coefficient[i][n + 1 - i] += size * re[i];
    if (chi->degree < n + 1) chi->degree = n + 1;
}

/* Section 2's chi in quarter turns: 4/wavelength times the sum, with alpha in units of the semiangle. */
void ps_fast_chi_polynomial(const ps_probe *probe, bool mirrored, ps_fast_polynomial *chi) {
    memset(chi, 0, sizeof *chi);
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        int n = ps_aberration_orders[i][0], m = ps_aberration_orders[i][1];
        double size = 4.0 / probe->wavelength_A * probe->C_A[i] * pow(probe->semiangle_rad, n + 1) / (n + 1);
        if (size != 0.0) add_aberration(n, m, mirrored && (n + 1) % 2 ? -size : size, probe->angle_rad[i], chi);
    }
}

/* chi(x + a, y + b), by synthetic division along each variable. */
static void shift(const ps_fast_polynomial *chi, double a, double b, ps_fast_polynomial *moved) {
    int degree = chi->degree;
    *moved = *chi;
    for (int j = 0; j <= degree; j++)
        for (int step = 0; step < degree - j; step++)
            for (int i = degree - j - 1; i >= step; i--) moved->coefficient[i][j] += a * moved->coefficient[i + 1][j];
    for (int i = 0; i <= degree; i++)
        for (int step = 0; step < degree - i; step++)
            for (int j = degree - i - 1; j >= step; j--) moved->coefficient[i][j] += b * moved->coefficient[i][j + 1];
}

/* Drops powers whose coefficients are all 0: of s and d, at least the highest ones cancel exactly. */
static void trim(ps_fast_polynomial *p) {
    for (; p->degree > 0; p->degree--)
        for (int i = 0; i <= p->degree; i++)
            if (p->coefficient[i][p->degree - i] != 0.0) return;
}

void ps_fast_alias_terms(const ps_fast_system *system, int64_t alias, ps_fast_alias *terms) {
    PS_ASSERT(alias >= 0 && alias < system->cpu.desc.n_aliases);
    const ps_system_desc *desc = &system->cpu.desc;
    const ps_probe *probe = &desc->probe;
    double q_row = desc->q_row[alias], q_column = desc->q_column[alias], half = 0.5 * probe->thickness_A;
    ps_fast_polynomial plus, minus;
    terms->q[0] = q_row / system->k_max;
    terms->q[1] = q_column / system->k_max;
    terms->q2 = terms->q[0] * terms->q[0] + terms->q[1] * terms->q[1];
    shift(&system->chi, terms->q[0], terms->q[1], &plus);
    shift(&system->chi_mirrored, -terms->q[0], -terms->q[1], &minus);
    terms->s = terms->d = system->chi;
    for (int i = 0; i <= system->chi.degree; i++)
        for (int j = 0; i + j <= system->chi.degree; j++) {
            terms->s.coefficient[i][j] = 0.5 * (plus.coefficient[i][j] - minus.coefficient[i][j]);
            terms->d.coefficient[i][j] = system->chi.coefficient[i][j] - 0.5 * (plus.coefficient[i][j] + minus.coefficient[i][j]);
        }
    trim(&terms->s);
    trim(&terms->d);
    terms->is_thick = probe->thickness_A != 0.0;
    terms->rate = half * probe->wavelength_A * system->k_max * system->k_max;
    terms->drift = half * (q_row * probe->tilt_rad[0] + q_column * probe->tilt_rad[1]);
}

void ps_fast_transfer_rows(const ps_fast_system *system, int64_t frequency, int64_t block, bool amplitude, const float *factor, float *rows,
                           bool *is_dark) {
    const ps_frequency *f = &system->cpu.desc.frequencies[frequency];
    int64_t first = block * (PS_FAST_BLOCK / PS_FAST_TILE), width = ps_fast_block_width(system, block), n = f->n_aliases;
    for (int64_t a = 0; a < n; a++) {
        ps_fast_alias terms;
        ps_fast_alias_terms(system, f->first_alias + a, &terms);
        float *phase = rows + (amplitude ? n + a : a) * 2 * width;
        bool dark = system->isa->transfer(&system->pixels, &terms, factor, first, width / PS_FAST_TILE,
                                          amplitude ? rows + a * 2 * width : NULL, phase);
        is_dark[amplitude ? n + a : a] = dark;
        if (amplitude) is_dark[a] = dark;
    }
}
