#include "fit/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CANDIDATES = 6, N_ORIENTATIONS = 8 };

/* Of the grid, in degrees and in units of wavelength/semiangle^2. A step of either moves the phase at the rim by less than 2 rad. */
static const double rotation_step_deg = 5.0, defocus_step = 0.3, defocus_reach = 16.0;
static const double given_rotation_deg = 15.0, given_defocus = 5.0; /* how far from a start that is given */

typedef struct {
    ps_fit_spread *spread;
    const ps_fit_data *data;
    const ps_fit_options *options;
    ps_fit_result *result;
    int rotation;  /* its quantity */
    double unit_A; /* of defocus */
    ps_fit_candidate candidates[MOST_CANDIDATES];
    int n;
    bool may_glance, has_glanced;
    double clarity; /* of what was glanced at: ps_fit_grid_glance */
} search;

/* The best of a grid join the candidates. A large one is only glanced at where that is allowed. */
static ps_code search_grid(search *s, const ps_optics *base, const ps_fit_rectangle *grid, ps_error *error) {
    enum { LARGE = 600 };
    const double *step_A = s->data->step_A;
    if (!s->may_glance || !s->spread->bands[PS_FIT_THIN] || ps_fit_grid_points(grid) < LARGE)
        return ps_fit_grid_search(s->spread, PS_FIT_COARSE, step_A, base, grid, MOST_CANDIDATES, s->candidates, &s->n, error);
    s->has_glanced = true;
    return ps_fit_grid_glance(s->spread, PS_FIT_THIN, PS_FIT_COARSE, step_A, base, grid, MOST_CANDIDATES, s->candidates, &s->n, &s->clarity,
                              error);
}

static int list_orientations(const ps_optics *start, const ps_fit_options *options, ps_optics *orientations) {
    int n = 0;
    for (int i = 0; i < N_ORIENTATIONS; i++) {
        bool transpose = i & 1, flips[2] = {i & 2, i & 4};
        bool is_start = transpose == start->detector_transpose,
             are_start = flips[0] == start->detector_flip[0] && flips[1] == start->detector_flip[1];
        if ((!options->transpose && !is_start) || (!options->flips && !are_start)) continue;
        orientations[n] = *start;
        orientations[n].detector_transpose = transpose;
        orientations[n].detector_flip[0] = flips[0];
        orientations[n++].detector_flip[1] = flips[1];
    }
    return n;
}

/* Whether rotations that differ by 180 degrees are twins in all that is searched: then half of them are enough. */
static bool has_twins(const search *s) {
    const ps_optics *start = &s->result->start;
    if (s->options->bounded[s->rotation] || s->options->bounded[0] || s->options->given[s->rotation] || s->options->given[0]) return false;
    if (!s->options->free[0]) return false;
    for (int i = 1; i < PS_N_ABERRATIONS; i++)
        if (ps_aberration_orders[i][1] % 2 == 0 && start->C_A[i] != 0.0) return false;
    return start->tilt_mrad[0] == 0.0 && start->tilt_mrad[1] == 0.0;
}

static void set_range(const search *s, int quantity, double middle, double reach, double range[2]) {
    range[0] = middle - reach, range[1] = middle + reach;
    if (!s->options->free[quantity]) range[0] = range[1] = middle;
    if (s->options->free[quantity] && s->options->bounded[quantity]) {
        if (!s->options->given[quantity]) range[0] = s->options->low[quantity], range[1] = s->options->high[quantity];
        range[0] = fmax(range[0], s->options->low[quantity]);
        range[1] = fmin(range[1], s->options->high[quantity]);
        if (range[0] > range[1]) range[0] = range[1] = fmin(fmax(middle, s->options->low[quantity]), s->options->high[quantity]);
    }
}

static ps_fit_rectangle whole_grid(const search *s) {
    const ps_optics *start = &s->result->start;
    const bool *given = s->options->given;
    ps_fit_rectangle grid = {.rotation_step_deg = rotation_step_deg, .C10_step_A = defocus_step * s->unit_A};
    set_range(s, s->rotation, start->rotation_deg, given[s->rotation] ? given_rotation_deg : 180.0, grid.rotation_deg);
    set_range(s, 0, given[0] ? start->C_A[0] : 0.0, (given[0] ? given_defocus : defocus_reach) * s->unit_A, grid.C10_A);
    if (s->options->free[s->rotation] && !s->options->bounded[s->rotation] && !given[s->rotation]) {
        grid.rotation_deg[0] = 0.0;
        grid.rotation_deg[1] = (has_twins(s) ? 180.0 : 360.0) - rotation_step_deg;
    }
    if (!s->options->free[0]) grid.C10_A[0] = grid.C10_A[1] = start->C_A[0];
    return grid;
}

/* Too large a defocus for the grid, told by the shifts: a finer one around it, for rotations are told finer there. */
static ps_code search_shifts(search *s, const ps_optics *orientation, ps_error *error) {
    enum { MOST_ROTATIONS = 25, MOST_DEFOCI = 160 };
    static const double least_trust = 0.05, rotation_reach_deg = 6.0, defocus_reach_part = 0.15;
    const ps_fit_shifts *shifts = &s->result->shifts;
    const ps_fit_options *o = s->options;
    if (!o->free[0] || !o->free[s->rotation] || shifts->trust < least_trust || fabs(shifts->C10_A) < 2.0 * s->unit_A) return PS_OK;
    for (int twin = 0; twin < 2; twin++) {
        double reach_A = fmax(4.0 * s->unit_A, defocus_reach_part * shifts->C10_A), turned = shifts->rotation_deg + 180.0 * twin;
        ps_optics base = *orientation;
        ps_fit_rectangle grid = {.rotation_deg = {turned - rotation_reach_deg, turned + rotation_reach_deg}};
        double middle = twin ? -shifts->C10_A : shifts->C10_A, turns = shifts->C10_A / s->unit_A;
        grid.C10_A[0] = middle - reach_A, grid.C10_A[1] = middle + reach_A;
        grid.rotation_step_deg = fmax(2.0 * rotation_reach_deg / (MOST_ROTATIONS - 1), fmin(rotation_step_deg, 20.0 / turns));
        grid.C10_step_A = fmax(2.0 * reach_A / (MOST_DEFOCI - 1), defocus_step * s->unit_A);
        if (o->free[1]) {
            base.C_A[1] = hypot(shifts->C12_cos_A, shifts->C12_sin_A);
            base.angle_rad[1] = 0.5 * atan2(shifts->C12_sin_A, shifts->C12_cos_A) + (twin ? M_PI / 2.0 : 0.0);
        }
        PS_TRY(search_grid(s, &base, &grid, error));
        if (has_twins(s)) return PS_OK;
    }
    return PS_OK;
}

/* Whether a candidate is one that the job's bounds and given values allow. */
static bool is_allowed(const search *s, const ps_optics *optics) {
    ps_fit_rectangle grid = whole_grid(s);
    const ps_fit_options *o = s->options;
    double away = remainder(optics->rotation_deg - 0.5 * (grid.rotation_deg[0] + grid.rotation_deg[1]), 360.0);
    bool turned = (o->bounded[s->rotation] || o->given[s->rotation] || !o->free[s->rotation]) &&
                  fabs(away) > 0.5 * (grid.rotation_deg[1] - grid.rotation_deg[0]) + 1e-9;
    bool defocused = (o->bounded[0] || o->given[0] || !o->free[0]) && (optics->C_A[0] < grid.C10_A[0] || optics->C_A[0] > grid.C10_A[1]);
    return !turned && !defocused;
}

static void drop_forbidden(search *s) {
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (is_allowed(s, &s->candidates[i].optics)) s->candidates[n++] = s->candidates[i];
    s->n = n;
}

/* Rotation, C10 and C12, as far as they are free, from each candidate. */
static ps_code climb_candidates(search *s, ps_error *error) {
    enum { MOST_STEPS = 25 };
    double best = -1.0;
    for (int i = 0; i < s->n; i++) {
        double values[PS_FIT_MOST_PARAMETERS], fraction;
        ps_fit_problem problem = {.spread = s->spread, .band = 0, .step_A = s->data->step_A, .base = s->candidates[i].optics};
        if (s->options->free[s->rotation]) ps_fit_add(&problem.parameters, s->rotation, &s->result->start);
        for (int term = 0; term < 2; term++)
            if (s->options->free[term]) ps_fit_add(&problem.parameters, term, &s->result->start);
        ps_fit_read(&problem.parameters, &problem.base, s->data->step_A, values);
        PS_TRY(ps_fit_climb(&problem, MOST_STEPS, values, &fraction, error));
        if (!(fraction > best)) continue;
        best = fraction;
        s->result->optics = problem.base;
        ps_fit_apply(&problem.parameters, values, s->data->step_A, &s->result->optics);
    }
    return PS_OK;
}

/* Noise alone does not reach half of it among ten thousand values. */
static bool is_clear(const search *s) {
    static const double least_clarity = 10.0;
    return s->clarity >= least_clarity;
}

ps_code ps_fit_stage_global(ps_fit_spread *spread, const ps_fit_data *data, const ps_fit_options *options, ps_fit_result *result,
                            ps_error *error) {
    search s = {.spread = spread,
                .data = data,
                .options = options,
                .result = result,
                .rotation = ps_fit_find_name("rotation_deg"),
                .unit_A = ps_fit_defocus_unit_A(&result->start)};
    ps_optics orientations[N_ORIENTATIONS];
    int n_orientations = list_orientations(&result->start, options, orientations);
    const ps_fit_rectangle grid = whole_grid(&s);
    for (int pass = 0; pass < 2 && !is_clear(&s); pass++) {
        s.may_glance = pass == 0;
        for (int i = 0; i < n_orientations; i++) {
            PS_TRY(search_grid(&s, &orientations[i], &grid, error));
            PS_TRY(search_shifts(&s, &orientations[i], error));
        }
        if (!s.has_glanced) break;
    }
    drop_forbidden(&s);
    ps_fit_candidate start = {.optics = result->start, .fraction = result->before};
    if (s.n == 0) ps_fit_join_candidate(MOST_CANDIDATES, s.candidates, &s.n, &start);
    return climb_candidates(&s, error);
}

ps_code ps_fit_stage_floor(ps_fit_spread *spread, const ps_fit_data *data, ps_fit_result *result, ps_error *error) {
    double unit_A = ps_fit_defocus_unit_A(&result->start), *values = NULL;
    int64_t n_rotations, n_defoci;
    const ps_fit_rectangle grid = {
        .rotation_deg = {0.0, 330.0}, .rotation_step_deg = 30.0, .C10_A = {-14.0 * unit_A, 14.0 * unit_A}, .C10_step_A = 4.0 * unit_A};
    PS_TRY(ps_fit_grid_values(spread, 1, data->step_A, &result->start, &grid, &n_rotations, &n_defoci, &values, error));
    result->floor = ps_fit_median(n_rotations * n_defoci, values);
    free(values);
    return PS_OK;
}

ps_code ps_fit_stage_landscape(ps_fit_spread *spread, const ps_fit_data *data, ps_fit_result *result, ps_error *error) {
    static const double rotation_reach_deg = 30.0, least_defocus_reach = 6.0;
    double unit_A = ps_fit_defocus_unit_A(&result->optics), C10_A = result->optics.C_A[0], rotation = result->optics.rotation_deg;
    double reach_A = fmax(least_defocus_reach * unit_A, 0.5 * fabs(C10_A)), *values = NULL;
    int64_t n_rotations, n_defoci;
    result->landscape = (ps_fit_rectangle){.rotation_deg = {rotation - rotation_reach_deg, rotation + rotation_reach_deg},
                                           .rotation_step_deg = 2.0 * rotation_reach_deg / (PS_FIT_LANDSCAPE - 1),
                                           .C10_A = {C10_A - reach_A, C10_A + reach_A},
                                           .C10_step_A = 2.0 * reach_A / (PS_FIT_LANDSCAPE - 1)};
    PS_TRY(ps_fit_grid_values(spread, 0, data->step_A, &result->optics, &result->landscape, &n_rotations, &n_defoci, &values, error));
    if (n_rotations == PS_FIT_LANDSCAPE && n_defoci == PS_FIT_LANDSCAPE)
        memcpy(result->landscape_values, values, sizeof result->landscape_values);
    free(values);
    return PS_OK;
}
