/* A series in the order in which its recordings were made. */
#ifndef PS_INPUT_SERIES_ORDER_H
#define PS_INPUT_SERIES_ORDER_H

#include "input/series.h"

/* Opens every recording for its time. PS_E_INPUT names one that does not tell it. One that cannot be opened stays behind the one before it
 * in the order of names, at the beginning before the first. options: may be NULL. */
ps_code ps_series_sort_by_time(ps_series *series, const ps_reader_options *options, ps_error *error);

#endif
