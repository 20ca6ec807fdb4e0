/* A disc that gaps between modules, dead rows or a beam stop cut into pieces. Internal to measure.c. */
#ifndef PS_OPTICS_MEASURE_CUT_H
#define PS_OPTICS_MEASURE_CUT_H

#include "optics/picture.h"

/* Fills p->silent. mean, bad: as in ps_disc_measure. */
void ps_picture_find_silent(ps_picture *p, const double *mean, const uint8_t *bad, double plateau);
/* Adds to the piece what is bright on the other side of gaps; returns its size. */
int64_t ps_picture_join(ps_picture *p, double threshold);
/* Whether no pixels that never count lie inside the disc or at its rim, and at most such a part of the rim is elsewhere than it should be.
 */
bool ps_picture_is_whole(ps_picture *p, const double pitch[2], const ps_disc *disc, double most_wrong);
/* The circle of what is seen of the joined piece's rim. PS_E_INPUT: it makes no circle. */
ps_code ps_picture_measure_cut(ps_picture *p, double threshold, const double pitch[2], ps_disc *disc, ps_error *error);

#endif
