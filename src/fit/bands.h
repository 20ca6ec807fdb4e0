/* The bands of a fit (spread.h) out of its data. Rank-local. */
#ifndef PS_FIT_BANDS_H
#define PS_FIT_BANDS_H

#include "fit/data.h"
#include "fit/spread.h"

/* All bands that the data are enough for, the whole one with the aliases of the upsampling: ps_fit_data_band. Freed by the caller, also
 * after an error. */
ps_code ps_fit_bands_make(const ps_fit_data *data, ps_backend *backend, const ps_optics *optics, int64_t upsampling, double strength,
                          ps_fit_spread *spread, ps_error *error);
/* What they take of the backend's memory: with n_pixels, and up to most_frequencies as for ps_fit_data_take. */
size_t ps_fit_bands_bytes(const ps_backend_ops *ops, int64_t n_pixels, int64_t most_frequencies, int64_t upsampling);
void ps_fit_bands_free(ps_fit_spread *spread);

#endif
