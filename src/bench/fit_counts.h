/* Counts of a made-up phase object under known optics, for timing a fit of them. */
#ifndef PS_BENCH_FIT_COUNTS_H
#define PS_BENCH_FIT_COUNTS_H

#include "kernels/backend.h"
#include "optics/optics.h"

typedef struct {
    const char *name;
    ps_optics optics; /* complete; no thickness */
    int64_t scan, detector;
    double mean; /* counts a pixel in the disc */
} ps_bench_fit_case;

/* Uploads all positions of a uint16 frame. The object is a sum of weak waves, so that g is their transfer and what counting adds. */
ps_code ps_bench_fit_upload(const ps_bench_fit_case *problem, ps_frame *frame, ps_error *error);

#endif
