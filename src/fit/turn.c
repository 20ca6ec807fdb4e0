#include "fit/fit.h"

/* -1: of the twin it is the negative. */
static double sign_of(const ps_fit_parameter *p) {
    switch (p->kind) {
    case PS_FIT_ABERRATION:
    case PS_FIT_ABERRATION_SINE: return ps_aberration_orders[p->term][1] % 2 == 0 ? -1.0 : 1.0;
    case PS_FIT_TILT_ROW:
    case PS_FIT_TILT_COLUMN: return -1.0;
    default: return 1.0;
    }
}

static void turn_curvature(const ps_fit_parameters *parameters, ps_fit_curvature *c) {
    for (int i = 0; i < c->n; i++) {
        for (int j = 0; j < c->n; j++) c->correlation[i * c->n + j] *= sign_of(&parameters->items[i]) * sign_of(&parameters->items[j]);
        for (int w = 0; w < c->n_weak; w++) c->weak[w * c->n + i] *= sign_of(&parameters->items[i]);
    }
}

static void turn_landscape(ps_fit_result *result) {
    ps_fit_rectangle *l = &result->landscape;
    double low = -l->C10_A[1], high = -l->C10_A[0], middle = 0.5 * (l->rotation_deg[0] + l->rotation_deg[1]);
    double moved = result->optics.rotation_deg - middle;
    l->C10_A[0] = low, l->C10_A[1] = high;
    for (int end = 0; end < 2; end++) l->rotation_deg[end] += moved;
    for (int r = 0; r < PS_FIT_LANDSCAPE; r++) {
        double *row = result->landscape_values + r * PS_FIT_LANDSCAPE;
        for (int i = 0, j = PS_FIT_LANDSCAPE - 1; i < j; i++, j--) {
            double kept = row[i];
            row[i] = row[j], row[j] = kept;
        }
    }
}

void ps_fit_turn(ps_fit_result *result, const double step_A[2]) {
    ps_optics twin;
    ps_fit_twin(&result->optics, &twin);
    result->optics = twin;
    double kept = result->after;
    result->after = result->twin;
    result->twin = kept;
    ps_fit_read(&result->parameters, &result->optics, step_A, result->values);
    turn_curvature(&result->parameters, &result->curvature);
    turn_landscape(result);
}
