#include "optics/round.h"

#include <math.h>

/* No negative zero: it would be another value. */
static double to_lattice(double value, double step) {
    return step * round(value / step) + 0.0;
}

/* Of a term with an angle both parts, C cos(m phi) and C sin(m phi), so that no angle is special. Returns by how much C changed. */
static double round_term(int m, double most_A, double *C_A, double *angle_rad) {
    double cosine = *C_A * cos(m * *angle_rad), sine = *C_A * sin(m * *angle_rad), step = (m ? M_SQRT2 : 2.0) * most_A;
    double x = to_lattice(cosine, step), y = m ? to_lattice(sine, step) : 0.0;
    *C_A = m ? hypot(x, y) : x;
    *angle_rad = m && *C_A > 0.0 ? atan2(y, x) / m : 0.0;
    return hypot(x - cosine, m ? y - sine : 0.0);
}

void ps_optics_round(const ps_optics_rounding *most, ps_optics *optics, ps_optics_rounding *moved) {
    double rotation_deg = to_lattice(optics->rotation_deg, 2.0 * most->rotation_deg), alpha = 1e-3 * optics->semiangle_mrad;
    *moved = (ps_optics_rounding){.rotation_deg = fabs(rotation_deg - optics->rotation_deg)};
    optics->rotation_deg = rotation_deg;
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        int n = ps_aberration_orders[i][0], m = ps_aberration_orders[i][1];
        double radian_A = ps_wavelength_A(optics->voltage_V) * (n + 1) / (2.0 * M_PI * pow(alpha, n + 1));
        double change_A = round_term(m, most->aberrations_rad * radian_A, &optics->C_A[i], &optics->angle_rad[i]);
        moved->aberrations_rad = fmax(moved->aberrations_rad, change_A / radian_A);
    }
}
