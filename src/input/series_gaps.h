/* Names that a series of numbered recordings lacks. */
#ifndef PS_INPUT_SERIES_GAPS_H
#define PS_INPUT_SERIES_GAPS_H

#include "input/series.h"

/* Names between the first and the last of each numbered row that are not there; malloc'd, NULL: none, or the numbers are no counting
 * (more of them are missing than there). Items in natural order. */
char *ps_series_find_gaps(const ps_series *series);

#endif
