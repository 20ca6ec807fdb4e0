/* Optics from the data: starts, a grid, local searches, errors. Rank 0 calls it; the other ranks serve its spread. docs/fit.md. */
#ifndef PS_FIT_FIT_H
#define PS_FIT_FIT_H

#include "fit/curvature.h"
#include "fit/data.h"
#include "fit/grid.h"
#include "fit/start.h"

typedef struct {
    bool automatic;             /* rotation, transposition, C10 and C12; then third and fourth order as the data allow */
    bool free[PS_FIT_N_NAMES];  /* otherwise: quantities by number */
    bool transpose;             /* the transposition is free: both are tried */
    bool flips;                 /* the flips are free: all four are tried */
    bool given[PS_FIT_N_NAMES]; /* the optics give it: where the search starts, and stays near */
    bool bounded[PS_FIT_N_NAMES];
    double low[PS_FIT_N_NAMES], high[PS_FIT_N_NAMES]; /* where bounded; of an aberration with an angle, high alone: the largest size */
} ps_fit_options;

enum { PS_FIT_NOTE = 256, PS_FIT_MOST_NOTES = 24, PS_FIT_LANDSCAPE = 41 };

typedef struct {
    ps_optics start, optics; /* before and after */
    ps_fit_parameters parameters;
    double values[PS_FIT_MOST_PARAMETERS];
    ps_fit_curvature curvature;
    double before, after; /* explained, of the band's power */
    double floor;         /* what optics that are wrong explain: the median over rotations and defoci */
    double twin;          /* what the twin explains: with everything else the same, as much */
    double noise_per_datum;
    int64_t n_evaluations;
    ps_fit_curl curl;
    ps_fit_shifts shifts;
    ps_fit_rectangle landscape;
    double landscape_values[PS_FIT_LANDSCAPE * PS_FIT_LANDSCAPE]; /* [rotations, defoci] around the answer */
    int n_notes;
    char notes[PS_FIT_MOST_NOTES][PS_FIT_NOTE]; /* what a user should know: what cannot be told, what was left out */
} ps_fit_result;

/* spread: its coarse and whole band, and the thin one where there is one. start: complete optics. PS_E_INPUT when no optics explain the
 * data clearly better than others do: then nothing can be told. */
ps_code ps_fit_run(ps_fit_spread *spread, const ps_fit_data *data, const ps_optics *start, const ps_fit_options *options,
                   ps_fit_result *result, ps_error *error);

/* Turns a result into its twin: optics, values, correlations, landscape. */
void ps_fit_turn(ps_fit_result *result, const double step_A[2]);

/* Each pixel's phase between the data and what the optics make of the phase object that explains them best, rad: where it is not 0 but for
 * noise, the optics leave something unexplained. residual: [n_pixels] of the data. */
ps_code ps_fit_find_residual(const ps_fit_data *data, const ps_optics *optics, double strength, double *residual, ps_error *error);

/* How much of the defocus is wrong where optics were not fitted: the best C10 and rotation near those of `optics`, everything else kept. In
 * `better` the optics with them; gain: of likelihood, in standard deviations. */
ps_code ps_fit_look_beside(ps_fit_spread *spread, const ps_fit_data *data, const ps_optics *optics, ps_optics *better, double *gain,
                           ps_error *error);

#endif
