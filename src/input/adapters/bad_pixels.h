/* Finds detector pixels that count what is not there. */
#ifndef PS_INPUT_ADAPTERS_BAD_PIXELS_H
#define PS_INPUT_ADAPTERS_BAD_PIXELS_H

#include <stdint.h>

#include "core/error.h"

/* Hot pixels of a mean pattern. A pixel is hot when its mean exceeds the third-highest of its good neighbours in the 5 x 5 window, and
 * their median, by more than sigma times the noise: the counting noise of a mean over n_positions, and the scatter of the neighbours
 * (1.4826 x median absolute deviation), in quadrature. The third-highest keeps the rim of a bright disc from being taken for hot, and
 * still finds hot clusters of up to three pixels.
 *
 * mean: [rows, columns] counts per position; bad: [rows, columns] pixels to ignore, may be NULL; hot: [rows, columns], 1 or 0;
 * sigma > 0. Pixels that are bad or not finite are never hot and never counted as neighbours. */
ps_code ps_hot_pixels(const double *mean, int64_t n_positions, int64_t rows, int64_t columns, double sigma, const uint8_t *bad,
                      uint8_t *hot, int64_t *n_hot, ps_error *error);

#endif
