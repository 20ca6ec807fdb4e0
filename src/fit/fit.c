#include "fit/fit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fit/stages.h"

/* Formats one line for people. */
static void __attribute__((format(printf, 2, 3))) note(ps_fit_result *result, const char *format, ...) {
    va_list arguments;
    if (result->n_notes == PS_FIT_MOST_NOTES) return;
    va_start(arguments, format);
    vsnprintf(result->notes[result->n_notes++], PS_FIT_NOTE, format, arguments);
    va_end(arguments);
}

/* ---- what is free ---- */

static void add_bounded(const ps_fit_options *options, int quantity, const ps_optics *optics, ps_fit_parameters *parameters) {
    int before = parameters->n;
    ps_fit_add(parameters, quantity, optics);
    for (int i = before; options->bounded[quantity] && i < parameters->n; i++) {
        ps_fit_parameter *p = &parameters->items[i];
        bool has_angle = p->term >= 0 && ps_aberration_orders[p->term][1] > 0;
        p->low = fmax(p->low, has_angle ? -options->high[quantity] : options->low[quantity]);
        p->high = fmin(p->high, options->high[quantity]);
    }
}

static void add_terms(const ps_fit_options *options, const ps_optics *optics, int n_order, bool only_free, ps_fit_parameters *parameters) {
    for (int term = 0; term < PS_N_ABERRATIONS; term++)
        if (ps_aberration_orders[term][0] == n_order && (!only_free || options->free[term])) add_bounded(options, term, optics, parameters);
}

/* ---- the stages ---- */

typedef struct {
    ps_fit_spread *spread;
    const ps_fit_data *data;
    const ps_fit_options *options;
    ps_fit_problem problem; /* over the whole band */
    ps_fit_result *result;
    double signal; /* see ps_fit_find_curvature */
} fit;

/* Variance of the noise per datum, from what the best optics so far leave; amplitude contrast and what is no weak object counts as noise.
 */
static void set_noise(fit *f, double fraction) {
    double n = (double)f->data->n_frequencies * (double)(f->data->n_pixels - 1), power = f->spread->power[1];
    f->result->noise_per_datum = power * (1.0 - fraction) / n;
    f->signal = power / f->result->noise_per_datum;
}

static ps_code climb(fit *f, ps_error *error) {
    enum { MOST_STEPS = 60 };
    ps_fit_result *r = f->result;
    ps_fit_read(&f->problem.parameters, &r->optics, f->data->step_A, r->values);
    f->problem.base = r->optics;
    PS_TRY(ps_fit_climb(&f->problem, MOST_STEPS, r->values, &r->after, error));
    ps_fit_apply(&f->problem.parameters, r->values, f->data->step_A, &r->optics);
    set_noise(f, r->after);
    return PS_OK;
}

/* Terms that add less than this part of what is explained are left out: what is no weak phase object passes for aberrations more easily
 * than noise does, and a term too many spoils the others (C30 goes with C10). */
static const double least_gain = 0.005;

/* Tries more terms; they stay where they explain clearly more, by that measure and by the Bayesian information criterion, and the data tell
 * each of them. */
static ps_code extend(fit *f, int n_order, ps_error *error) {
    const ps_fit_result before = *f->result;
    const ps_fit_problem problem = f->problem;
    double signal = f->signal;
    ps_fit_curvature curvature;
    add_terms(f->options, &f->result->start, n_order, false, &f->problem.parameters);
    double n_more = f->problem.parameters.n - problem.parameters.n, n_data = (double)f->data->n_frequencies * (double)f->data->n_pixels;
    PS_TRY(climb(f, error));
    double gain = 2.0 * f->signal * (f->result->after - before.after), chance = n_more * log(2.0 * n_data), worst = 0.0;
    PS_TRY(ps_fit_find_curvature(&f->problem, f->result->values, f->signal, &curvature, error));
    if (curvature.n_weak > 0) worst = curvature.weak_error[0];
    bool explains = gain > chance && f->result->after - before.after > least_gain * (before.after - before.floor);
    if (explains && worst < PS_FIT_WEAK) return PS_OK;
    *f->result = before;
    f->problem = problem;
    f->signal = signal;
    if (explains)
        note(f->result, "aberrations of order %d are not fitted: the data do not tell all of them (%.2g rad at the aperture's rim)",
             n_order, worst);
    else
        note(f->result, "aberrations of order %d are not fitted: they do not explain clearly more", n_order);
    return PS_OK;
}

static ps_code climb_automatic(fit *f, ps_error *error) {
    for (int quantity = 0; quantity < PS_FIT_N_NAMES; quantity++)
        if (f->options->free[quantity]) add_bounded(f->options, quantity, &f->result->start, &f->problem.parameters);
    PS_TRY(climb(f, error));
    PS_TRY(extend(f, 2, error));
    return extend(f, 3, error);
}

/* First what the grid found and astigmatism, then what is free of each higher order, then all the rest. */
static ps_code climb_named(fit *f, ps_error *error) {
    int rotation = ps_fit_find_name("rotation_deg"), known = 0;
    if (f->options->free[rotation]) add_bounded(f->options, rotation, &f->result->start, &f->problem.parameters);
    for (int n_order = 1; n_order <= 5; n_order++) {
        add_terms(f->options, &f->result->start, n_order, true, &f->problem.parameters);
        if (f->problem.parameters.n > known) PS_TRY(climb(f, error));
        known = f->problem.parameters.n;
    }
    for (int quantity = PS_N_ABERRATIONS; quantity < PS_FIT_N_NAMES; quantity++)
        if (f->options->free[quantity]) add_bounded(f->options, quantity, &f->result->start, &f->problem.parameters);
    return f->problem.parameters.n > known || known == 0 ? climb(f, error) : PS_OK;
}

/* ---- what is said ---- */

static ps_code check_told(const fit *f, ps_error *error) {
    const ps_fit_result *r = f->result;
    double gain = f->signal * (r->after - r->floor), chance = 6.0 * sqrt((double)f->data->n_frequencies) + 6.0;
    if (gain > chance) return PS_OK;
    return PS_FAIL(
        error, PS_E_INPUT,
        "no optics explain the data clearly better than others: the best ones explain %.4g of the power of %lld scan frequencies, "
        "wrong ones %.4g, and the noise is too large to tell (%.1f of the %.1f that would); more counts, or a start nearer to the "
        "truth, may help",
        r->after, (long long)f->data->n_frequencies, r->floor, gain, chance);
}

static void note_weak(fit *f) {
    const ps_fit_curvature *c = &f->result->curvature;
    for (int w = 0; w < c->n_weak && w < 4; w++) {
        char text[PS_FIT_NOTE / 2] = "";
        size_t at = 0;
        for (int i = 0; i < c->n; i++) {
            double part = c->weak[w * c->n + i];
            if (fabs(part) < 0.3 || at + 48 > sizeof text) continue;
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%+.2f %s", at ? " " : "", part, f->problem.parameters.items[i].name);
        }
        note(f->result, "weakly told: %s (standard error %.2g of their natural sizes, e.g. rad at the aperture's rim)", text,
             c->weak_error[w]);
    }
}

static void note_bounds(fit *f) {
    const ps_fit_parameters *p = &f->problem.parameters;
    for (int i = 0; i < p->n; i++) {
        double value = f->result->values[i], near = 1e-3 * p->items[i].size;
        if (value <= p->items[i].low + near || value >= p->items[i].high - near)
            note(f->result, "%s ended at its bound %g: give wider ones if it may lie beyond", p->items[i].name, value);
    }
}

static void note_correlations(fit *f) {
    const ps_fit_curvature *c = &f->result->curvature;
    for (int i = 0; i < c->n; i++)
        for (int j = 0; j < i; j++) {
            double correlation = c->correlation[i * c->n + j];
            if (c->is_known[i] && c->is_known[j] && fabs(correlation) > 0.95)
                note(f->result, "%s and %s are hardly told apart: their correlation is %.3f", f->problem.parameters.items[j].name,
                     f->problem.parameters.items[i].name, correlation);
        }
}

/* A false maximum explains much, but not what a weak phase object and the noise of the counts leave. */
static void note_left(fit *f) {
    static const double most_left = 0.15;
    double power = f->spread->power[1], counted = f->data->noise_power * (double)f->data->n_frequencies;
    double signal = power - counted * (1.0 - 1.0 / (double)f->data->n_pixels), part = f->result->after * power / signal;
    if (signal <= 0.0 || part >= 1.0 - most_left) return;
    note(f->result,
         "%.0f %% of what stands out of the counts' noise is explained: the rest is other noise, strong scattering, or these "
         "optics are far from the true ones, as with a large defocus and no start",
         100.0 * part);
}

static ps_code describe(fit *f, ps_error *error) {
    ps_fit_result *r = f->result;
    ps_optics twin;
    ps_trial trial;
    ps_fit_twin(&r->optics, &twin);
    ps_fit_trial(&twin, f->data->step_A, &trial);
    PS_TRY(ps_fit_spread_try(f->spread, 1, 1, &trial, &r->twin, error));
    r->parameters = f->problem.parameters;
    if (r->parameters.n > 0) PS_TRY(ps_fit_find_curvature(&f->problem, r->values, f->signal, &r->curvature, error));
    note_left(f);
    note_weak(f);
    note_bounds(f);
    note_correlations(f);
    return ps_fit_stage_landscape(f->spread, f->data, r, error);
}

static ps_code look_at_start(fit *f, ps_error *error) {
    ps_trial trial;
    ps_fit_trial(&f->result->start, f->data->step_A, &trial);
    PS_TRY(ps_fit_spread_try(f->spread, 1, 1, &trial, &f->result->before, error));
    PS_TRY(ps_fit_stage_floor(f->spread, f->data, f->result, error));
    ps_fit_find_curl(f->data, &f->result->start, &f->result->curl);
    return ps_fit_find_shifts(f->data, &f->result->start, &f->result->shifts, error);
}

ps_code ps_fit_run(ps_fit_spread *spread, const ps_fit_data *data, const ps_optics *start, const ps_fit_options *options,
                   ps_fit_result *result, ps_error *error) {
    memset(result, 0, sizeof *result);
    result->start = result->optics = *start;
    fit f = {.spread = spread, .data = data, .options = options, .result = result};
    f.problem = (ps_fit_problem){.spread = spread, .band = 1, .step_A = data->step_A};
    PS_TRY(look_at_start(&f, error));
    PS_TRY(ps_fit_stage_global(spread, data, options, result, error));
    PS_TRY(options->automatic ? climb_automatic(&f, error) : climb_named(&f, error));
    PS_TRY(check_told(&f, error));
    PS_TRY(describe(&f, error));
    result->n_evaluations = spread->n_evaluations;
    return PS_OK;
}

/* ---- optics that were given ---- */

ps_code ps_fit_look_beside(ps_fit_spread *spread, const ps_fit_data *data, const ps_optics *optics, ps_optics *better, double *gain,
                           ps_error *error) {
    enum { MOST_STEPS = 25 };
    double values[2], here, unit = ps_fit_defocus_unit_A(optics);
    ps_fit_candidate candidate = {0};
    int n = 0;
    ps_fit_problem problem = {.spread = spread, .band = 1, .step_A = data->step_A, .base = *optics};
    const ps_fit_rectangle beside = {.rotation_deg = {optics->rotation_deg - 10.0, optics->rotation_deg + 10.0},
                                     .rotation_step_deg = 5.0,
                                     .C10_A = {optics->C_A[0] - 4.0 * unit, optics->C_A[0] + 4.0 * unit},
                                     .C10_step_A = 0.4 * unit};
    ps_fit_add(&problem.parameters, ps_fit_find_name("rotation_deg"), optics);
    ps_fit_add(&problem.parameters, ps_fit_quantity_of_term(0), optics);
    ps_fit_read(&problem.parameters, optics, data->step_A, values);
    PS_TRY(ps_fit_try(&problem, 1, values, &here, error));
    PS_TRY(ps_fit_grid_search(spread, 1, data->step_A, optics, &beside, 1, &candidate, &n, error));
    ps_fit_read(&problem.parameters, n > 0 ? &candidate.optics : optics, data->step_A, values);
    PS_TRY(ps_fit_climb(&problem, MOST_STEPS, values, &candidate.fraction, error));
    *better = *optics;
    ps_fit_apply(&problem.parameters, values, data->step_A, better);
    double noise = (1.0 - candidate.fraction) / ((double)data->n_frequencies * (double)(data->n_pixels - 1));
    *gain = sqrt(fmax(0.0, 2.0 * (candidate.fraction - here) / noise));
    return PS_OK;
}
