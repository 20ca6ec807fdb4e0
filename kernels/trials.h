/* Explained power of many trial optics over a band of scan frequencies: the objective of docs/physics.md section 7.
 *
 * A band is g of some scan frequencies, taken once out of a frame and kept by the backend; every trial is one set of optics against all of
 * it, and many trials go into one call. A trial's value depends on nothing but the band and the trial: not on the other trials of the call,
 * their order, or the number of threads.
 *
 * For each frequency q with the aliases that the band lists (q alone is the usual choice) and T_phase of section 3,
 *
 *     N = T^H T      b = T^H g      explained = sum over q of b^H (N + D)^-1 b
 *
 * with D = strength * scale, scale the mean of N's diagonal over all aliases of the frequencies that are used. With one alias that is
 * |sum_k g conj(gamma)|^2 / (sum_k |gamma|^2 + D). */
#ifndef PS_KERNELS_TRIALS_H
#define PS_KERNELS_TRIALS_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One trial: a probe, where each detector pixel's k lies, and how far apart the scan's positions are. */
typedef struct {
    ps_probe probe;
    double to_k[2][3]; /* k_row, k_column = to_k (detector row, detector column, 1), 1/Angstrom, in the scan's axes */
    double step_scale; /* > 0: the scan step is this many times the band's, so that q is divided by it */
} ps_trial;

/* What a band is made of; a backend copies it. */
typedef struct {
    int64_t n_pixels;
    const int32_t *row, *column; /* [n_pixels] of the detector, each pixel once */
    int64_t n_frequencies;
    const int64_t *first_alias;     /* [n_frequencies + 1] into the alias arrays; 1 ... PS_MAX_ALIASES each */
    const double *q_row, *q_column; /* [aliases] 1/Angstrom, at the band's scan step */
    const double *spectra;          /* [n_frequencies, n_pixels] complex: g(q, k) */
    double strength;                /* > 0 */
} ps_band_desc;

typedef struct ps_band ps_band;

/* A backend's own way; each of its structs begins with ps_band. What the functions below check it need not check again. */
typedef struct ps_trial_ops {
    ps_code (*create)(ps_backend *backend, const ps_band_desc *desc, ps_band **band, ps_error *error);
    void (*destroy)(ps_band *band);
    ps_code (*explain)(ps_band *band, int64_t n_frequencies, int64_t n_trials, const ps_trial *trials, double *explained, ps_error *error);
    /* What a band takes of the backend's memory, n_aliases for each frequency. */
    size_t (*bytes)(int64_t n_pixels, int64_t n_frequencies, int64_t n_aliases);
} ps_trial_ops;

struct ps_band {
    const ps_trial_ops *ops;
    ps_backend *backend;
    int64_t n_frequencies;
};

/* The plain float64 way, on the host: what a backend without one of its own (ps_backend_ops.trials NULL) uses. */
extern const ps_trial_ops ps_trials_reference;

/* PS_E_ARGUMENT names what is wrong with desc. */
ps_code ps_band_create(ps_backend *backend, const ps_band_desc *desc, ps_band **band, ps_error *error);
void ps_band_destroy(ps_band *band); /* NULL is allowed */
/* What one takes of the backend's memory (a device's, where it computes on one) at most, with n_aliases for each frequency. */
size_t ps_band_bytes(const ps_backend_ops *ops, int64_t n_pixels, int64_t n_frequencies, int64_t n_aliases);
/* explained: [n_trials], of the band's first n_frequencies (1 ... all); to be divided by the sum of |g|^2 over them for a fraction. */
ps_code ps_band_explain(ps_band *band, int64_t n_frequencies, int64_t n_trials, const ps_trial *trials, double *explained, ps_error *error);

/* g(q, k) of several of a system's frequencies in one pass over the counts. spectra: [n, n_active] complex; dose and the frame as for
 * ps_frame_get_spectrum. */
ps_code ps_frame_get_spectra(ps_frame *frame, int64_t n, const int64_t *frequencies, double dose, double *spectra, ps_error *error);

#ifdef __cplusplus
}
#endif
#endif
