/* Where a search starts, from the data alone, before any trial: docs/physics.md section 7. Each answer comes with how far it may be
 * trusted, 0 (not at all) to 1. Rank-local. */
#ifndef PS_FIT_START_H
#define PS_FIT_START_H

#include "fit/data.h"

/* The centre of mass of the patterns is, for a phase object, the gradient of a picture: in the scan's axes its field has no curl. Rotation
 * (known but for 180 degrees) and transposition are those that leave least. Exact without aberrations; with them a rotation is good to some
 * ten degrees. */
typedef struct {
    double rotation_deg[2]; /* -90 ... 90, without and with a transposition */
    double curl[2];         /* part of the field's power that is curl, 0 ... 1 */
    bool transpose;         /* which of the two leaves less */
    double trust;           /* 1 - ratio of the smaller curl to the larger, times how much better than chance (1/2) the smaller is */
} ps_fit_curl;

/* Each bright-field pixel sees a picture shifted by the gradient of chi. Neighbours' shifts differ by chi's second derivatives along the
 * detector's axes, four numbers: rotation (but for 180 degrees, as always), C10 and C12, and whether the detector is transposed. Exact
 * where the defocus is large: where neighbouring pixels' pictures are shifted by a good part of what the band resolves. */
typedef struct {
    bool transpose;
    double rotation_deg, C10_A, C12_cos_A, C12_sin_A;
    double trust; /* part of the neighbours' correlation that the shifts explain, beyond what no shift explains */
} ps_fit_shifts;

/* optics: semiangle, pitch, centre and voltage; `flips` of the optics are taken as they are. */
void ps_fit_find_curl(const ps_fit_data *data, const ps_optics *optics, ps_fit_curl *curl);
ps_code ps_fit_find_shifts(const ps_fit_data *data, const ps_optics *optics, ps_fit_shifts *shifts, ps_error *error);

#endif
