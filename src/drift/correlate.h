/* How far one image is shifted against another, by phase correlation: docs/drift.md. Rank-local. */
#ifndef PS_DRIFT_CORRELATE_H
#define PS_DRIFT_CORRELATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum { PS_DRIFT_MOST_PEAKS = 32, PS_DRIFT_LARGEST_SIDE = 1024 };

/* A place where the correlation has a maximum. */
typedef struct {
    double shift[2]; /* pixels, row and column: what stands at r in the first image stands at r + shift in the second */
    double height;   /* 1: the same image */
} ps_drift_peak;

typedef struct {
    int n;
    ps_drift_peak peaks[PS_DRIFT_MOST_PEAKS]; /* [n] the highest first */
} ps_drift_peaks;

/* Maxima of the phase correlation, which tells apart places that a lattice makes alike (is_phase), or of the plain one. first, second:
 * [rows, columns], finite. Neither is taken to go on periodically beyond its edges, but a shift beyond half the image is not found.
 * found->n may be 0: an image is constant, or too small (fewer than 4 pixels along an axis). */
ps_code ps_drift_find_peaks(int64_t rows, int64_t columns, const float *first, const float *second, bool is_phase, ps_drift_peaks *found,
                            ps_error *error);

/* A peak's place to a fraction of a pixel, from the parts of the images that overlap there: the maximum of their cross-correlation, in
 * which every frequency counts by its power. That tells a place ten times as well as the phase correlation does, which tells apart places
 * that a lattice makes alike. It moves by two pixels at most; its height stays. */
ps_code ps_drift_refine(int64_t rows, int64_t columns, const float *first, const float *second, ps_drift_peak *peak, ps_error *error);

/* How many pixels along each axis become one, so that the longer side is at most PS_DRIFT_LARGEST_SIDE. */
int64_t ps_drift_binning(int64_t rows, int64_t columns);
/* Means over factor x factor pixels; what is left at the end of an axis is left out. small: [rows / factor, columns / factor]. */
void ps_drift_bin(int64_t rows, int64_t columns, const float *image, int64_t factor, float *small);

#endif
