/* Every backend against every stored answer: ../shared/data/reference, and the cases tests/oracle/oracle.py makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/backends.h"
#include "contract/compare.h"
#include "contract/problem.h"
#include "contract/stored_case.h"
#include "kernels/trials.h"

static const contract_backend *backend_under_test;
static int n_cases;

typedef struct {
    const contract_backend *under_test;
    const ps_backend_ops *ops;
    const stored_case *c;
    ps_backend *backend;
    ps_system *system;
    ps_frame *frame;
    double dose;
} run;

static void require(const run *r, const char *what, double difference, double tolerance) {
    require_within(r->ops->name, r->c->name, what, difference, tolerance);
}

/* --- geometry: the same for all backends, but what they build on --- */

static void check_geometry(const run *r) {
    const ps_system_desc *desc = &r->c->plan.desc;
    int64_t n_pixels = desc->detector_rows * desc->detector_columns;
    double *found[4], *k = stored_case_read(r->c, "expected/k_inv_A", NULL);
    for (int i = 0; i < 4; i++) found[i] = malloc((size_t)n_pixels * sizeof *found[i]);
    ps_optics_k(&r->c->optics, desc->detector_rows, desc->detector_columns, found[0], found[1]);
    double *chi = stored_case_read(r->c, "expected/chi", NULL), *aperture = stored_case_read(r->c, "expected/aperture", NULL);
    for (int64_t i = 0; i < n_pixels; i++) {
        found[2][i] = ps_probe_chi(&desc->probe, found[0][i], found[1][i]);
        found[3][i] = ps_probe_aperture(&desc->probe, found[0][i], found[1][i]);
    }
    require(r, "k_row", relative_difference(n_pixels, found[0], k), 1e-12);
    require(r, "k_column", relative_difference(n_pixels, found[1], k + n_pixels), 1e-12);
    require(r, "chi", relative_difference(n_pixels, found[2], chi), 1e-12);
    require(r, "aperture", relative_difference(n_pixels, found[3], aperture), 1e-12);
    for (int i = 0; i < 4; i++) free(found[i]);
    free(k);
    free(chi);
    free(aperture);
}

static void check_alias_counts(const run *r) {
    const ps_system_desc *desc = &r->c->plan.desc;
    double *expected = stored_case_read(r->c, "expected/alias_count", NULL);
    for (int64_t i = 1; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        assert_true(f->n_aliases == expected[f->row * desc->scan_columns + f->column]);
    }
    free(expected);
}

/* --- one stored system --- */

/* order[i]: which of the frequency's aliases stands i-th in the stored system, where a fine index may be negative. */
static void match_aliases(const run *r, const ps_frequency *f, const double *aliases, int64_t n, int64_t *order) {
    const ps_system_desc *desc = &r->c->plan.desc;
    int64_t rows = desc->scan_rows * desc->upsampling, columns = desc->scan_columns * desc->upsampling;
    assert_int_equal(n, f->n_aliases);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = ((int64_t)aliases[2 * i] + rows) % rows, column = ((int64_t)aliases[2 * i + 1] + columns) % columns;
        order[i] = -1;
        for (int64_t a = f->first_alias; a < f->first_alias + n; a++)
            if (desc->fine_row[a] == row && desc->fine_column[a] == column) order[i] = a - f->first_alias;
        assert_true(order[i] >= 0);
    }
}

static int64_t find_frequency(const ps_system_desc *desc, int row, int column) {
    for (int64_t i = 0; i < desc->n_frequencies; i++)
        if (desc->frequencies[i].row == row && desc->frequencies[i].column == column) return i;
    return -1;
}

typedef struct {
    ps_methods method;
    char path[128]; /* of the stored group */
    int64_t frequency, n, dim;
    int64_t order[2 * PS_MAX_ALIASES]; /* unknown of ours for each stored one */
} shown_system;

static double *read_part(const run *r, const shown_system *s, const char *part) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", s->path, part);
    double *values = stored_case_read(r->c, path, NULL);
    if (!values) fail_msg("%s: no %s", r->c->name, path);
    return values;
}

static void check_transfer(const run *r, const shown_system *s) {
    int64_t active = r->c->plan.desc.n_active;
    double *expected = read_part(r, s, "M"), *found = malloc((size_t)(s->n * active * 4) * sizeof *found);
    double *picked = malloc((size_t)(s->dim * active * 2) * sizeof *picked);
    REQUIRE_OK(ps_system_get_transfer(r->system, s->frequency, found, &error));
    for (int64_t pixel = 0; pixel < active; pixel++)
        for (int64_t j = 0; j < s->dim; j++) {
            int64_t unknown = s->order[j], which = s->method == PS_METHOD_PHASE || unknown >= s->n;
            const double *from = found + ((unknown % s->n * active + pixel) * 2 + which) * 2;
            memcpy(picked + (pixel * s->dim + j) * 2, from, 2 * sizeof *from);
        }
    require(r, "transfer", relative_difference_complex(s->dim * active, picked, expected), r->under_test->tolerance.transfer);
    free(expected);
    free(found);
    free(picked);
}

static void check_normal(const run *r, const shown_system *s) {
    double *expected = read_part(r, s, "N"), *found = malloc((size_t)(s->dim * s->dim * 2) * sizeof *found);
    double *picked = malloc((size_t)(s->dim * s->dim * 2) * sizeof *picked);
    REQUIRE_OK(ps_system_get_normal(r->system, s->method, s->frequency, found, &error));
    for (int64_t i = 0; i < s->dim; i++)
        for (int64_t j = 0; j < s->dim; j++)
            memcpy(picked + (i * s->dim + j) * 2, found + (s->order[i] * s->dim + s->order[j]) * 2, 2 * sizeof *found);
    require(r, "N", relative_difference_complex(s->dim * s->dim, picked, expected), r->under_test->tolerance.normal);
    free(expected);
    free(found);
    free(picked);
}

static void check_right_side(const run *r, const shown_system *s) {
    double *expected = read_part(r, s, "b"), *data_norm = read_part(r, s, "power"), found[4 * PS_MAX_ALIASES], picked[4 * PS_MAX_ALIASES],
           p;
    REQUIRE_OK(ps_frame_get_right_side(r->frame, s->method, s->frequency, found, &p, &error));
    for (int64_t i = 0; i < s->dim; i++) memcpy(picked + 2 * i, found + 2 * s->order[i], 2 * sizeof *found);
    require(r, "b", relative_difference_complex(s->dim, picked, expected), r->under_test->tolerance.right_side);
    require(r, "power", relative_difference(1, &p, data_norm), r->under_test->tolerance.right_side);
    free(expected);
    free(data_norm);
}

/* One Fourier coefficient of an image at an alias, by a plain sum: the inverse of an unnormalised inverse transform. */
static double complex coefficient(const ps_system_desc *desc, const double *image, int64_t alias) {
    int64_t rows = desc->scan_rows * desc->upsampling, columns = desc->scan_columns * desc->upsampling;
    double complex sum = 0.0;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            double turns = (double)(desc->fine_row[alias] * row % rows) / (double)rows +
                           (double)(desc->fine_column[alias] * column % columns) / (double)columns;
            sum += image[row * columns + column] * cexp(-2.0 * M_PI * I * turns);
        }
    return sum / (double)(rows * columns);
}

/* The image of b holds the stored b; the alias is not its own partner, so no real part is taken of it. */
static void check_coefficients(const run *r, const shown_system *s) {
    const ps_system_desc *desc = &r->c->plan.desc;
    int64_t n = desc->scan_rows * desc->scan_columns * desc->upsampling * desc->upsampling;
    double *expected = read_part(r, s, "b"), *image = malloc((size_t)n * sizeof *image), found[2 * PS_MAX_ALIASES];
    REQUIRE_OK(ps_frame_right_side_image(r->frame, NULL, image, &error));
    for (int64_t i = 0; i < s->n; i++) {
        double complex value = coefficient(desc, image, desc->frequencies[s->frequency].first_alias + s->order[i]);
        found[2 * i] = creal(value);
        found[2 * i + 1] = cimag(value);
    }
    require(r, "b in its image", relative_difference_complex(s->n, found, expected), r->under_test->tolerance.images);
    free(expected);
    free(image);
}

static void check_shown_system(const run *r, ps_methods method, const char *group, int row, int column) {
    shown_system s = {.method = method, .frequency = find_frequency(&r->c->plan.desc, row, column)};
    if (s.frequency < 0) return; /* its conjugate partner stands for it */
    snprintf(s.path, sizeof s.path, "%s/system_%d_%d", group, row, column);
    const ps_frequency *f = &r->c->plan.desc.frequencies[s.frequency];
    int64_t n_values;
    char path[256];
    snprintf(path, sizeof path, "%s/aliases", s.path);
    double *aliases = stored_case_read(r->c, path, &n_values);
    s.n = n_values / 2;
    s.dim = method == PS_METHOD_COMPLEX ? 2 * s.n : s.n;
    match_aliases(r, f, aliases, s.n, s.order);
    for (int64_t i = 0; i < s.n; i++) s.order[s.n + i] = s.n + s.order[i];
    free(aliases);
    check_transfer(r, &s);
    check_normal(r, &s);
    check_right_side(r, &s);
    if (method == PS_METHOD_PHASE && f->multiplicity == 2) check_coefficients(r, &s);
}

/* --- images and sums at every stored strength --- */

static void check_sum(const run *r, const char *group, const char *name, double found, double relative_to) {
    double expected = stored_case_attribute(r->c, group, name);
    if (!isnan(expected)) require(r, name, fabs(found - expected) / relative_to, r->under_test->tolerance.images);
}

static void check_strength(const run *r, ps_methods method, const char *group) {
    char path[256];
    int64_t n;
    snprintf(path, sizeof path, "%s/phase", group);
    double *phase = stored_case_read(r->c, path, &n);
    snprintf(path, sizeof path, "%s/log_amplitude", group);
    double *amplitude = stored_case_read(r->c, path, NULL), *found = malloc((size_t)(2 * n) * sizeof *found), residual, effective_dof,
           data_norm;
    ps_strength strength = {stored_case_attribute(r->c, group, "strength_amplitude"), stored_case_attribute(r->c, group, "strength_phase")};
    ps_solution solution = {
        .phase_f64 = found, .log_amplitude_f64 = amplitude ? found + n : NULL, .residual = &residual, .effective_dof = &effective_dof};
    REQUIRE_OK(ps_system_solve(r->frame, method, 1, &strength, &solution, &error));
    require(r, method == PS_METHOD_PHASE ? "phase image" : "complex phase image", relative_difference(n, found, phase),
            r->under_test->tolerance.images);
    if (amplitude) require(r, "log-amplitude image", relative_difference(n, found + n, amplitude), r->under_test->tolerance.images);
    REQUIRE_OK(ps_frame_data_norm(r->frame, &data_norm, &error));
    check_sum(r, group, "residual", residual, data_norm);
    check_sum(r, group, "influence", effective_dof, effective_dof);
    free(phase);
    free(amplitude);
    free(found);
}

static void check_member(const run *r, ps_methods method, const char *group, hsize_t index) {
    int row, column;
    char name[64], path[128];
    H5Lget_name_by_idx(r->c->file, group, H5_INDEX_NAME, H5_ITER_INC, index, name, sizeof name, H5P_DEFAULT);
    snprintf(path, sizeof path, "%s/%s", group, name);
    if (sscanf(name, "system_%d_%d", &row, &column) == 2) check_shown_system(r, method, group, row, column);
    if (strncmp(name, "strength_", 9) == 0) check_strength(r, method, path);
}

static void check_scales(const run *r, ps_methods method, const char *group) {
    double amplitude, phase;
    REQUIRE_OK(ps_system_scales(r->system, method, &amplitude, &phase, &error));
    double expected[2] = {stored_case_attribute(r->c, group, "scale_amplitude"), stored_case_attribute(r->c, group, "scale_phase")};
    if (isnan(expected[1])) return;
    require(r, "scale of phase", relative_difference(1, &phase, &expected[1]), r->under_test->tolerance.normal);
    if (method == PS_METHOD_COMPLEX)
        require(r, "scale of amplitude", relative_difference(1, &amplitude, &expected[0]), r->under_test->tolerance.normal);
}

static void check_method(const run *r, ps_methods method, const char *group) {
    H5G_info_t info;
    check_scales(r, method, group);
    H5Gget_info_by_name(r->c->file, group, &info, H5P_DEFAULT);
    for (hsize_t i = 0; i < info.nlinks; i++) check_member(r, method, group, i);
}

static void check_ssb(const run *r) {
    int64_t n;
    double *wave = stored_case_read(r->c, "expected/ssb/wave", &n);
    if (!wave) return;
    double *phase = stored_case_read(r->c, "expected/ssb/phase", NULL), loss;
    double *found = malloc((size_t)n * sizeof *found), expected = stored_case_attribute(r->c, "expected/ssb/phase", "loss");
    REQUIRE_OK(ps_frame_ssb(r->frame, PS_SSB_WAVE, NULL, found, NULL, &error));
    require(r, "ssb wave image", relative_difference(n, found, wave), r->under_test->tolerance.images);
    REQUIRE_OK(ps_frame_ssb(r->frame, PS_SSB_PHASE, NULL, found, &loss, &error));
    require(r, "ssb phase image", relative_difference(n, found, phase), r->under_test->tolerance.images);
    require(r, "ssb loss", relative_difference(1, &loss, &expected), r->under_test->tolerance.images);
    free(wave);
    free(phase);
    free(found);
}

static void check_image_of_right_sides(const run *r) {
    int64_t n;
    double *expected = stored_case_read(r->c, "expected/phase/right_side_image", &n);
    if (!expected) return; /* reference cases are older than this answer */
    double *found = malloc((size_t)n * sizeof *found);
    REQUIRE_OK(ps_frame_right_side_image(r->frame, NULL, found, &error));
    require(r, "image of b", relative_difference(n, found, expected), r->under_test->tolerance.images);
    free(expected);
    free(found);
}

/* --- trial optics --- */

enum { TRIAL_NUMBERS = 6 + 5 + 2 * PS_N_ABERRATIONS };

/* numbers: as tests/oracle/oracle.py, explained_power, writes them. */
static ps_trial read_trial(const run *r, const double *numbers) {
    ps_trial made = {.probe = r->c->plan.desc.probe, .step_scale = numbers[6]};
    for (int i = 0; i < 6; i++) made.to_k[i / 3][i % 3] = numbers[i];
    made.probe.semiangle_rad = numbers[7];
    made.probe.thickness_A = numbers[8];
    for (int i = 0; i < 2; i++) made.probe.tilt_rad[i] = numbers[9 + i];
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        made.probe.C_A[i] = numbers[11 + i];
        made.probe.angle_rad[i] = numbers[11 + PS_N_ABERRATIONS + i];
    }
    return made;
}

static double *read_trials(const run *r, const char *name, int64_t *n) {
    char path[64];
    snprintf(path, sizeof path, "expected/trials/%s", name);
    return stored_case_read(r->c, path, n);
}

/* g of the band's frequencies, and its pixels. */
static ps_band_desc make_band(const run *r, int64_t n, const double *frequencies, double *spectra) {
    const ps_system_desc *desc = &r->c->plan.desc;
    int32_t *places = malloc((size_t)(2 * desc->n_active) * sizeof *places);
    int64_t *indices = malloc((size_t)n * sizeof *indices);
    for (int64_t i = 0; i < n; i++) {
        indices[i] = find_frequency(desc, (int)frequencies[2 * i], (int)frequencies[2 * i + 1]);
        assert_true(indices[i] > 0);
    }
    REQUIRE_OK(ps_frame_get_spectra(r->frame, n, indices, r->dose, spectra, &error));
    for (int64_t i = 0; i < desc->n_active; i++) {
        places[i] = (int32_t)(desc->active[i] / desc->detector_columns);
        places[desc->n_active + i] = (int32_t)(desc->active[i] % desc->detector_columns);
    }
    free(indices);
    return (ps_band_desc){
        .n_pixels = desc->n_active, .row = places, .column = places + desc->n_active, .n_frequencies = n, .spectra = spectra};
}

static void check_trials(const run *r) {
    int64_t n_frequencies, n_aliases, n_trials, n;
    double *frequencies = read_trials(r, "frequencies", &n_frequencies), *q = NULL, *first = NULL;
    if (!frequencies) return; /* reference cases are older than this answer, and the mirrored probe is not fitted */
    n_frequencies /= 2;
    double *strength = read_trials(r, "strength", NULL), *numbers = read_trials(r, "optics", NULL);
    double *explained = read_trials(r, "explained", &n_trials), *found = malloc((size_t)n_trials * sizeof *found);
    double *spectra = malloc((size_t)(2 * n_frequencies * r->c->plan.desc.n_active) * sizeof *spectra);
    ps_band_desc desc = make_band(r, n_frequencies, frequencies, spectra);
    q = read_trials(r, "q", &n_aliases);
    n_aliases /= 2;
    first = read_trials(r, "first_alias", &n);
    int64_t *first_alias = malloc((size_t)n * sizeof *first_alias);
    double *q_row = malloc((size_t)(2 * n_aliases) * sizeof *q_row), *q_column = q_row + n_aliases;
    for (int64_t i = 0; i < n; i++) first_alias[i] = (int64_t)first[i];
    for (int64_t a = 0; a < n_aliases; a++) q_row[a] = q[2 * a], q_column[a] = q[2 * a + 1];
    desc.first_alias = first_alias, desc.q_row = q_row, desc.q_column = q_column, desc.strength = strength[0];
    ps_trial *trials = malloc((size_t)n_trials * sizeof *trials);
    for (int64_t i = 0; i < n_trials; i++) trials[i] = read_trial(r, numbers + i * TRIAL_NUMBERS);
    ps_band *band = NULL;
    REQUIRE_OK(ps_band_create(r->backend, &desc, &band, &error));
    REQUIRE_OK(ps_band_explain(band, n_frequencies, n_trials, trials, found, &error));
    require(r, "explained power", relative_difference(n_trials, found, explained), r->under_test->tolerance.images);
    ps_band_destroy(band);
    void *arrays[] = {frequencies, strength, numbers, explained, found, spectra, q, first, first_alias, q_row, trials, (void *)desc.row};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

/* --- the whole path --- */

static void reduce(run *r) {
    const ps_plan *plan = &r->c->plan;
    size_t active = (size_t)plan->desc.n_active;
    double *mean = malloc(active * sizeof *mean), *weights = malloc(active * sizeof *weights);
    double *expected = stored_case_read(r->c, "expected/dose", NULL);
    REQUIRE_OK(ps_frame_create(r->system, r->c->dtype, &r->frame, &error));
    REQUIRE_OK(ps_frame_upload(r->frame, 0, plan->desc.scan_rows * plan->desc.scan_columns, r->c->counts, &error));
    REQUIRE_OK(ps_frame_mean_counts(r->frame, mean, NULL, &error));
    REQUIRE_OK(ps_plan_dose(plan, mean, NULL, &r->dose, &error));
    require(r, "dose", relative_difference(1, &r->dose, expected), 1e-12);
    ps_plan_poisson_weights(plan, mean, r->dose, weights);
    if (r->c->poisson) REQUIRE_OK(ps_system_set_weights(r->system, weights, &error));
    REQUIRE_OK(ps_system_prepare(r->system, &error));
    REQUIRE_OK(ps_frame_reduce(&r->frame, 1, &r->dose, &error));
    free(mean);
    free(weights);
    free(expected);
}

/* Every answer, g held in one of its forms. */
static void check_answers(const contract_backend *under_test, stored_case *c, ps_g_storage storage) {
    run r = {.under_test = under_test, .ops = under_test->ops, .c = c};
    ps_backend_options options = {0};
    c->plan.desc.g_storage = storage;
    REQUIRE_OK(ps_backend_open(r.ops, &options, &r.backend, &error));
    REQUIRE_OK(ps_system_create(r.backend, &c->plan.desc, PS_METHODS_ALL, &r.system, &error));
    check_geometry(&r);
    check_alias_counts(&r);
    reduce(&r);
    check_method(&r, PS_METHOD_PHASE, "expected/phase");
    check_method(&r, PS_METHOD_COMPLEX, "expected/complex");
    check_ssb(&r);
    check_image_of_right_sides(&r);
    check_trials(&r);
    ps_frame_destroy(r.frame);
    ps_system_destroy(r.system);
    ps_backend_close(r.backend);
}

/* With compact g what is made of g is as exact as section 8 of docs/physics.md says; the float64 path holds no g. */
static void check_case(const char *path) {
    static const double compact = 1e-3;
    contract_backend packed = *backend_under_test;
    stored_case c;
    stored_case_open(path, &c);
    check_answers(backend_under_test, &c, PS_G_EXACT);
    packed.tolerance.right_side = packed.tolerance.images = compact;
    if (backend_under_test->tolerance.transfer > 1e-9) check_answers(&packed, &c, PS_G_COMPACT);
    stored_case_close(&c);
    n_cases++;
}

static void stored_answers_are_met(void **state) {
    backend_under_test = *state;
    const char *made = getenv("PS_ORACLE_CASES");
    stored_cases_visit(PS_SOURCE_DIR "/../shared/data/reference", check_case);
    if (made) stored_cases_visit(made, check_case);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stored_answers_are_met)};
    int failed = contract_run(tests, 1);
    if (n_cases == 0 && !failed) {
        printf("skipped: no stored case in ../shared/data/reference, and PS_ORACLE_CASES names no folder with any\n");
        return 77;
    }
    return failed != 0;
}
