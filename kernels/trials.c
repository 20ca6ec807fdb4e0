/* The functions of kernels/trials.h: arguments are checked, then the backend's way or the plain one is called. */
#include "kernels/trials.h"

#include <math.h>

#include "kernels/backend_check.h"

static ps_code check_aliases(const ps_band_desc *desc, ps_error *error) {
    if (desc->first_alias[0] != 0)
        return PS_FAIL(error, PS_E_ARGUMENT, "first_alias[0] is %lld, expected 0", (long long)desc->first_alias[0]);
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        int64_t n = desc->first_alias[i + 1] - desc->first_alias[i];
        if (n < 1 || n > PS_MAX_ALIASES)
            return PS_FAIL(error, PS_E_ARGUMENT, "frequency %lld of the band has %lld aliases, expected 1 to %d", (long long)i,
                           (long long)n, PS_MAX_ALIASES);
    }
    for (int64_t a = 0; a < desc->first_alias[desc->n_frequencies]; a++)
        if (!isfinite(desc->q_row[a]) || !isfinite(desc->q_column[a]))
            return PS_FAIL(error, PS_E_ARGUMENT, "alias %lld of the band is at (%g, %g), expected finite", (long long)a, desc->q_row[a],
                           desc->q_column[a]);
    return PS_OK;
}

static ps_code check_pixels(const ps_band_desc *desc, ps_error *error) {
    for (int64_t i = 0; i < desc->n_pixels; i++)
        if (desc->row[i] < 0 || desc->column[i] < 0)
            return PS_FAIL(error, PS_E_ARGUMENT, "pixel %lld of the band is at (%d, %d), expected 0 or more", (long long)i, desc->row[i],
                           desc->column[i]);
    for (int64_t i = 0; i < 2 * desc->n_frequencies * desc->n_pixels; i++)
        if (!isfinite(desc->spectra[i]))
            return PS_FAIL(error, PS_E_ARGUMENT, "g of the band holds %g at frequency %lld, expected finite values", desc->spectra[i],
                           (long long)(i / (2 * desc->n_pixels)));
    return PS_OK;
}

static const ps_trial_ops *ops_of(const ps_backend_ops *ops) {
    return ops->trials ? ops->trials : &ps_trials_reference;
}

size_t ps_band_bytes(const ps_backend_ops *ops, int64_t n_pixels, int64_t n_frequencies, int64_t n_aliases) {
    return ops_of(ops)->bytes(n_pixels, n_frequencies, n_aliases);
}

ps_code ps_band_create(ps_backend *backend, const ps_band_desc *desc, ps_band **band, ps_error *error) {
    PS_CHECK_POINTER(backend);
    PS_CHECK_POINTER(desc);
    PS_CHECK_POINTER(band);
    *band = NULL;
    const void *arrays[] = {desc->row, desc->column, desc->first_alias, desc->q_row, desc->q_column, desc->spectra};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        PS_TRY(ps_check_pointer("ps_band_create", "an array of the band", arrays[i], error));
        PS_TRY(ps_check_host("ps_band_create", "an array of the band", backend, arrays[i], error));
    }
    if (desc->n_pixels < 1 || desc->n_frequencies < 1)
        return PS_FAIL(error, PS_E_ARGUMENT, "a band of %lld pixels and %lld frequencies, expected 1 or more of each",
                       (long long)desc->n_pixels, (long long)desc->n_frequencies);
    PS_TRY(ps_check_positive("strength of a band", 1, &desc->strength, error));
    PS_TRY(check_aliases(desc, error));
    PS_TRY(check_pixels(desc, error));
    const ps_trial_ops *ops = ops_of(backend->ops);
    PS_TRY(ops->create(backend, desc, band, error));
    (*band)->ops = ops;
    (*band)->backend = backend;
    (*band)->n_frequencies = desc->n_frequencies;
    return PS_OK;
}

void ps_band_destroy(ps_band *band) {
    if (band) band->ops->destroy(band);
}

static ps_code check_trial(int64_t at, const ps_trial *trial, ps_error *error) {
    const ps_probe *probe = &trial->probe;
    bool positive = probe->wavelength_A > 0.0 && probe->semiangle_rad > 0.0 && probe->pitch_rad[0] > 0.0 && probe->pitch_rad[1] > 0.0 &&
                    trial->step_scale > 0.0 && probe->thickness_A >= 0.0;
    double sum = probe->wavelength_A + probe->semiangle_rad + probe->pitch_rad[0] + probe->pitch_rad[1] + probe->thickness_A +
                 probe->tilt_rad[0] + probe->tilt_rad[1] + trial->step_scale;
    for (int i = 0; i < PS_N_ABERRATIONS; i++) sum += probe->C_A[i] + probe->angle_rad[i];
    for (int i = 0; i < 6; i++) sum += trial->to_k[i / 3][i % 3];
    if (!positive || !isfinite(sum))
        return PS_FAIL(error, PS_E_ARGUMENT,
                       "trial %lld: expected finite values and a wavelength, semiangle, pitch and step scale above 0, a thickness of 0 "
                       "or more",
                       (long long)at);
    if (probe->mirrored_probe) return PS_FAIL(error, PS_E_ARGUMENT, "trial %lld: a mirrored probe is not fitted", (long long)at);
    return PS_OK;
}

ps_code ps_band_explain(ps_band *band, int64_t n_frequencies, int64_t n_trials, const ps_trial *trials, double *explained,
                        ps_error *error) {
    PS_CHECK_POINTER(band);
    if (n_frequencies < 1 || n_frequencies > band->n_frequencies)
        return PS_FAIL(error, PS_E_ARGUMENT, "%lld frequencies of a band, expected 1 to %lld", (long long)n_frequencies,
                       (long long)band->n_frequencies);
    if (n_trials < 0) return PS_FAIL(error, PS_E_ARGUMENT, "%lld trials, expected 0 or more", (long long)n_trials);
    if (n_trials == 0) return PS_OK;
    PS_CHECK_POINTER(trials);
    PS_CHECK_POINTER(explained);
    PS_CHECK_HOST(band->backend, trials);
    PS_CHECK_HOST(band->backend, explained);
    for (int64_t i = 0; i < n_trials; i++) PS_TRY(check_trial(i, &trials[i], error));
    return band->ops->explain(band, n_frequencies, n_trials, trials, explained, error);
}

ps_code ps_frame_get_spectra(ps_frame *frame, int64_t n, const int64_t *frequencies, double dose, double *spectra, ps_error *error) {
    PS_CHECK_POINTER(frame);
    if (n < 0) return PS_FAIL(error, PS_E_ARGUMENT, "%lld frequencies, expected 0 or more", (long long)n);
    if (n == 0) return PS_OK;
    PS_CHECK_POINTER(frequencies);
    PS_CHECK_POINTER(spectra);
    PS_CHECK_HOST(frame->system->backend, frequencies);
    PS_CHECK_HOST(frame->system->backend, spectra);
    for (int64_t i = 0; i < n; i++) PS_TRY(ps_check_frequency(frame->system, frequencies[i], error));
    PS_TRY(ps_check_positive("dose of frame", 1, &dose, error));
    PS_TRY(ps_check_complete(frame, error));
    if (frame->ops->get_spectra) return frame->ops->get_spectra(frame, n, frequencies, dose, spectra, error);
    for (int64_t i = 0; i < n; i++)
        PS_TRY(frame->ops->get_spectrum(frame, frequencies[i], dose, spectra + 2 * i * frame->system->n_active, error));
    return PS_OK;
}
