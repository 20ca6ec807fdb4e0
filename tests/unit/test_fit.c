/* The parts of a fit of optics: parameters and trials, twins, starts from made-up data, eigenvalues, aliases, and the whole on a perfect
 * band, whose optics must come out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/aliases.h"
#include "fit/fit.h"
#include "kernels/backend_list.h"

enum { SIDE = 17, N_PIXELS = SIDE * SIDE };

#define REQUIRE_OK(expression)                                                  \
    do {                                                                        \
        ps_error error = {0};                                                   \
        if ((expression) != PS_OK) fail_msg("%s: %s", #expression, error.text); \
    } while (0)

static ps_optics some_optics(void) {
    ps_optics optics = {.voltage_V = 80000,
                        .semiangle_mrad = 25,
                        .scan_step_A = {0.7, 0.6},
                        .detector_pitch_mrad = {3.6, 3.3},
                        .detector_center_px = {8.2, 7.7},
                        .rotation_deg = 67,
                        .detector_transpose = true,
                        .detector_flip = {true, false},
                        .C_A = {-120, 35, 800, 500},
                        .angle_rad = {0, 0.6, -1.2, 0.2},
                        .tilt_mrad = {3, -2},
                        .thickness_A = 40};
    return optics;
}

static void a_trial_lies_where_the_optics_put_pixels(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        ps_optics optics = some_optics();
        ps_trial trial;
        double row[N_PIXELS], column[N_PIXELS];
        const double step[2] = {0.5 * optics.scan_step_A[0], 0.5 * optics.scan_step_A[1]};
        optics.detector_transpose = i & 1;
        optics.detector_flip[0] = i & 2;
        optics.detector_flip[1] = i & 4;
        ps_optics_k(&optics, SIDE, SIDE, row, column);
        ps_fit_trial(&optics, step, &trial);
        assert_true(fabs(trial.step_scale - 2.0) <= 1e-12);
        for (int p = 0; p < N_PIXELS; p++) {
            double found[2];
            for (int axis = 0; axis < 2; axis++)
                found[axis] = trial.to_k[axis][0] * (p / SIDE) + trial.to_k[axis][1] * (p % SIDE) + trial.to_k[axis][2];
            assert_true(fabs(found[0] - row[p]) <= 1e-12 && fabs(found[1] - column[p]) <= 1e-12);
        }
    }
}

static void parameters_go_there_and_back(void **state) {
    (void)state;
    const ps_optics optics = some_optics();
    ps_optics changed = {0};
    ps_fit_parameters parameters = {0};
    double values[PS_FIT_MOST_PARAMETERS], again[PS_FIT_MOST_PARAMETERS];
    for (int q = 0; q < PS_FIT_N_NAMES; q++) {
        assert_int_equal(ps_fit_find_name(ps_fit_name(q)), q);
        ps_fit_add(&parameters, q, &optics);
        assert_true(ps_fit_has(&parameters, q));
    }
    int n = parameters.n;
    ps_fit_add(&parameters, ps_fit_find_name("C12"), &optics);
    assert_int_equal(parameters.n, n);
    assert_int_equal(ps_fit_find_name("C11"), -1);
    changed = optics;
    memset(changed.C_A, 0, sizeof changed.C_A);
    changed.rotation_deg = 0;
    ps_fit_read(&parameters, &optics, optics.scan_step_A, values);
    ps_fit_apply(&parameters, values, optics.scan_step_A, &changed);
    ps_fit_read(&parameters, &changed, optics.scan_step_A, again);
    for (int i = 0; i < n; i++) assert_true(fabs(again[i] - values[i]) <= 1e-9 * (1.0 + fabs(values[i])));
    for (int i = 0; i < n; i++) assert_true(parameters.items[i].size > 0.0 && parameters.items[i].low < parameters.items[i].high);
}

/* One natural size of any aberration is one radian at the rim, where it is largest. */
static void natural_sizes_are_one_radian(void **state) {
    (void)state;
    for (int term = 0; term < PS_N_ABERRATIONS; term++) {
        ps_optics optics = some_optics();
        ps_fit_parameters parameters = {0};
        ps_probe probe;
        memset(optics.C_A, 0, sizeof optics.C_A);
        memset(optics.angle_rad, 0, sizeof optics.angle_rad);
        ps_fit_add(&parameters, ps_fit_quantity_of_term(term), &optics);
        optics.C_A[term] = parameters.items[0].size;
        ps_optics_probe(&optics, &probe);
        assert_true(fabs(ps_probe_chi(&probe, probe.semiangle_rad / probe.wavelength_A, 0.0) - 1.0) <= 1e-9);
    }
}

static double chi_at(const ps_optics *optics, double row, double column) {
    ps_probe probe;
    ps_optics_probe(optics, &probe);
    return ps_probe_chi(&probe, row, column);
}

/* chi'(k) = -chi(-k), and the twin of the twin is where one began. */
static void twins_negate_even_terms(void **state) {
    (void)state;
    ps_optics optics = some_optics(), twin, back;
    for (int i = 0; i < PS_N_ABERRATIONS; i++) optics.C_A[i] = pow(40.0, ps_aberration_orders[i][0]), optics.angle_rad[i] = 0.1 * i;
    ps_fit_twin(&optics, &twin);
    ps_fit_twin(&twin, &back);
    for (int i = 0; i < 20; i++) {
        double row = 0.5 * cos(i), column = 0.45 * sin(1.7 * i), here = chi_at(&optics, row, column);
        assert_true(fabs(chi_at(&twin, -row, -column) + here) <= 1e-9 * (1.0 + fabs(here)));
        assert_true(fabs(chi_at(&back, row, column) - here) <= 1e-9 * (1.0 + fabs(here)));
    }
    assert_true(fabs(remainder(twin.rotation_deg - optics.rotation_deg - 180.0, 360.0)) <= 1e-9);
    assert_true(fabs(back.rotation_deg - optics.rotation_deg) <= 1e-9);
    assert_true(twin.tilt_mrad[0] == -optics.tilt_mrad[0] && twin.tilt_mrad[1] == -optics.tilt_mrad[1]);
}

static void eigenvectors_are_found(void **state) {
    (void)state;
    enum { N = 7 };
    double matrix[N * N], kept[N * N], values[N], vectors[N * N];
    for (int i = 0; i < N * N; i++) matrix[i] = 1.0 / (1.0 + i / N + i % N) + (i % (N + 1) == 0 ? 0.1 * i : 0.0);
    memcpy(kept, matrix, sizeof matrix);
    ps_fit_eigen(N, matrix, values, vectors);
    for (int e = 0; e < N; e++) {
        assert_true(e == 0 || values[e] >= values[e - 1]);
        for (int i = 0; i < N; i++) {
            double sum = 0.0, dot = 0.0;
            for (int j = 0; j < N; j++) sum += kept[i * N + j] * vectors[e * N + j], dot += vectors[e * N + j] * vectors[i * N + j];
            assert_true(fabs(sum - values[e] * vectors[e * N + i]) <= 1e-12);
            assert_true(fabs(dot - (e == i)) <= 1e-12);
        }
    }
}

/* Against the plan of a reconstruction, which lists them from the fine grid. */
static void aliases_are_those_of_the_plan(void **state) {
    (void)state;
    const ps_optics optics = some_optics();
    const ps_plan_options options = {.scan_rows = 8,
                                     .scan_columns = 7,
                                     .detector_rows = SIDE,
                                     .detector_columns = SIDE,
                                     .upsampling = 3,
                                     .smoothness_phase_inv_A = INFINITY,
                                     .smoothness_complex_inv_A = INFINITY};
    ps_plan plan;
    REQUIRE_OK(ps_plan_build(&optics, &options, &plan, &error));
    double limit = 2e-3 * (optics.semiangle_mrad + 0.5 * 3.6) / ps_wavelength_A(optics.voltage_V);
    for (int64_t i = 1; i < plan.desc.n_frequencies; i++) {
        const ps_frequency *f = &plan.desc.frequencies[i];
        double q_row = (f->row > 4    ? f->row - 8
                        : f->row == 4 ? -4
                                      : f->row) /
                       (8 * 0.7),
               q_column = (f->column > 3 ? f->column - 7 : f->column) / (7 * 0.6);
        ps_fit_aliases found;
        REQUIRE_OK(ps_fit_aliases_list(1, &q_row, &q_column, optics.scan_step_A, 3, limit, &found, &error));
        bool itself = false;
        double sums[4] = {0};
        for (int64_t a = 0; a < f->n_aliases; a++) {
            double row = plan.desc.q_row[f->first_alias + a], column = plan.desc.q_column[f->first_alias + a];
            itself = itself || (fabs(row - q_row) < 1e-9 && fabs(column - q_column) < 1e-9);
            sums[0] += row * row + 0.3 * row, sums[1] += column * column + 0.3 * column;
        }
        assert_int_equal(found.first[1], f->n_aliases + !itself);
        for (int64_t a = itself ? 0 : 1; a < found.first[1]; a++) {
            sums[2] += found.q_row[a] * found.q_row[a] + 0.3 * found.q_row[a];
            sums[3] += found.q_column[a] * found.q_column[a] + 0.3 * found.q_column[a];
        }
        assert_true(fabs(sums[0] - sums[2]) <= 1e-9 && fabs(sums[1] - sums[3]) <= 1e-9);
        ps_fit_aliases_free(&found);
    }
    ps_plan_free(&plan);
}

/* ---- a band that the optics make exactly ---- */

static double complex wave(const ps_probe *probe, double row, double column) {
    return ps_probe_aperture(probe, row, column) * cexp(-I * ps_probe_chi(probe, row, column));
}

static void fill_frequency(const ps_optics *optics, const ps_probe *probe, ps_fit_data *data, int64_t f, double complex x) {
    double row[N_PIXELS], column[N_PIXELS], q[2] = {data->q_row[f], data->q_column[f]};
    ps_optics_k(optics, SIDE, SIDE, row, column);
    data->power[f] = 0.0;
    for (int64_t p = 0; p < N_PIXELS; p++) {
        double complex here = wave(probe, row[p], column[p]);
        double complex g =
            x * I * (conj(here) * wave(probe, row[p] - q[0], column[p] - q[1]) - here * conj(wave(probe, row[p] + q[0], column[p] + q[1])));
        data->spectra[2 * (f * N_PIXELS + p)] = creal(g);
        data->spectra[2 * (f * N_PIXELS + p) + 1] = cimag(g);
        data->power[f] += creal(g * conj(g));
    }
}

static void make_data(const ps_optics *optics, ps_fit_data *data) {
    enum { MOST = 80 };
    ps_probe probe;
    ps_optics_probe(optics, &probe);
    *data = (ps_fit_data){.n_pixels = N_PIXELS,
                          .step_A = {optics->scan_step_A[0], optics->scan_step_A[1]},
                          .dose = 1.0,
                          .scan_rows = 160,
                          .scan_columns = 180,
                          .detector_rows = SIDE,
                          .detector_columns = SIDE};
    data->row = malloc(N_PIXELS * sizeof *data->row);
    data->column = malloc(N_PIXELS * sizeof *data->column);
    data->q_row = malloc(MOST * sizeof *data->q_row);
    data->q_column = malloc(MOST * sizeof *data->q_column);
    data->power = malloc(MOST * sizeof *data->power);
    data->spectra = malloc(2 * MOST * N_PIXELS * sizeof *data->spectra);
    for (int32_t p = 0; p < N_PIXELS; p++) data->row[p] = p / SIDE, data->column[p] = p % SIDE;
    for (int r = -6; r <= 6; r++)
        for (int c = 0; c <= 6; c++) {
            double row = r / 28.0, column = c / 24.0;
            if (data->n_frequencies == MOST || (c == 0 && r <= 0) || hypot(row, column) > 0.5) continue;
            data->q_row[data->n_frequencies] = row;
            data->q_column[data->n_frequencies++] = column;
            fill_frequency(optics, &probe, data, data->n_frequencies - 1, cexp(I * (1.3 * r + 0.7 * c * c)));
        }
}

static void starts_tell_what_made_the_data(void **state) {
    (void)state;
    for (int transpose = 0; transpose < 2; transpose++) {
        ps_optics optics = some_optics();
        ps_fit_data data;
        ps_fit_curl curl;
        ps_fit_shifts shifts;
        memset(optics.C_A, 0, sizeof optics.C_A);
        optics.thickness_A = 0.0;
        optics.detector_transpose = transpose;
        optics.C_A[0] = 150.0;
        make_data(&optics, &data);
        ps_fit_find_curl(&data, &optics, &curl);
        assert_int_equal(curl.transpose, transpose);
        assert_true(fabs(remainder(curl.rotation_deg[transpose] - optics.rotation_deg, 180.0)) <= 3.0);
        assert_true(curl.trust > 0.5);
        ps_fit_data_free(&data);
        optics.C_A[0] = 900.0;
        optics.C_A[1] = 200.0;
        make_data(&optics, &data);
        REQUIRE_OK(ps_fit_find_shifts(&data, &optics, &shifts, &error));
        assert_int_equal(shifts.transpose, transpose);
        assert_true(fabs(remainder(shifts.rotation_deg - optics.rotation_deg, 180.0)) <= 3.0);
        assert_true(fabs(shifts.C10_A - 900.0) <= 90.0);
        assert_true(hypot(shifts.C12_cos_A - 200.0 * cos(1.2), shifts.C12_sin_A - 200.0 * sin(1.2)) <= 60.0);
        ps_fit_data_free(&data);
    }
}

/* A single rank with bands on one backend. */
static void open_spread(const ps_fit_data *data, const ps_optics *optics, ps_backend *backend, const ps_cluster *alone,
                        ps_fit_spread *spread) {
    *spread = (ps_fit_spread){.cluster = alone};
    for (int i = 0; i < PS_FIT_MOST_BANDS; i++) {
        spread->n_frequencies[i] = data->n_frequencies;
        int64_t most = i == PS_FIT_THIN ? data->n_pixels / 3 : 0;
        REQUIRE_OK(
            ps_fit_data_band(data, backend, optics, 1, data->n_frequencies, most, 0.01, &spread->bands[i], &spread->power[i], &error));
    }
}

static void a_perfect_band_gives_its_optics_back(void **state) {
    (void)state;
    const ps_cluster alone = {.n_ranks = 1, .n_node_ranks = 1, .n_nodes = 1};
    ps_optics truth = some_optics(), start;
    ps_fit_data data;
    ps_fit_spread spread;
    ps_backend *backend = NULL;
    ps_fit_options options = {.automatic = true, .transpose = true};
    static ps_fit_result result;
    truth.thickness_A = 0.0;
    truth.tilt_mrad[0] = truth.tilt_mrad[1] = 0.0;
    make_data(&truth, &data);
    start = truth;
    memset(start.C_A, 0, sizeof start.C_A);
    memset(start.angle_rad, 0, sizeof start.angle_rad);
    start.rotation_deg = 0.0;
    start.detector_transpose = false;
    options.free[ps_fit_find_name("rotation_deg")] = options.free[0] = options.free[1] = true;
    REQUIRE_OK(ps_backend_open(&ps_backend_cpu_fast, NULL, &backend, &error));
    open_spread(&data, &start, backend, &alone, &spread);
    REQUIRE_OK(ps_fit_run(&spread, &data, &start, &options, &result, &error));
    if (fabs(remainder(result.optics.rotation_deg - truth.rotation_deg, 360.0)) > 90.0) ps_fit_turn(&result, data.step_A);
    assert_true(result.optics.detector_transpose);
    assert_true(fabs(remainder(result.optics.rotation_deg - truth.rotation_deg, 360.0)) <= 0.05);
    assert_true(fabs(result.optics.C_A[0] - truth.C_A[0]) <= 0.5 && fabs(result.optics.C_A[1] - truth.C_A[1]) <= 0.5);
    assert_true(fabs(result.optics.C_A[2] / truth.C_A[2] - 1.0) <= 0.02 && fabs(result.optics.C_A[3] / truth.C_A[3] - 1.0) <= 0.02);
    assert_true(result.after >= 0.97 && result.before < 0.7 * result.after && fabs(result.twin - result.after) <= 1e-5);
    for (int i = 0; i < result.curvature.n; i++) assert_true(result.curvature.is_known[i] && result.curvature.error[i] > 0.0);
    double residual[N_PIXELS], sum = 0.0;
    REQUIRE_OK(ps_fit_find_residual(&data, &result.optics, 0.01, residual, &error));
    for (int p = 0; p < N_PIXELS; p++) sum += fabs(residual[p]) < 0.1;
    assert_true(sum > 0.9 * N_PIXELS);
    for (int i = 0; i < PS_FIT_MOST_BANDS; i++) ps_band_destroy(spread.bands[i]);
    ps_backend_close(backend);
    ps_fit_data_free(&data);
}

static void make_noise(ps_fit_data *data) {
    uint64_t random = 1;
    for (int64_t i = 0; i < 2 * data->n_frequencies * data->n_pixels; i++) {
        data->spectra[i] = 0.0;
        for (int k = 0; k < 12; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            data->spectra[i] += (double)(random >> 40) / (1 << 24) - 0.5;
        }
    }
}

/* A glance over few pixels and the whole grid come to the same best optics; in noise the glance says that nothing is clear. Where the
 * rotation is not searched no candidate has another. */
static void a_glance_finds_the_best_of_a_grid(void **state) {
    (void)state;
    const ps_cluster alone = {.n_ranks = 1, .n_node_ranks = 1, .n_nodes = 1};
    ps_optics truth = some_optics();
    ps_fit_data data;
    ps_fit_spread spread;
    ps_backend *backend = NULL;
    ps_fit_rectangle grid = {.rotation_deg = {0.0, 355.0}, .rotation_step_deg = 5.0, .C10_A = {-600.0, 600.0}, .C10_step_A = 20.0};
    truth.thickness_A = 0.0;
    make_data(&truth, &data);
    REQUIRE_OK(ps_backend_open(&ps_backend_cpu_fast, NULL, &backend, &error));
    for (int is_noise = 0; is_noise < 2; is_noise++) {
        ps_fit_candidate whole[3], glanced[3], other[3];
        int n_whole = 0, n_glanced = 0, n_other = 0;
        double clarity = 0.0;
        if (is_noise) make_noise(&data);
        open_spread(&data, &truth, backend, &alone, &spread);
        REQUIRE_OK(ps_fit_grid_search(&spread, PS_FIT_COARSE, data.step_A, &truth, &grid, 3, whole, &n_whole, &error));
        int64_t before = spread.n_evaluations;
        REQUIRE_OK(
            ps_fit_grid_glance(&spread, PS_FIT_THIN, PS_FIT_COARSE, data.step_A, &truth, &grid, 3, glanced, &n_glanced, &clarity, &error));
        assert_true(n_whole == 3 && n_glanced == 3 && spread.n_evaluations - before <= ps_fit_grid_points(&grid) + 32 * 9);
        assert_true(is_noise ? clarity < 8.0 : clarity > 10.0);
        for (int i = 0; i < 2; i++) assert_true(glanced[i].fraction >= glanced[i + 1].fraction);
        assert_true(is_noise || (glanced[0].fraction == whole[0].fraction && glanced[0].optics.C_A[0] == whole[0].optics.C_A[0]));
        ps_fit_rectangle line = grid;
        line.rotation_deg[0] = line.rotation_deg[1] = 40.0;
        REQUIRE_OK(
            ps_fit_grid_glance(&spread, PS_FIT_THIN, PS_FIT_COARSE, data.step_A, &truth, &line, 3, other, &n_other, &clarity, &error));
        for (int i = 0; i < n_other; i++) assert_true(other[i].optics.rotation_deg == 40.0 && fabs(other[i].optics.C_A[0]) <= 600.0);
        for (int i = 0; i < PS_FIT_MOST_BANDS; i++) ps_band_destroy(spread.bands[i]);
    }
    ps_backend_close(backend);
    ps_fit_data_free(&data);
}

/* Optics that are given and wrong: in which direction, and by how much. */
static void wrong_optics_are_noticed_beside_the_right_ones(void **state) {
    (void)state;
    const ps_cluster alone = {.n_ranks = 1, .n_node_ranks = 1, .n_nodes = 1};
    ps_optics truth = some_optics(), given, better;
    ps_fit_data data;
    ps_fit_spread spread;
    ps_backend *backend = NULL;
    double gain;
    truth.thickness_A = 0.0;
    make_data(&truth, &data);
    given = truth;
    given.C_A[0] += 50.0;
    given.rotation_deg -= 4.0;
    REQUIRE_OK(ps_backend_open(&ps_backend_cpu_reference, NULL, &backend, &error));
    open_spread(&data, &given, backend, &alone, &spread);
    REQUIRE_OK(ps_fit_look_beside(&spread, &data, &given, &better, &gain, &error));
    assert_true(fabs(better.C_A[0] - truth.C_A[0]) <= 1.0 && fabs(better.rotation_deg - truth.rotation_deg) <= 0.2 && gain > 10.0);
    REQUIRE_OK(ps_fit_look_beside(&spread, &data, &truth, &better, &gain, &error));
    assert_true(fabs(better.C_A[0] - truth.C_A[0]) <= 1.0);
    for (int i = 0; i < PS_FIT_MOST_BANDS; i++) ps_band_destroy(spread.bands[i]);
    ps_backend_close(backend);
    ps_fit_data_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trial_lies_where_the_optics_put_pixels),
        cmocka_unit_test(parameters_go_there_and_back),
        cmocka_unit_test(natural_sizes_are_one_radian),
        cmocka_unit_test(twins_negate_even_terms),
        cmocka_unit_test(eigenvectors_are_found),
        cmocka_unit_test(aliases_are_those_of_the_plan),
        cmocka_unit_test(starts_tell_what_made_the_data),
        cmocka_unit_test(a_perfect_band_gives_its_optics_back),
        cmocka_unit_test(a_glance_finds_the_best_of_a_grid),
        cmocka_unit_test(wrong_optics_are_noticed_beside_the_right_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
