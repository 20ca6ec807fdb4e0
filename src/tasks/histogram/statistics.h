/* From counts and exact sums to the numbers people look at. Rank-local; the same bits on every rank and backend. */
#ifndef PS_TASKS_HISTOGRAM_STATISTICS_H
#define PS_TASKS_HISTOGRAM_STATISTICS_H

#include "kernels/histogram.h"

/* Population moments of pixel p from its sums over n values; 0 where n is 0. */
void ps_statistics_moments(const ps_histogram_map *map, const ps_histogram_moments *moments, int64_t p, uint64_t n, double *mean,
                           double *variance);

/* The median of a pixel's n finite values, as numpy.median: the mean of the two middle ones when n is even. In a bin that covers a single
 * integer it is exact, elsewhere values are taken as spread evenly over their bin; outside the range the nearest edge is taken. Never
 * outside [minimum, maximum]; 0 where n is 0. counts: [n_bins]. */
double ps_statistics_median(const ps_histogram_map *map, const uint64_t *counts, uint64_t underflow, uint64_t overflow, double minimum,
                            double maximum);
/* The fullest bin's centre (its integer, when it covers a single one), the lowest of equals; as for the median outside the range. */
double ps_statistics_mode(const ps_histogram_map *map, const uint64_t *counts, uint64_t underflow, uint64_t overflow, double minimum,
                          double maximum);

#endif
