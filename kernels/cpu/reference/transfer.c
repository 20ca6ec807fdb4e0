#include <math.h>

#include "core/assert.h"

#include "kernels/cpu/reference/reference.h"

static double sinc(double x) {
    return x == 0.0 ? 1.0 : sin(x) / x;
}

static double square(double row, double column) {
    return row * row + column * column;
}

/* w1 and w2 of section 3. */
static void thickness_weights(const ps_probe *probe, const double k[2], const double q[2], double *w1, double *w2) {
    double tilt = 2.0 * M_PI * (q[0] * probe->tilt_rad[0] + q[1] * probe->tilt_rad[1]);
    double k2 = square(k[0], k[1]), minus = square(k[0] - q[0], k[1] - q[1]), plus = square(k[0] + q[0], k[1] + q[1]);
    double rate1 = -M_PI * probe->wavelength_A * (minus - k2) - tilt;
    double rate2 = M_PI * probe->wavelength_A * (plus - k2) - tilt;
    *w1 = sinc(rate1 * probe->thickness_A / 2.0);
    *w2 = sinc(rate2 * probe->thickness_A / 2.0);
}

void ps_reference_transfer(const ps_reference_system *system, int64_t alias, int64_t first, int64_t n, double complex *amplitude,
                           double complex *phase) {
    PS_ASSERT(alias >= 0 && alias < system->cpu.desc.n_aliases && first >= 0 && first + n <= system->cpu.desc.n_active);
    const ps_system_desc *desc = &system->cpu.desc;
    const ps_probe *probe = &desc->probe;
    const double q[2] = {desc->q_row[alias], desc->q_column[alias]};
    const double sign = probe->mirrored_probe ? -1.0 : 1.0;
    for (int64_t i = 0; i < n; i++) {
        const double k[2] = {desc->k_row[first + i], desc->k_column[first + i]};
        double w1, w2;
        thickness_weights(probe, k, q, &w1, &w2);
        double complex p = system->probe[first + i];
        double complex t1 = w1 * conj(p) * ps_reference_probe(probe, sign * (k[0] - q[0]), sign * (k[1] - q[1]));
        double complex t2 = w2 * p * conj(ps_reference_probe(probe, k[0] + q[0], k[1] + q[1]));
        if (amplitude) amplitude[i] = t1 + t2;
        if (phase) phase[i] = I * (t1 - t2);
    }
}
