#include <math.h>

#include "kernels/cpu/reference/reference.h"

double ps_reference_aperture(const ps_probe *probe, double k_row, double k_column) {
    double k = hypot(k_row, k_column);
    if (k == 0.0) return 1.0;
    double pixel = hypot(k_row * probe->pitch_rad[0], k_column * probe->pitch_rad[1]) / k;
    double a = (probe->semiangle_rad - probe->wavelength_A * k) / pixel + 0.5;
    return a < 0.0 ? 0.0 : a > 1.0 ? 1.0 : a;
}

double ps_reference_chi(const ps_probe *probe, double k_row, double k_column) {
    double alpha = probe->wavelength_A * hypot(k_row, k_column), phi = atan2(k_column, k_row), sum = 0.0;
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        int n = ps_aberration_orders[i][0], m = ps_aberration_orders[i][1];
        if (probe->C_A[i] == 0.0) continue;
        double angle = m == 0 ? 1.0 : cos(m * (phi - probe->angle_rad[i]));
        sum += pow(alpha, n + 1) / (n + 1) * probe->C_A[i] * angle;
    }
    return 2.0 * M_PI / probe->wavelength_A * sum;
}

double complex ps_reference_probe(const ps_probe *probe, double k_row, double k_column) {
    double a = ps_reference_aperture(probe, k_row, k_column);
    return a == 0.0 ? 0.0 : a * cexp(-I * ps_reference_chi(probe, k_row, k_column));
}
