/* Data of a fit out of a frame that another task has in hand, reduced for whatever that task does with it. Rank-local. */
#ifndef PS_TASKS_FIT_AT_HAND_H
#define PS_TASKS_FIT_AT_HAND_H

#include "fit/data.h"

/* g of up to `most` scan frequencies at up to about `most_pixels` of the plan's pixels, evenly spread; methods: those that the frame's
 * system was created with. By what they tell (ps_fit_data) where a method leaves each frequency's power, else the best of the lowest. The
 * frame must be reduced, and stays as it is. data->n_frequencies may be 0: nothing stands out of the noise. Owned by the caller. */
ps_code ps_fit_data_at_hand(ps_frame *frame, const ps_plan *plan, ps_methods methods, double dose, int64_t most, int64_t most_pixels,
                            ps_fit_data *data, ps_error *error);

#endif
