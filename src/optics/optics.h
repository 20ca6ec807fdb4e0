/* Optics as users give them, and as the physics uses them. docs/physics.md sections 1 and 2. */
#ifndef PS_OPTICS_OPTICS_H
#define PS_OPTICS_OPTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "kernels/backend.h"

/* NAN in the first five: not given; a recording may tell them. Everything else here expects them all. */
typedef struct {
    double voltage_V;
    double semiangle_mrad;
    double scan_step_A[2];
    double detector_pitch_mrad[2];
    double detector_center_px[2]; /* row, column; pixel centres are integers */
    double rotation_deg;
    bool detector_transpose; /* swap k_row and k_column before flips and rotation */
    bool detector_flip[2];   /* negate k_row, k_column after the transpose, before the rotation */
    double C_A[PS_N_ABERRATIONS], angle_rad[PS_N_ABERRATIONS];
    double tilt_mrad[2];
    double thickness_A;
} ps_optics;

/* The key of the first that is not given; NULL: all are. */
const char *ps_optics_missing(const ps_optics *optics);

double ps_wavelength_A(double voltage_V); /* relativistic, CODATA 2018 */

/* k of every detector pixel: k_row, k_column [detector_rows, detector_columns], 1/Angstrom, in the scan's axes. Physics section 1. */
void ps_optics_k(const ps_optics *optics, int64_t detector_rows, int64_t detector_columns, double *k_row, double *k_column);
void ps_optics_probe(const ps_optics *optics, ps_probe *probe);

/* Physics section 2, float64: the aperture (0 ... 1) and chi (rad) at any k (1/Angstrom, in the scan's axes). The pixel's angular size
 * along k is hypot(k_row * pitch_row, k_column * pitch_column)/|k|, with k in the scan's axes; 1 at k = 0. */
double ps_probe_aperture(const ps_probe *probe, double k_row, double k_column);
double ps_probe_chi(const ps_probe *probe, double k_row, double k_column);

#endif
