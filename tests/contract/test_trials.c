/* Trial optics over a band (kernels/trials.h): the answers themselves are in test_stored_cases; here are refusals, independence of what
 * else is tried, the default, and what must come out without any calculation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract/compare.h"
#include "contract/problem.h"
#include "kernels/backend_bench.h"
#include "kernels/trials.h"

enum { N_FREQUENCIES = 7, N_TRIALS = 9 };

/* A problem, g of some of its frequencies, and trials that differ in everything. */
typedef struct {
    trial t;
    ps_frame *frame;
    double dose;
    int64_t frequencies[N_FREQUENCIES], first_alias[N_FREQUENCIES + 1];
    int32_t *row, *column;
    double *spectra, *q_row, *q_column;
    ps_band_desc desc;
    ps_trial trials[N_TRIALS];
    ps_band *band;
} setting;

static void fill_trial(const setting *s, int at, ps_trial *to) {
    const ps_system_desc *d = &s->t.p.plan.desc;
    double turn = 0.2 * at, scale = 0.9 + 0.03 * at;
    *to = (ps_trial){.probe = d->probe, .step_scale = 1.0 + 0.01 * at};
    to->probe.C_A[0] += 40.0 * at;
    to->probe.C_A[3] += 100.0 * at;
    to->probe.thickness_A = at % 3 == 2 ? 50.0 : 0.0;
    for (int axis = 0; axis < 2; axis++) {
        double pitch = d->probe.pitch_rad[axis] / d->probe.wavelength_A * scale;
        to->to_k[0][axis] = pitch * (axis == 0 ? cos(turn) : -sin(turn));
        to->to_k[1][axis] = pitch * (axis == 0 ? sin(turn) : cos(turn));
    }
    for (int axis = 0; axis < 2; axis++)
        to->to_k[axis][2] =
            -to->to_k[axis][0] * s->t.p.optics.detector_center_px[0] - to->to_k[axis][1] * s->t.p.optics.detector_center_px[1];
}

static void list_frequencies(setting *s) {
    const ps_system_desc *d = &s->t.p.plan.desc;
    int64_t n = 0;
    for (int64_t i = 1; i < d->n_frequencies && n < N_FREQUENCIES; i++)
        if (d->frequencies[i].n_aliases > 0) s->frequencies[n++] = i;
    assert_int_equal(n, N_FREQUENCIES);
    for (int64_t i = 0; i < n; i++) {
        const ps_frequency *f = &d->frequencies[s->frequencies[i]];
        s->first_alias[i + 1] = s->first_alias[i] + f->n_aliases;
    }
    s->q_row = malloc((size_t)s->first_alias[n] * sizeof *s->q_row);
    s->q_column = malloc((size_t)s->first_alias[n] * sizeof *s->q_column);
    for (int64_t i = 0; i < n; i++) {
        const ps_frequency *f = &d->frequencies[s->frequencies[i]];
        memcpy(s->q_row + s->first_alias[i], d->q_row + f->first_alias, (size_t)f->n_aliases * sizeof *s->q_row);
        memcpy(s->q_column + s->first_alias[i], d->q_column + f->first_alias, (size_t)f->n_aliases * sizeof *s->q_column);
    }
}

static void begin(void **state, int size, setting *s) {
    memset(s, 0, sizeof *s);
    trial_begin(state, &problem_sizes[size], 51, &s->t);
    const ps_system_desc *d = &s->t.p.plan.desc;
    s->frame = problem_frame(&s->t.run, PS_U16, s->t.p.counts);
    s->dose = problem_dose(&s->t.run, s->frame);
    list_frequencies(s);
    s->spectra = malloc((size_t)(2 * N_FREQUENCIES * d->n_active) * sizeof *s->spectra);
    s->row = malloc((size_t)d->n_active * sizeof *s->row);
    s->column = malloc((size_t)d->n_active * sizeof *s->column);
    for (int64_t i = 0; i < d->n_active; i++) {
        s->row[i] = (int32_t)(d->active[i] / d->detector_columns);
        s->column[i] = (int32_t)(d->active[i] % d->detector_columns);
    }
    REQUIRE_OK(ps_frame_get_spectra(s->frame, N_FREQUENCIES, s->frequencies, s->dose, s->spectra, &error));
    s->desc = (ps_band_desc){.n_pixels = d->n_active,
                             .row = s->row,
                             .column = s->column,
                             .n_frequencies = N_FREQUENCIES,
                             .first_alias = s->first_alias,
                             .q_row = s->q_row,
                             .q_column = s->q_column,
                             .spectra = s->spectra,
                             .strength = 0.02};
    for (int i = 0; i < N_TRIALS; i++) fill_trial(s, i, &s->trials[i]);
    REQUIRE_OK(ps_band_create(s->t.run.backend, &s->desc, &s->band, &error));
}

static void end(setting *s) {
    ps_band_destroy(s->band);
    ps_frame_destroy(s->frame);
    void *arrays[] = {s->spectra, s->row, s->column, s->q_row, s->q_column};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    trial_end(&s->t);
}

static void several_spectra_are_those_of_one_call_each(void **state) {
    setting s;
    begin(state, PROBLEM_USUAL, &s);
    int64_t n = s.t.p.plan.desc.n_active;
    double *one = malloc((size_t)(2 * n) * sizeof *one);
    for (int i = 0; i < N_FREQUENCIES; i++) {
        REQUIRE_OK(ps_frame_get_spectrum(s.frame, s.frequencies[i], s.dose, one, &error));
        assert_memory_equal(one, s.spectra + 2 * i * n, (size_t)(2 * n) * sizeof *one);
    }
    free(one);
    end(&s);
}

static void several_data_norms_are_those_of_one_call_each(void **state) {
    trial t;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 52, &t);
    const ps_system_desc *d = &t.p.plan.desc;
    ps_frame *frame = problem_frame(&t.run, PS_U16, t.p.counts);
    ps_error e = {0};
    double right_side[4 * PS_MAX_ALIASES], one, dose = problem_dose(&t.run, frame);
    double *all = malloc((size_t)d->n_frequencies * sizeof *all), *plain = malloc((size_t)d->n_frequencies * sizeof *plain);
    problem_require_refused(ps_frame_get_data_norms(frame, all, &e), &e, PS_E_ARGUMENT, "not reduced");
    REQUIRE_OK(ps_system_prepare(t.run.system, &error));
    REQUIRE_OK(ps_frame_reduce(&frame, 1, &dose, &error));
    REQUIRE_OK(ps_frame_get_data_norms(frame, all, &error));
    ps_backend_ops bare = *frame->ops;
    const ps_backend_ops *kept = frame->ops;
    bare.get_data_norms = NULL;
    frame->ops = &bare;
    REQUIRE_OK(ps_frame_get_data_norms(frame, plain, &error));
    frame->ops = kept;
    assert_true(all[0] == 0.0 && plain[0] == 0.0);
    for (int64_t i = 1; i < d->n_frequencies; i++) {
        REQUIRE_OK(ps_frame_get_right_side(frame, PS_METHOD_PHASE, i, right_side, &one, &error));
        assert_true(one > 0.0 && all[i] == one && plain[i] == one);
    }
    problem_require_refused(ps_frame_get_data_norms(frame, NULL, &e), &e, PS_E_ARGUMENT, "data_norms is NULL");
    problem_require_refused(ps_frame_get_data_norms(NULL, all, &e), &e, PS_E_ARGUMENT, "frame is NULL");
    free(all);
    free(plain);
    ps_frame_destroy(frame);
    trial_end(&t);
}

/* What is said of a band's memory holds where it can be measured, and grows with the band everywhere. */
static void memory_is_as_planned(void **state) {
    setting s;
    begin(state, PROBLEM_USUAL, &s);
    const ps_backend_ops *ops = s.t.run.backend->ops;
    int64_t pixels = s.desc.n_pixels, most = 0;
    for (int i = 0; i < N_FREQUENCIES; i++)
        if (s.first_alias[i + 1] - s.first_alias[i] > most) most = s.first_alias[i + 1] - s.first_alias[i];
    size_t planned = ps_band_bytes(ops, pixels, N_FREQUENCIES, most);
    assert_true(planned > (size_t)(pixels * N_FREQUENCIES) * 2 * sizeof(float));
    assert_true(ps_band_bytes(ops, pixels, 10 * N_FREQUENCIES, most) > planned);
    if (ops->bench) {
        size_t before, after, peak, budget;
        ps_band *other = NULL;
        ops->bench->memory(s.t.run.backend, &before, &peak, &budget);
        REQUIRE_OK(ps_band_create(s.t.run.backend, &s.desc, &other, &error));
        ops->bench->memory(s.t.run.backend, &after, &peak, &budget);
        assert_true(after > before && after - before <= planned);
        ps_band_destroy(other);
        ops->bench->memory(s.t.run.backend, &after, &peak, &budget);
        assert_int_equal(after, before);
    }
    end(&s);
}

/* Spectra that a reduction left behind are those that are formed anew. */
static void spectra_after_a_reduction_are_the_same(void **state) {
    setting s;
    begin(state, PROBLEM_USUAL, &s);
    int64_t n = 2 * s.t.p.plan.desc.n_active * N_FREQUENCIES;
    double *again = malloc((size_t)n * sizeof *again);
    REQUIRE_OK(ps_system_prepare(s.t.run.system, &error));
    REQUIRE_OK(ps_frame_reduce(&s.frame, 1, &s.dose, &error));
    REQUIRE_OK(ps_frame_get_spectra(s.frame, N_FREQUENCIES, s.frequencies, s.dose, again, &error));
    assert_memory_equal(again, s.spectra, (size_t)n * sizeof *again);
    free(again);
    end(&s);
}

/* One at a time, all at once, backwards, and on one thread: the same bits. */
static void a_value_depends_on_its_trial_alone(void **state) {
    static const int sizes[] = {PROBLEM_USUAL, PROBLEM_NO_UPSAMPLING, PROBLEM_MANY_PIXELS};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        setting s;
        double all[N_TRIALS], alone, backwards[N_TRIALS], few[N_TRIALS];
        ps_trial turned[N_TRIALS];
        begin(state, sizes[k], &s);
        for (int i = 0; i < N_TRIALS; i++) turned[i] = s.trials[N_TRIALS - 1 - i];
        REQUIRE_OK(ps_band_explain(s.band, N_FREQUENCIES, N_TRIALS, s.trials, all, &error));
        REQUIRE_OK(ps_band_explain(s.band, N_FREQUENCIES, N_TRIALS, turned, backwards, &error));
        for (int i = 0; i < N_TRIALS; i++) {
            REQUIRE_OK(ps_band_explain(s.band, N_FREQUENCIES, 1, &s.trials[i], &alone, &error));
            assert_memory_equal(&alone, &all[i], sizeof alone);
            assert_memory_equal(&backwards[N_TRIALS - 1 - i], &all[i], sizeof alone);
            assert_true(all[i] > 0.0 && isfinite(all[i]));
        }
        REQUIRE_OK(ps_band_explain(s.band, 3, N_TRIALS, s.trials, few, &error));
        for (int i = 0; i < N_TRIALS; i++) assert_true(few[i] > 0.0);
        end(&s);
    }
}

/* A spectrum that is a trial's own T_phase times a number is explained but for the strength; any other trial explains less. */
static void a_trials_own_transfer_is_explained(void **state) {
    setting s;
    double found[N_TRIALS], power = 0.0;
    ps_band *band = NULL;
    begin(state, PROBLEM_NO_UPSAMPLING, &s);
    const ps_system_desc *d = &s.t.p.plan.desc;
    double *transfer = malloc((size_t)(4 * d->n_active) * sizeof *transfer);
    for (int f = 0; f < N_FREQUENCIES; f++) {
        assert_int_equal(d->frequencies[s.frequencies[f]].n_aliases, 1);
        REQUIRE_OK(ps_system_get_transfer(s.t.run.system, s.frequencies[f], transfer, &error));
        for (int64_t i = 0; i < d->n_active; i++)
            for (int part = 0; part < 2; part++) {
                double value = transfer[4 * i + 2 + part];
                s.spectra[2 * (f * d->n_active + i) + part] = value;
                power += value * value;
            }
    }
    s.desc.strength = 1e-6;
    ps_trial own = s.trials[0];
    for (int i = 0; i < 2; i++) { /* the problem's pixels, from where three of them lie */
        const double *k = i ? d->k_column : d->k_row;
        double from = k[0], along = 0.0, across = 0.0;
        for (int64_t p = 1; p < d->n_active; p++) {
            if (s.row[p] == s.row[0] && s.column[p] == s.column[0] + 1) across = k[p] - from;
            if (s.row[p] == s.row[0] + 1 && s.column[p] == s.column[0]) along = k[p] - from;
        }
        own.to_k[i][0] = along, own.to_k[i][1] = across;
        own.to_k[i][2] = from - along * s.row[0] - across * s.column[0];
    }
    s.trials[0] = own;
    REQUIRE_OK(ps_band_create(s.t.run.backend, &s.desc, &band, &error));
    REQUIRE_OK(ps_band_explain(band, N_FREQUENCIES, N_TRIALS, s.trials, found, &error));
    assert_true(fabs(found[0] / power - 1.0) <= 1e-4);
    for (int i = 1; i < N_TRIALS; i++) assert_true(found[i] < 0.98 * found[0]);
    ps_band_destroy(band);
    free(transfer);
    end(&s);
}

/* A pixel far outside of every aperture changes nothing; a trial whose aperture holds none explains nothing. */
static void dark_pixels_say_nothing(void **state) {
    setting s;
    double with = 0.0, before, none;
    ps_band *band = NULL;
    begin(state, PROBLEM_USUAL, &s);
    REQUIRE_OK(ps_band_explain(s.band, N_FREQUENCIES, 1, &s.trials[0], &before, &error));
    s.row[0] += 100000;
    REQUIRE_OK(ps_band_create(s.t.run.backend, &s.desc, &band, &error));
    REQUIRE_OK(ps_band_explain(band, N_FREQUENCIES, 1, &s.trials[0], &with, &error));
    assert_true(with > 0.0 && with != before);
    s.trials[0].to_k[0][2] += 1e6;
    REQUIRE_OK(ps_band_explain(band, N_FREQUENCIES, 1, &s.trials[0], &none, &error));
    assert_true(none == 0.0);
    ps_band_destroy(band);
    end(&s);
}

/* Terms up to an order, thick or thin, and pixels of any shape: each takes its own way through a backend. */
static void vary(const setting *s, int variant, ps_trial trials[N_TRIALS]) {
    static const double pitches[][2] = {{0.07, 0.07}, {0.3, 0.3}, {0.1, 0.16}};
    memcpy(trials, s->trials, N_TRIALS * sizeof *trials);
    for (int i = 0; i < N_TRIALS; i++) {
        ps_probe *probe = &trials[i].probe;
        for (int term = 0; term < PS_N_ABERRATIONS; term++)
            if (ps_aberration_orders[term][0] > 1 + i % 5) probe->C_A[term] = 0.0;
        for (int axis = 0; axis < 2; axis++) probe->pitch_rad[axis] = pitches[variant][axis] * probe->semiangle_rad;
    }
}

/* Held against the plain way, which is also what a backend without one of its own has. */
static void every_way_agrees_with_the_plain_one(void **state) {
    static const struct {
        int size;
        const char *name;
    } problems[] = {{PROBLEM_USUAL, "usual"}, {PROBLEM_NO_UPSAMPLING, "no upsampling"}, {PROBLEM_MANY_PIXELS, "many pixels"}};
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) {
        setting s;
        begin(state, problems[k].size, &s);
        const ps_backend_ops *kept = s.t.run.backend->ops;
        ps_backend_ops bare = *kept;
        ps_band *plain_band = NULL;
        bare.trials = NULL;
        s.t.run.backend->ops = &bare;
        REQUIRE_OK(ps_band_create(s.t.run.backend, &s.desc, &plain_band, &error));
        for (int variant = 0; variant < 3; variant++) {
            double own[N_TRIALS], plain[N_TRIALS];
            ps_trial trials[N_TRIALS];
            vary(&s, variant, trials);
            REQUIRE_OK(ps_band_explain(plain_band, N_FREQUENCIES, N_TRIALS, trials, plain, &error));
            REQUIRE_OK(ps_band_explain(s.band, N_FREQUENCIES, N_TRIALS, trials, own, &error));
            for (int i = 0; i < N_TRIALS; i++) assert_true(plain[i] > 0.0);
            require_within(kept->name, problems[k].name, "explained power", relative_difference(N_TRIALS, own, plain),
                           s.t.b->tolerance.images);
        }
        ps_band_destroy(plain_band);
        s.t.run.backend->ops = kept;
        end(&s);
    }
}

static void bad_arguments_are_refused(void **state) {
    setting s;
    double found[N_TRIALS];
    ps_error e = {0};
    ps_band *band = NULL;
    begin(state, PROBLEM_USUAL, &s);
#define REFUSED(call, text) problem_require_refused((call), &e, PS_E_ARGUMENT, text)
#define BAND_REFUSED(change, text)                                        \
    do {                                                                  \
        ps_band_desc desc = s.desc;                                       \
        change;                                                           \
        REFUSED(ps_band_create(s.t.run.backend, &desc, &band, &e), text); \
        assert_null(band);                                                \
    } while (0)
    BAND_REFUSED(desc.n_pixels = 0, "expected 1 or more of each");
    BAND_REFUSED(desc.n_frequencies = 0, "expected 1 or more of each");
    BAND_REFUSED(desc.strength = 0.0, "strength of a band");
    BAND_REFUSED(desc.spectra = NULL, "an array of the band");
    int64_t none[N_FREQUENCIES + 1] = {0}, late[N_FREQUENCIES + 1] = {1, 2, 3, 4, 5, 6, 7, 8};
    BAND_REFUSED(desc.first_alias = none, "has 0 aliases");
    BAND_REFUSED(desc.first_alias = late, "first_alias[0]");
    s.spectra[5] = NAN;
    BAND_REFUSED((void)0, "g of the band");
    s.spectra[5] = 0.0;
    s.row[1] = -1;
    BAND_REFUSED((void)0, "pixel 1");
    REFUSED(ps_band_explain(NULL, 1, 1, s.trials, found, &e), "band is NULL");
    REFUSED(ps_band_explain(s.band, 0, 1, s.trials, found, &e), "expected 1 to");
    REFUSED(ps_band_explain(s.band, N_FREQUENCIES + 1, 1, s.trials, found, &e), "expected 1 to");
    REFUSED(ps_band_explain(s.band, 1, -1, s.trials, found, &e), "expected 0 or more");
    REFUSED(ps_band_explain(s.band, 1, 1, NULL, found, &e), "trials is NULL");
    REFUSED(ps_band_explain(s.band, 1, 1, s.trials, NULL, &e), "explained is NULL");
    REQUIRE_OK(ps_band_explain(s.band, 1, 0, NULL, NULL, &error));
    s.trials[2].probe.C_A[4] = INFINITY;
    REFUSED(ps_band_explain(s.band, 1, N_TRIALS, s.trials, found, &e), "trial 2");
    s.trials[1].step_scale = 0.0;
    REFUSED(ps_band_explain(s.band, 1, N_TRIALS, s.trials, found, &e), "trial 1");
    s.trials[0].probe.mirrored_probe = true;
    REFUSED(ps_band_explain(s.band, 1, 1, s.trials, found, &e), "mirrored");
    int64_t beyond = s.t.p.plan.desc.n_frequencies;
    REFUSED(ps_frame_get_spectra(s.frame, 1, &beyond, s.dose, s.spectra, &e), "frequency");
    REFUSED(ps_frame_get_spectra(s.frame, 1, s.frequencies, 0.0, s.spectra, &e), "dose");
    REFUSED(ps_frame_get_spectra(s.frame, -1, s.frequencies, s.dose, s.spectra, &e), "expected 0 or more");
    end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_spectra_are_those_of_one_call_each),
        cmocka_unit_test(memory_is_as_planned),
        cmocka_unit_test(several_data_norms_are_those_of_one_call_each),
        cmocka_unit_test(spectra_after_a_reduction_are_the_same),
        cmocka_unit_test(a_value_depends_on_its_trial_alone),
        cmocka_unit_test(a_trials_own_transfer_is_explained),
        cmocka_unit_test(dark_pixels_say_nothing),
        cmocka_unit_test(every_way_agrees_with_the_plain_one),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return contract_run(tests, sizeof tests / sizeof *tests) != 0;
}
