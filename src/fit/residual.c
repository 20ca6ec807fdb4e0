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
    return I * (w1 * conj(here) * wave(probe, k[0] - q[0], k[1] - q[1]) - w2 * here * conj(wave(probe, k[0] + q[0], k[1] + q[1])));
}

static void place(const ps_trial *trial, const ps_fit_data *data, int64_t pixel, double k[2]) {
    for (int axis = 0; axis < 2; axis++)
        k[axis] = trial->to_k[axis][0] * data->row[pixel] + trial->to_k[axis][1] * data->column[pixel] + trial->to_k[axis][2];
}

ps_code ps_fit_find_residual(const ps_fit_data *data, const ps_optics *optics, double strength, double *residual, ps_error *error) {
    ps_trial trial;
    ps_code code = PS_OK;
    int64_t n = data->n_pixels;
    double complex *row = malloc((size_t)n * sizeof *row), *sums = calloc((size_t)n, sizeof *sums);
    PS_GO_ALLOC(error, row);
    PS_GO_ALLOC(error, sums);
    ps_fit_trial(optics, data->step_A, &trial);
    for (int64_t f = 0; f < data->n_frequencies; f++) {
        const double complex *g = (const double complex *)data->spectra + f * n;
        const double q[2] = {data->q_row[f] / trial.step_scale, data->q_column[f] / trial.step_scale};
        double complex b = 0.0;
        double normal = 0.0;
        for (int64_t i = 0; i < n; i++) {
            double k[2];
            place(&trial, data, i, k);
            row[i] = transfer(&trial.probe, wave(&trial.probe, k[0], k[1]), k, q);
            b += conj(row[i]) * g[i];
            normal += creal(row[i] * conj(row[i]));
        }
        double complex x = b / (normal * (1.0 + strength) + 1e-300);
        for (int64_t i = 0; i < n; i++) sums[i] += g[i] * conj(x * row[i]);
    }
    for (int64_t i = 0; i < n; i++) residual[i] = carg(sums[i]);
done:
    free(row);
    free(sums);
    return code;
}
