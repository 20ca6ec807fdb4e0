/* Comparators: difference <= tolerance, so that NaN fails. */
#ifndef PS_TESTS_CONTRACT_COMPARE_H
#define PS_TESTS_CONTRACT_COMPARE_H

#include <stdint.h>

/* Largest |found - expected| over the largest |expected| (entries as they are; 1 when all expected are 0). NaN when any found is. */
double relative_difference(int64_t n, const double *found, const double *expected);
/* The same for `n` complex values stored as pairs, by magnitude. */
double relative_difference_complex(int64_t n, const double *found, const double *expected);
/* The mean of |found - expected| over the largest |expected|, where a few values cannot be compared. */
double relative_mean_difference(int64_t n, const double *found, const double *expected);
/* Fails the test, naming what differs, unless difference <= tolerance. */
void require_within(const char *backend, const char *where, const char *what, double difference, double tolerance);

#endif
