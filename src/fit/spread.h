/* Trial optics evaluated by all ranks: rank 0 asks, every rank tries its part of each call, rank 0 gets all values. What is asked is rank
 * 0's decision alone, so that ranks cannot come to different ones; and a trial's value does not depend on who tries it, so that the answer
 * is the same on any number of ranks. */
#ifndef PS_FIT_SPREAD_H
#define PS_FIT_SPREAD_H

#include "cluster/cluster.h"
#include "kernels/trials.h"

/* What the bands of a fit are: of strong frequencies and up to a thousand pixels for the global stage; everything; and of few pixels, for a
 * glance at a large grid, which may be missing. */
enum { PS_FIT_COARSE, PS_FIT_WHOLE, PS_FIT_THIN, PS_FIT_MOST_BANDS };

typedef struct {
    const ps_cluster *cluster;
    ps_band *bands[PS_FIT_MOST_BANDS]; /* of this rank, the same on all */
    int64_t n_frequencies[PS_FIT_MOST_BANDS];
    double power[PS_FIT_MOST_BANDS]; /* of a whole band: values are fractions of it */
    int64_t n_evaluations;           /* rank 0: trials so far */
    ps_code served;                  /* elsewhere: what serving came to */
} ps_fit_spread;

/* Rank 0. fractions: [n] of the band's power. An error of any rank is everyone's, and ends the serving. */
ps_code ps_fit_spread_try(ps_fit_spread *spread, int band, int64_t n, const ps_trial *trials, double *fractions, ps_error *error);
/* Every other rank: helps until rank 0 releases it, or an error ends it. */
ps_code ps_fit_spread_serve(ps_fit_spread *spread, ps_error *error);
/* Rank 0, once, when it will not ask again; nothing happens where an error of ps_fit_spread_try ended the serving already. */
ps_code ps_fit_spread_release(ps_fit_spread *spread, ps_error *error);

#endif
