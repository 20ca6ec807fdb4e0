/* How far a shift between two images may be trusted: docs/drift.md. Rank-local. */
#ifndef PS_DRIFT_TRUST_H
#define PS_DRIFT_TRUST_H

#include "drift/correlate.h"

/* Below this (three standard deviations) a shift is not to be relied on: another explains the images nearly as well. */
#define PS_DRIFT_LOW_TRUST 0.5

/* 0 ... 1: z / (z + 3), where z is by how many standard deviations the images, where they overlap, are more alike at this shift than at the
 * rival that makes them most alike: any other maximum of their plain correlation, such as one a lattice vector away. 0 where a rival does
 * as well. n_independent: of an image's pixels, how many are not told by their neighbours. */
ps_code ps_drift_find_trust(int64_t rows, int64_t columns, const float *first, const float *second, double n_independent,
                            const double shift[2], double *trust, ps_error *error);

#endif
