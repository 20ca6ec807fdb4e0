#include "bench/problem.h"

#include <math.h>

const ps_bench_problem ps_bench_published = {"S: 512 x 512 scan, 192 x 192 detector, U = 3", 512, 192, 54.4, 0};
const ps_bench_problem ps_bench_published_u1 = {"S at U = 1", 512, 192, 54.4, 1};
const ps_bench_problem ps_bench_small = {"48 x 48 scan, 96 x 96 detector, U = 3", 48, 96, 27.2, 0};
const ps_bench_problem ps_bench_tiny = {"17 x 20 scan, 40 x 40 detector, U = 3", 20, 40, 12.0, 0};

static const double aberrations_A[PS_N_ABERRATIONS] = {-105.0, 25.0, 900.0, 700.0, 2e4, 8e3, 5e3, 3e5, 2e5, 2e5, 4e6, 2e6, 2e6, 2e6};
static const double angles_rad[PS_N_ABERRATIONS] = {0.0, 0.4, 1.1, -0.7, 0.0, 0.9, -0.2, 0.5, 2.0, -1.3, 0.0, 0.3, -0.5, 0.8};

ps_code ps_bench_problem_plan_at(const ps_bench_problem *problem, double step_A, ps_plan *plan, ps_error *error) {
    double pitch = 30.0 / problem->disc_px, centre = 0.5 * (double)(problem->detector - 1);
    ps_optics optics = {.voltage_V = 300e3,
                        .semiangle_mrad = 30.0,
                        .scan_step_A = {step_A, step_A},
                        .detector_pitch_mrad = {pitch, pitch},
                        .detector_center_px = {centre + 0.3, centre - 0.2},
                        .rotation_deg = 176.3,
                        .tilt_mrad = {5.92, -0.07},
                        .thickness_A = 124.0};
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        optics.C_A[i] = aberrations_A[i];
        optics.angle_rad[i] = angles_rad[i];
    }
    int64_t rows = problem->scan == ps_bench_tiny.scan ? problem->scan - 3 : problem->scan; /* the checks' scan is not square */
    ps_plan_options options = {.scan_rows = rows,
                               .scan_columns = problem->scan,
                               .detector_rows = problem->detector,
                               .detector_columns = problem->detector,
                               .upsampling = problem->upsampling,
                               .smoothness_phase_inv_A = 1.0,
                               .smoothness_complex_inv_A = INFINITY};
    return ps_plan_build(&optics, &options, plan, error);
}

ps_code ps_bench_problem_plan(const ps_bench_problem *problem, ps_plan *plan, ps_error *error) {
    return ps_bench_problem_plan_at(problem, 0.373, plan, error);
}

double ps_bench_overlaps(const ps_plan *plan) {
    const ps_system_desc *desc = &plan->desc;
    double radius = desc->probe.semiangle_rad / desc->probe.wavelength_A, sum = 0.0;
    for (int64_t i = 1; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        for (int64_t a = f->first_alias; a < f->first_alias + f->n_aliases; a++) {
            double x = hypot(desc->q_row[a], desc->q_column[a]) / (2.0 * radius);
            if (x < 1.0) sum += 2.0 / M_PI * (acos(x) - x * sqrt(1.0 - x * x)); /* of the disc's area */
        }
    }
    return 2.0 * sum * (double)desc->n_active;
}
