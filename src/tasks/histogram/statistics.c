#include "tasks/histogram/statistics.h"

#include <math.h>

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* The squares are summed about a whole number just below the mean, so that nothing cancels: sum (q - m)^2 = sum q^2 - 2 m sum q + n m^2,
 * exact in 128 bits, where wrapping in between does no harm. */
void ps_statistics_moments(const ps_histogram_map *map, const ps_histogram_moments *moments, int64_t p, uint64_t n, double *mean,
                           double *variance) {
    *mean = *variance = 0;
    if (n == 0) return;
    int128 sum = (int128)moments->sum_low[p] + ((int128)moments->sum_high[p] * ((int128)1 << 32));
    uint128 square = moments->square[0][p] + ((uint128)moments->square[1][p] << 32) + ((uint128)moments->square[2][p] << 64);
    int128 below = sum / (int128)n - (sum % (int128)n < 0);
    int128 rest = sum - below * (int128)n; /* 0 ... n - 1 */
    uint128 about = square - 2 * (uint128)below * (uint128)sum + (uint128)n * (uint128)below * (uint128)below;
    double unit = ldexp(1, map->unit_exponent), fraction = (double)rest / (double)n;
    *mean = unit * ((double)below + fraction);
    *variance = unit * unit * fmax(0, (double)about / (double)n - fraction * fraction);
}

static double clamp(double value, double minimum, double maximum) {
    return value < minimum ? minimum : value > maximum ? maximum : value;
}

/* True when bin i holds values of one integer only: *value. */
static bool single_integer(const ps_histogram_map *map, int64_t i, double *value) {
    if (map->dtype == PS_F32 || map->dtype == PS_F64) return false;
    *value = ceil(map->edges[i]);
    bool last = i == map->n_bins - 1;
    return last ? *value <= map->edges[i + 1] && *value + 1 > map->edges[i + 1]
                : *value < map->edges[i + 1] && *value + 1 >= map->edges[i + 1];
}

/* The rank-th smallest value, counted from 0. */
static double value_of_rank(const ps_histogram_map *map, const uint64_t *counts, uint64_t underflow, uint64_t rank) {
    double value;
    if (rank < underflow) return map->edges[0];
    rank -= underflow;
    for (int64_t i = 0; i < map->n_bins; i++) {
        if (rank < counts[i]) {
            if (single_integer(map, i, &value)) return value;
            return map->edges[i] + (map->edges[i + 1] - map->edges[i]) * ((double)rank + 0.5) / (double)counts[i];
        }
        rank -= counts[i];
    }
    return map->edges[map->n_bins];
}

double ps_statistics_median(const ps_histogram_map *map, const uint64_t *counts, uint64_t underflow, uint64_t overflow, double minimum,
                            double maximum) {
    uint64_t n = underflow + overflow;
    for (int64_t i = 0; i < map->n_bins; i++) n += counts[i];
    if (n == 0) return 0;
    double lower = clamp(value_of_rank(map, counts, underflow, (n - 1) / 2), minimum, maximum);
    double upper = clamp(value_of_rank(map, counts, underflow, n / 2), minimum, maximum);
    return lower + 0.5 * (upper - lower);
}

double ps_statistics_mode(const ps_histogram_map *map, const uint64_t *counts, uint64_t underflow, uint64_t overflow, double minimum,
                          double maximum) {
    int64_t fullest = 0;
    double value;
    if (!(minimum <= maximum)) return 0;
    for (int64_t i = 1; i < map->n_bins; i++)
        if (counts[i] > counts[fullest]) fullest = i;
    if (counts[fullest] == 0) return clamp(underflow >= overflow ? map->edges[0] : map->edges[map->n_bins], minimum, maximum);
    if (single_integer(map, fullest, &value)) return value;
    return clamp(0.5 * (map->edges[fullest] + map->edges[fullest + 1]), minimum, maximum);
}
