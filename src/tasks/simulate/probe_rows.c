#include "tasks/simulate/probe_rows.h"

#include <complex.h>
#include <math.h>

#include "tasks/simulate/vector.h"

/* Adds factor * Re(rotation * (a + i b)^m) * (a^2 + b^2)^p, in powers of a and b. */
static void add_term(ps_chi_polynomial *chi, double factor, double complex rotation, int m, int p) {
    double binomial_m = 1.0; /* m over j */
    for (int j = 0; j <= m; j++) {
        double part = factor * binomial_m * creal(rotation * cpow(I, j)), binomial_p = 1.0;
        for (int l = 0; l <= p; l++) {
            chi->turns[m - j + 2 * (p - l)][j + 2 * l] += part * binomial_p;
            binomial_p = binomial_p * (p - l) / (l + 1);
        }
        binomial_m = binomial_m * (m - j) / (j + 1);
    }
}

void ps_chi_polynomial_build(const ps_probe *probe, ps_chi_polynomial *chi) {
    *chi = (ps_chi_polynomial){{{0}}};
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        int n = ps_aberration_orders[i][0], m = ps_aberration_orders[i][1];
        double factor = probe->C_A[i] * pow(probe->wavelength_A, n) / (n + 1);
        add_term(chi, factor, cexp(-I * m * probe->angle_rad[i]), m, (n + 1 - m) / 2);
    }
}

void ps_chi_polynomial_row(const ps_chi_polynomial *chi, double k_row, double row[PS_CHI_DEGREE + 1]) {
    for (int j = 0; j <= PS_CHI_DEGREE; j++) {
        row[j] = 0.0;
        for (int i = PS_CHI_DEGREE - j; i >= 0; i--) row[j] = row[j] * k_row + chi->turns[i][j];
    }
}

/* Sine and cosine of 2 pi t for |t| <= 1/2, from their Taylor sums on an eighth of a turn. */
static inline __attribute__((always_inline)) void sine_cosine(float t, float *sine, float *cosine) {
    const float shift = 0x1.8p23f;
    float quarters = (t * 4.0f + shift) - shift, x = (t - 0.25f * quarters) * 6.283185307179586f, y = x * x;
    float s = x + x * y * (-0.16666667f + y * (8.3333333e-3f + y * (-1.9841270e-4f + y * 2.7557319e-6f)));
    float c = 1.0f + y * (-0.5f + y * (4.1666667e-2f + y * (-1.3888889e-3f + y * 2.4801587e-5f)));
    float swapped_s = quarters == 1.0f || quarters == -1.0f ? c : s, swapped_c = quarters == 1.0f || quarters == -1.0f ? s : c;
    *sine = quarters < 0.0f || quarters == 2.0f ? -swapped_s : swapped_s;
    *cosine = quarters == 0.0f || quarters == -1.0f ? swapped_c : -swapped_c;
}

PS_VECTOR void ps_chi_row_waves(const double row[PS_CHI_DEGREE + 1], double first, double step, int64_t n, float *restrict real,
                                float *restrict imaginary) {
    const double shift = 0x1.8p52, r0 = row[0], r1 = row[1], r2 = row[2], r3 = row[3], r4 = row[4], r5 = row[5], r6 = row[6];
    for (int64_t i = 0; i < n; i++) {
        double k = first + (double)(int32_t)i * step;
        double turns = r0 + k * (r1 + k * (r2 + k * (r3 + k * (r4 + k * (r5 + k * r6)))));
        float sine, cosine;
        sine_cosine((float)(turns - ((turns + shift) - shift)), &sine, &cosine);
        real[i] = cosine;
        imaginary[i] = -sine;
    }
}
