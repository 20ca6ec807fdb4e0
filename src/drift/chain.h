/* From the shifts between neighbours to the drift of a series: docs/drift.md. Rank-local. */
#ifndef PS_DRIFT_CHAIN_H
#define PS_DRIFT_CHAIN_H

#include "drift/correlate.h"

/* Which peak each of n steps is. Of those nearly as high as the highest (80 %), first the one that moves least; then, twice, the one
 * nearest to the median of the steps up to two places away. chosen: [2 n] index, -1 where there is no peak; the second half is room. */
void ps_drift_choose(int64_t n, const ps_drift_peaks *steps, int *chosen);

#endif
