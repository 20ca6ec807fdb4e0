/* Parts of series.c: what is missing between numbered names, and the order of time. */
#ifndef PS_INPUT_SERIES_ORDER_H
#define PS_INPUT_SERIES_ORDER_H

#include "input/series.h"

/* Names between the first and the last of each numbered row that are not there; malloc'd, NULL: none, or the numbers are no counting
 * (more of them are missing than there). Items in natural order. */
char *ps_series_find_gaps(const ps_series *series);

/* Opens every recording for its time. PS_E_INPUT names one that does not tell it. One that cannot be opened stays behind the one before it
 * in the order of names, at the beginning before the first. options: may be NULL. */
ps_code ps_series_sort_by_time(ps_series *series, const ps_reader_options *options, ps_error *error);

#endif
