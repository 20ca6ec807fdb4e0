/* The data that a fit works with: g of a band of scan frequencies, taken once out of a frame. Rank-local but where it says so. */
#ifndef PS_FIT_DATA_H
#define PS_FIT_DATA_H

#include "cluster/cluster.h"
#include "kernels/trials.h"
#include "optics/plan.h"

/* Frequencies come by what they tell of the optics, most first: those with the largest (sum over k of |g|^2 - noise) |q|. The power alone
 * prefers the lowest, which a defocus hardly changes and which hold what is no phase (thickness, drift of the beam). A frequency and its
 * conjugate partner are one. */
typedef struct {
    int64_t n_pixels, n_frequencies;
    int32_t *row, *column;    /* [n_pixels] of the detector */
    double *q_row, *q_column; /* [n_frequencies] 1/Angstrom */
    double *power;            /* [n_frequencies] sum over k of |g|^2 */
    double *spectra;          /* [n_frequencies, n_pixels] complex */
    double noise_power;       /* of one frequency, from the dose alone */
    double dose;
    double step_A[2];
    int64_t scan_rows, scan_columns, detector_rows, detector_columns;
} ps_fit_data;

/* Reduces the frame (of a system created with PS_METHOD_MF from `plan`, at upsampling 1; all positions uploaded) and takes up to `most`
 * frequencies of it (0: as many as make about 200000 data with its pixels, 60 to 1000). PS_E_INPUT when there are none: every frequency
 * holds nothing above the noise of the dose. Owned by the caller. */
ps_code ps_fit_data_take(ps_frame *frame, const ps_plan *plan, double dose, int64_t most, ps_fit_data *data, ps_error *error);
/* How many frequencies are taken of that many pixels, if there are as many. */
int64_t ps_fit_data_frequencies(int64_t most, int64_t n_pixels);
/* Collective: rank 0's data to every rank. */
ps_code ps_fit_data_share(const ps_cluster *cluster, ps_fit_data *data, ps_error *error);
void ps_fit_data_free(ps_fit_data *data);

/* A band of its first n_frequencies, of `most_pixels` of its pixels (about; scattered; 0: all), with each frequency's aliases q + m/s
 * of the upsampling inside the aperture's reach of `optics` (1: q alone). */
ps_code ps_fit_data_band(const ps_fit_data *data, ps_backend *backend, const ps_optics *optics, int64_t upsampling, int64_t n_frequencies,
                         int64_t most_pixels, double strength, ps_band **band, double *power, ps_error *error);

#endif
