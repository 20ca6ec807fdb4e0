/* The global stage of a fit, and the picture of what it searched. Rank 0. Internal to the fit. */
#ifndef PS_FIT_STAGES_H
#define PS_FIT_STAGES_H

#include "fit/fit.h"

/* From result->start, curl and shifts: the grid over rotation and C10 for each orientation that is free, and around what the shifts say;
 * then the best few by a local search over rotation, C10 and C12, as far as they are free. Sets result->optics. */
ps_code ps_fit_stage_global(ps_fit_spread *spread, const ps_fit_data *data, const ps_fit_options *options, ps_fit_result *result,
                            ps_error *error);

/* Sets result->floor: the median over all rotations and defoci, few of each, whatever is free or given. */
ps_code ps_fit_stage_floor(ps_fit_spread *spread, const ps_fit_data *data, ps_fit_result *result, ps_error *error);

/* What rotations and defoci around the answer explain, everything else as it is there. */
ps_code ps_fit_stage_landscape(ps_fit_spread *spread, const ps_fit_data *data, ps_fit_result *result, ps_error *error);

#endif
