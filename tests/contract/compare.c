#include "contract/compare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static double ratio(double difference, double largest) {
    return largest > 0.0 ? difference / largest : difference;
}

double relative_difference(int64_t n, const double *found, const double *expected) {
    double difference = 0.0, largest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(found[i])) return NAN;
        difference = fmax(difference, fabs(found[i] - expected[i]));
        largest = fmax(largest, fabs(expected[i]));
    }
    return ratio(difference, largest);
}

double relative_mean_difference(int64_t n, const double *found, const double *expected) {
    double sum = 0.0, largest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += fabs(found[i] - expected[i]);
        largest = fmax(largest, fabs(expected[i]));
    }
    return ratio(sum / (double)n, largest);
}

double relative_difference_complex(int64_t n, const double *found, const double *expected) {
    double difference = 0.0, largest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(found[2 * i]) || isnan(found[2 * i + 1])) return NAN;
        difference = fmax(difference, hypot(found[2 * i] - expected[2 * i], found[2 * i + 1] - expected[2 * i + 1]));
        largest = fmax(largest, hypot(expected[2 * i], expected[2 * i + 1]));
    }
    return ratio(difference, largest);
}

void require_within(const char *backend, const char *where, const char *what, double difference, double tolerance) {
    if (getenv("PS_CONTRACT_VERBOSE")) printf("%-16s %-20s %-34s %10.2e (%.0e)\n", backend, where, what, difference, tolerance);
    if (!(difference <= tolerance)) fail_msg("%s, %s: %s differs by %.3g, allowed %.3g", backend, where, what, difference, tolerance);
}
