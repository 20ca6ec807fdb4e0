#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "fit/fit.h"

static double complex wave(const ps_probe *probe, double k_row, double k_column) {
    double aperture = ps_probe_aperture(probe, k_row, k_column);
    return aperture > 0.0 ? aperture * cexp(-I * ps_probe_chi(probe, k_row, k_column)) : 0.0;
}

static double sinc(double x) {
    return x == 0.0 ? 1.0 : sin(x) / x;
}

/* T_phase of docs/physics.md section 3. */
static double complex transfer(const ps_probe *probe, double complex here, const double k[2], const double q[2]) {
    double q2 = q[0] * q[0] + q[1] * q[1], kq = 2.0 * (k[0] * q[0] + k[1] * q[1]);
    double drift = 2.0 * M_PI * (q[0] * probe->tilt_rad[0] + q[1] * probe->tilt_rad[1]), rate = M_PI * probe->wavelength_A;
    double w1 = sinc(0.5 * probe->thickness_A * (-rate * (q2 - kq) - drift)),
           w2 = sinc(0.5 * probe->thickness_A * (rate * (q2 + kq) - drift));
    if (here == 0.0) return 0.0;
    return I * (w1 * conj(here) * wave(probe, k[0] - q[0], k[1] - q[1]) - w2 * here * conj(wave(probe, k[0] + q[0], k[1] + q[1])));
}

/* k: [n_pixels, 2] and the wave there. */
static void place(const ps_trial *trial, const ps_fit_data *data, double *k, double complex *here) {
    for (int64_t i = 0; i < data->n_pixels; i++) {
        for (int axis = 0; axis < 2; axis++)
            k[2 * i + axis] = trial->to_k[axis][0] * data->row[i] + trial->to_k[axis][1] * data->column[i] + trial->to_k[axis][2];
        here[i] = wave(&trial->probe, k[2 * i], k[2 * i + 1]);
    }
}

/* What the model leaves of one frequency joins the sums: g times the conjugate of what the object that explains it best makes. */
static void add_frequency(const double complex *g, const double complex *row, int64_t n, double strength, double complex *sums) {
    double complex b = 0.0;
    double normal = 0.0;
    for (int64_t i = 0; i < n; i++) {
        b += conj(row[i]) * g[i];
        normal += creal(row[i] * conj(row[i]));
    }
    double complex x = b / (normal * (1.0 + strength) + 1e-300);
    for (int64_t i = 0; i < n; i++) sums[i] += g[i] * conj(x * row[i]);
}

ps_code ps_fit_find_residual(const ps_fit_data *data, const ps_optics *optics, double strength, double *residual, ps_error *error) {
    ps_trial trial;
    ps_code code = PS_OK;
    int64_t n = data->n_pixels;
    double complex *row = malloc((size_t)n * sizeof *row), *here = malloc((size_t)n * sizeof *here);
    double complex *sums = calloc((size_t)n, sizeof *sums);
    double *k = malloc(2 * (size_t)n * sizeof *k);
    PS_GO_ALLOC(error, row && here && sums && k);
    ps_fit_trial(optics, data->step_A, &trial);
    place(&trial, data, k, here);
    for (int64_t f = 0; f < data->n_frequencies; f++) {
        const double q[2] = {data->q_row[f] / trial.step_scale, data->q_column[f] / trial.step_scale};
#pragma omp parallel for
        for (int64_t i = 0; i < n; i++) row[i] = transfer(&trial.probe, here[i], k + 2 * i, q);
        add_frequency((const double complex *)data->spectra + f * n, row, n, strength, sums);
    }
    for (int64_t i = 0; i < n; i++) residual[i] = carg(sums[i]);
done:
    free(row);
    free(here);
    free(sums);
    free(k);
    return code;
}
