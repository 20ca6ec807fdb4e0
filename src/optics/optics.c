#include "optics/optics.h"

#include <math.h>

#include "core/assert.h"

static const double electron_mass_kg = 9.1093837015e-31;
static const double elementary_charge_C = 1.602176634e-19;
static const double speed_of_light_m_s = 299792458.0;
static const double planck_J_s = 6.62607015e-34;

const char *ps_optics_missing(const ps_optics *optics) {
    if (isnan(optics->voltage_V)) return "voltage_V";
    if (isnan(optics->semiangle_mrad)) return "semiangle_mrad";
    if (isnan(optics->scan_step_A[0])) return "scan_step_A";
    if (isnan(optics->detector_pitch_mrad[0])) return "detector_pitch_mrad";
    return isnan(optics->detector_center_px[0]) ? "detector_center_px" : NULL;
}

double ps_wavelength_A(double voltage_V) {
    PS_ASSERT(voltage_V > 0);
    double energy = elementary_charge_C * voltage_V;
    double rest = electron_mass_kg * speed_of_light_m_s * speed_of_light_m_s;
    return 1e10 * planck_J_s / sqrt(2.0 * electron_mass_kg * energy * (1.0 + energy / (2.0 * rest)));
}

void ps_optics_k(const ps_optics *optics, int64_t detector_rows, int64_t detector_columns, double *k_row, double *k_column) {
    PS_ASSERT(!ps_optics_missing(optics) && detector_rows > 0 && detector_columns > 0);
    double scale = 1e-3 / ps_wavelength_A(optics->voltage_V);
    double angle = optics->rotation_deg * M_PI / 180.0, cosine = cos(angle), sine = sin(angle);
    for (int64_t row = 0; row < detector_rows; row++)
        for (int64_t column = 0; column < detector_columns; column++) {
            double a = ((double)row - optics->detector_center_px[0]) * optics->detector_pitch_mrad[0] * scale;
            double b = ((double)column - optics->detector_center_px[1]) * optics->detector_pitch_mrad[1] * scale;
            double along_row = optics->detector_transpose ? b : a, along_column = optics->detector_transpose ? a : b;
            if (optics->detector_flip[0]) along_row = -along_row;
            if (optics->detector_flip[1]) along_column = -along_column;
            int64_t pixel = row * detector_columns + column;
            k_row[pixel] = along_row * cosine - along_column * sine;
            k_column[pixel] = along_row * sine + along_column * cosine;
        }
}

void ps_optics_probe(const ps_optics *optics, ps_probe *probe) {
    PS_ASSERT(!ps_optics_missing(optics));
    *probe = (ps_probe){.wavelength_A = ps_wavelength_A(optics->voltage_V),
                        .semiangle_rad = 1e-3 * optics->semiangle_mrad,
                        .thickness_A = optics->thickness_A};
    for (int axis = 0; axis < 2; axis++) {
        probe->pitch_rad[axis] = 1e-3 * optics->detector_pitch_mrad[axis];
        probe->tilt_rad[axis] = 1e-3 * optics->tilt_mrad[axis];
    }
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        probe->C_A[i] = optics->C_A[i];
        probe->angle_rad[i] = optics->angle_rad[i];
    }
}

double ps_probe_aperture(const ps_probe *probe, double k_row, double k_column) {
    double k = hypot(k_row, k_column);
    if (k == 0.0) return 1.0;
    double pixel = hypot(k_row * probe->pitch_rad[0], k_column * probe->pitch_rad[1]) / k;
    return fmin(fmax((probe->semiangle_rad - probe->wavelength_A * k) / pixel + 0.5, 0.0), 1.0);
}

double ps_probe_chi(const ps_probe *probe, double k_row, double k_column) {
    double alpha = probe->wavelength_A * hypot(k_row, k_column), phi = atan2(k_column, k_row), sum = 0.0;
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        int n = ps_aberration_orders[i][0], m = ps_aberration_orders[i][1];
        if (probe->C_A[i] == 0.0) continue;
        sum += pow(alpha, n + 1) / (n + 1) * probe->C_A[i] * cos(m * (phi - probe->angle_rad[i]));
    }
    return 2.0 * M_PI / probe->wavelength_A * sum;
}
