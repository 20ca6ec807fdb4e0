/* The bright-field disc as a mean pattern shows it: where its centre lies and how large it is. */
#ifndef PS_OPTICS_MEASURE_H
#define PS_OPTICS_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

typedef struct {
    double center_px[2]; /* row, column */
    double radius;       /* in the unit of the pitch */
    double plateau;      /* counts per position inside the disc */
    double missing;      /* part of the disc's area beyond the detector's edge; 0: none */
    bool is_clipped;     /* the disc touches the edge: the circle was fitted to the part of its rim that is seen */
} ps_disc;

/* Pixels above half of the plateau, the largest connected piece of them: area gives the radius, centroid the centre, with rim pixels
 * weighted by how far they rise from the background to the plateau. A piece that touches the detector's edge has lost area, so there a
 * circle is fitted to the rim inside the detector instead. Isolated hot pixels and masked pixels do not matter.
 *
 * Pixels that never count (bad, not finite, or exactly 0 where counts must be: gaps between modules, dead rows, a beam stop) have no say:
 * bright pieces on their two sides are one disc, and the circle is that of the rim that is seen beside them (rim.h), good to 0.1 pixels
 * for a sharp rim.
 *
 * mean: [rows, columns] counts per position; bad: [rows, columns], not 0: ignore, may be NULL; pitch: row, column, > 0 (a circle in the
 * unit of the pitch is looked for). PS_E_INPUT says why there is no disc: no counts, no edge within the detector, or what is bright is not
 * round, or its pieces do not make one circle. */
ps_code ps_disc_measure(const double *mean, const uint8_t *bad, int64_t rows, int64_t columns, const double pitch[2], ps_disc *disc,
                        ps_error *error);

#endif
