#include "fit/bands.h"

enum { COARSE_FREQUENCIES = 60, COARSE_PIXELS = 1000, THIN_PIXELS = 128 };

ps_code ps_fit_bands_make(const ps_fit_data *data, ps_backend *backend, const ps_optics *optics, int64_t upsampling, double strength,
                          ps_fit_spread *spread, ps_error *error) {
    static const int64_t pixels[PS_FIT_MOST_BANDS] = {[PS_FIT_COARSE] = COARSE_PIXELS, [PS_FIT_THIN] = THIN_PIXELS};
    int64_t coarse = data->n_frequencies < COARSE_FREQUENCIES ? data->n_frequencies : COARSE_FREQUENCIES;
    for (int i = 0; i < PS_FIT_MOST_BANDS; i++) {
        if (i == PS_FIT_THIN && data->n_pixels < 2 * THIN_PIXELS) continue;
        bool is_whole = i == PS_FIT_WHOLE;
        spread->n_frequencies[i] = is_whole ? data->n_frequencies : coarse;
        PS_TRY(ps_fit_data_band(data, backend, optics, is_whole ? upsampling : 1, spread->n_frequencies[i], pixels[i], strength,
                                &spread->bands[i], &spread->power[i], error));
    }
    return PS_OK;
}

size_t ps_fit_bands_bytes(const ps_backend_ops *ops, int64_t n_pixels, int64_t most_frequencies, int64_t upsampling) {
    int64_t n = ps_fit_data_frequencies(most_frequencies, n_pixels), aliases = upsampling * upsampling;
    if (aliases > PS_MAX_ALIASES) aliases = PS_MAX_ALIASES;
    return ps_band_bytes(ops, n_pixels, n, aliases) +
           2 * ps_band_bytes(ops, n_pixels < COARSE_PIXELS ? n_pixels : 2 * COARSE_PIXELS, COARSE_FREQUENCIES, 1);
}

void ps_fit_bands_free(ps_fit_spread *spread) {
    for (int i = 0; i < PS_FIT_MOST_BANDS; i++) {
        ps_band_destroy(spread->bands[i]);
        spread->bands[i] = NULL;
    }
}
