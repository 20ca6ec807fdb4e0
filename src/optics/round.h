/* Optics rounded to a lattice of values, so that those of different frames that are near become equal. docs/jobs.md. Rank-local. */
#ifndef PS_OPTICS_ROUND_H
#define PS_OPTICS_ROUND_H

#include "optics/optics.h"

/* By how much at most. */
typedef struct {
    double aberrations_rad; /* each aberration: phase at the aperture's rim; 0: nothing is rounded */
    double rotation_deg;
} ps_optics_rounding;

/* Voltage and semiangle must be known. moved: by how much the rotation and the aberration that changed most were moved. */
void ps_optics_round(const ps_optics_rounding *most, ps_optics *optics, ps_optics_rounding *moved);

#endif
