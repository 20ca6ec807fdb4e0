#include "fit/search.h"

#include <math.h>
#include <nlopt.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"

static const double gradient_step = 0.02; /* of a parameter's natural size */

ps_code ps_fit_try(const ps_fit_problem *problem, int64_t n, const double *values, double *fractions, ps_error *error) {
    ps_trial *trials = malloc((size_t)n * sizeof *trials);
    if (!trials) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld trial optics", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        ps_optics optics = problem->base;
        ps_fit_apply(&problem->parameters, values + i * problem->parameters.n, problem->step_A, &optics);
        ps_fit_trial(&optics, problem->step_A, &trials[i]);
    }
    ps_code code = ps_fit_spread_try(problem->spread, problem->band, n, trials, fractions, error);
    free(trials);
    return code;
}

/* One climb, in coordinates of natural sizes from its start. */
typedef struct {
    const ps_fit_problem *problem;
    nlopt_opt optimiser;
    double start[PS_FIT_MOST_PARAMETERS];
    double scale; /* of the objective: what the start explains */
    double best;  /* fraction */
    double best_values[PS_FIT_MOST_PARAMETERS];
    ps_code code;
    ps_error *error;
} climb;

/* values: [1 + 2 n, n]: the place, then one step down and up along each axis, none beyond a bound. */
static void place_trials(const climb *c, const double *x, double *values) {
    const ps_fit_parameters *p = &c->problem->parameters;
    for (int t = 0; t < 1 + 2 * p->n; t++) {
        double *to = values + t * p->n;
        for (int i = 0; i < p->n; i++) to[i] = c->start[i] + x[i] * p->items[i].size;
        if (t > 0) to[(t - 1) / 2] += (t % 2 ? -gradient_step : gradient_step) * p->items[(t - 1) / 2].size;
        ps_fit_clamp(p, to);
    }
}

static double objective(unsigned n, const double *x, double *gradient, void *context) {
    climb *c = context;
    const ps_fit_parameters *p = &c->problem->parameters;
    double values[(1 + 2 * PS_FIT_MOST_PARAMETERS) * PS_FIT_MOST_PARAMETERS], fractions[1 + 2 * PS_FIT_MOST_PARAMETERS];
    place_trials(c, x, values);
    c->code = ps_fit_try(c->problem, gradient ? 1 + 2 * (int64_t)n : 1, values, fractions, c->error);
    if (c->code != PS_OK) {
        nlopt_force_stop(c->optimiser);
        return 0.0;
    }
    if (fractions[0] > c->best) {
        c->best = fractions[0];
        memcpy(c->best_values, values, n * sizeof *values);
    }
    for (unsigned i = 0; gradient && i < n; i++) {
        const double *down = values + (1 + 2 * i) * n, *up = down + n;
        double between = (up[i] - down[i]) / p->items[i].size;
        gradient[i] = between > 0.0 ? -(fractions[2 + 2 * i] - fractions[1 + 2 * i]) / between / c->scale : 0.0;
    }
    return -fractions[0] / c->scale;
}

static void set_up(climb *c, int most_steps) {
    const ps_fit_parameters *p = &c->problem->parameters;
    double low[PS_FIT_MOST_PARAMETERS], high[PS_FIT_MOST_PARAMETERS];
    for (int i = 0; i < p->n; i++) {
        low[i] = (p->items[i].low - c->start[i]) / p->items[i].size;
        high[i] = (p->items[i].high - c->start[i]) / p->items[i].size;
    }
    nlopt_set_min_objective(c->optimiser, objective, c);
    nlopt_set_lower_bounds(c->optimiser, low);
    nlopt_set_upper_bounds(c->optimiser, high);
    nlopt_set_xtol_abs1(c->optimiser, 1e-3);
    nlopt_set_ftol_rel(c->optimiser, 1e-8);
    nlopt_set_maxeval(c->optimiser, most_steps);
}

ps_code ps_fit_climb(const ps_fit_problem *problem, int most_steps, double *values, double *fraction, ps_error *error) {
    const ps_fit_parameters *p = &problem->parameters;
    double x[PS_FIT_MOST_PARAMETERS] = {0}, reached;
    climb c = {.problem = problem, .error = error};
    PS_ASSERT(p->n <= PS_FIT_MOST_PARAMETERS);
    ps_fit_clamp(p, values);
    PS_TRY(ps_fit_try(problem, 1, values, fraction, error));
    if (p->n == 0) return PS_OK;
    c.optimiser = nlopt_create(NLOPT_LD_SLSQP, (unsigned)p->n);
    if (!c.optimiser) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a search over %d parameters", p->n);
    memcpy(c.start, values, (size_t)p->n * sizeof *values);
    memcpy(c.best_values, values, (size_t)p->n * sizeof *values);
    c.best = *fraction;
    c.scale = fmax(*fraction, 1e-12);
    set_up(&c, most_steps);
    nlopt_optimize(c.optimiser, x, &reached); /* how it ended does not matter: the best that was met is the answer */
    nlopt_destroy(c.optimiser);
    PS_TRY(c.code);
    memcpy(values, c.best_values, (size_t)p->n * sizeof *values);
    *fraction = c.best;
    return PS_OK;
}
