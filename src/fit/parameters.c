#include "fit/parameters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/assert.h"

/* Quantities beside the aberrations, which come first. */
enum { ROTATION = PS_N_ABERRATIONS, TILT, THICKNESS, STEP, CENTER, SEMIANGLE };

static const char *const names[PS_FIT_N_NAMES] = {"C10",
                                                  "C12",
                                                  "C21",
                                                  "C23",
                                                  "C30",
                                                  "C32",
                                                  "C34",
                                                  "C41",
                                                  "C43",
                                                  "C45",
                                                  "C50",
                                                  "C52",
                                                  "C54",
                                                  "C56",
                                                  "rotation_deg",
                                                  "tilt_mrad",
                                                  "thickness_A",
                                                  "scan_step_A",
                                                  "detector_center_px",
                                                  "semiangle_mrad"};

const char *ps_fit_name(int quantity) {
    PS_ASSERT(quantity >= 0 && quantity < PS_FIT_N_NAMES);
    return names[quantity];
}

int ps_fit_find_name(const char *name) {
    for (int i = 0; i < PS_FIT_N_NAMES; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return -1;
}

int ps_fit_quantity_of_term(int term) {
    return term;
}

int ps_fit_quantity_of(const ps_fit_parameter *parameter) {
    switch (parameter->kind) {
    case PS_FIT_ABERRATION:
    case PS_FIT_ABERRATION_SINE: return parameter->term;
    case PS_FIT_TILT_ROW:
    case PS_FIT_TILT_COLUMN: return TILT;
    case PS_FIT_THICKNESS: return THICKNESS;
    case PS_FIT_STEP_SCALE: return STEP;
    case PS_FIT_CENTER_ROW:
    case PS_FIT_CENTER_COLUMN: return CENTER;
    case PS_FIT_SEMIANGLE: return SEMIANGLE;
    default: return ROTATION;
    }
}

double ps_fit_defocus_unit_A(const ps_optics *optics) {
    double alpha = 1e-3 * optics->semiangle_mrad;
    return ps_wavelength_A(optics->voltage_V) / (alpha * alpha);
}

static ps_fit_parameter *add(ps_fit_parameters *parameters, ps_fit_kind kind, const char *name, double size, double low, double high) {
    PS_ASSERT(parameters->n < PS_FIT_MOST_PARAMETERS);
    ps_fit_parameter *p = &parameters->items[parameters->n++];
    *p = (ps_fit_parameter){.kind = kind, .term = -1, .size = size, .low = low, .high = high};
    snprintf(p->name, sizeof p->name, "%s", name);
    return p;
}

static void add_aberration(ps_fit_parameters *parameters, int term, const ps_optics *optics) {
    char name[PS_FIT_NAME];
    int n = ps_aberration_orders[term][0], m = ps_aberration_orders[term][1];
    double alpha = 1e-3 * optics->semiangle_mrad;
    double size = (n + 1) * ps_wavelength_A(optics->voltage_V) / (2.0 * M_PI * pow(alpha, n + 1));
    snprintf(name, sizeof name, m ? "C%d%d_cos_A" : "C%d%d_A", n, m);
    add(parameters, PS_FIT_ABERRATION, name, size, -INFINITY, INFINITY)->term = term;
    if (m == 0) return;
    snprintf(name, sizeof name, "C%d%d_sin_A", n, m);
    add(parameters, PS_FIT_ABERRATION_SINE, name, size, -INFINITY, INFINITY)->term = term;
}

static void add_center(ps_fit_parameters *parameters, const ps_optics *optics) {
    static const char *const axis_names[] = {"center_row_px", "center_column_px"};
    static const double most_px = 3.0;
    for (int axis = 0; axis < 2; axis++) {
        double middle = optics->detector_center_px[axis];
        add(parameters, axis ? PS_FIT_CENTER_COLUMN : PS_FIT_CENTER_ROW, axis_names[axis], 0.3, middle - most_px, middle + most_px);
    }
}

void ps_fit_add(ps_fit_parameters *parameters, int quantity, const ps_optics *optics) {
    if (ps_fit_has(parameters, quantity)) return;
    double pitch = fmax(optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1]);
    switch (quantity) {
    case ROTATION: add(parameters, PS_FIT_ROTATION, "rotation_deg", 5.0, -INFINITY, INFINITY); break;
    case TILT:
        add(parameters, PS_FIT_TILT_ROW, "tilt_row_mrad", 5.0, -200.0, 200.0);
        add(parameters, PS_FIT_TILT_COLUMN, "tilt_column_mrad", 5.0, -200.0, 200.0);
        break;
    case THICKNESS: add(parameters, PS_FIT_THICKNESS, "thickness_A", ps_fit_defocus_unit_A(optics), 0.0, 1e5); break;
    case STEP: add(parameters, PS_FIT_STEP_SCALE, "scan_step_scale", 0.03, 0.5, 2.0); break;
    case CENTER: add_center(parameters, optics); break;
    case SEMIANGLE:
        add(parameters, PS_FIT_SEMIANGLE, "semiangle_mrad", 0.5 * pitch, fmax(pitch, 0.8 * optics->semiangle_mrad),
            1.25 * optics->semiangle_mrad);
        break;
    default: add_aberration(parameters, quantity, optics);
    }
}

bool ps_fit_has(const ps_fit_parameters *parameters, int quantity) {
    for (int i = 0; i < parameters->n; i++)
        if (ps_fit_quantity_of(&parameters->items[i]) == quantity) return true;
    return false;
}

void ps_fit_read(const ps_fit_parameters *parameters, const ps_optics *optics, const double step_A[2], double *values) {
    for (int i = 0; i < parameters->n; i++) {
        const ps_fit_parameter *p = &parameters->items[i];
        int term = p->term, m = term >= 0 ? ps_aberration_orders[term][1] : 0;
        switch (p->kind) {
        case PS_FIT_ROTATION: values[i] = optics->rotation_deg; break;
        case PS_FIT_ABERRATION: values[i] = optics->C_A[term] * (m ? cos(m * optics->angle_rad[term]) : 1.0); break;
        case PS_FIT_ABERRATION_SINE: values[i] = optics->C_A[term] * sin(m * optics->angle_rad[term]); break;
        case PS_FIT_TILT_ROW: values[i] = optics->tilt_mrad[0]; break;
        case PS_FIT_TILT_COLUMN: values[i] = optics->tilt_mrad[1]; break;
        case PS_FIT_THICKNESS: values[i] = optics->thickness_A; break;
        case PS_FIT_STEP_SCALE: values[i] = optics->scan_step_A[0] / step_A[0]; break;
        case PS_FIT_CENTER_ROW: values[i] = optics->detector_center_px[0]; break;
        case PS_FIT_CENTER_COLUMN: values[i] = optics->detector_center_px[1]; break;
        case PS_FIT_SEMIANGLE: values[i] = optics->semiangle_mrad; break;
        }
    }
}

static void apply_aberration(const ps_fit_parameters *parameters, int at, const double *values, ps_optics *optics) {
    int term = parameters->items[at].term, m = ps_aberration_orders[term][1];
    if (m == 0) {
        optics->C_A[term] = values[at];
        return;
    }
    optics->C_A[term] = hypot(values[at], values[at + 1]); /* its sine comes next */
    optics->angle_rad[term] = optics->C_A[term] > 0.0 ? atan2(values[at + 1], values[at]) / m : 0.0;
}

void ps_fit_apply(const ps_fit_parameters *parameters, const double *values, const double step_A[2], ps_optics *optics) {
    for (int i = 0; i < parameters->n; i++) {
        switch (parameters->items[i].kind) {
        case PS_FIT_ROTATION: optics->rotation_deg = ps_fit_wrap_deg(values[i]); break;
        case PS_FIT_ABERRATION: apply_aberration(parameters, i, values, optics); break;
        case PS_FIT_ABERRATION_SINE: break;
        case PS_FIT_TILT_ROW: optics->tilt_mrad[0] = values[i]; break;
        case PS_FIT_TILT_COLUMN: optics->tilt_mrad[1] = values[i]; break;
        case PS_FIT_THICKNESS: optics->thickness_A = values[i]; break;
        case PS_FIT_STEP_SCALE:
            for (int axis = 0; axis < 2; axis++) optics->scan_step_A[axis] = values[i] * step_A[axis];
            break;
        case PS_FIT_CENTER_ROW: optics->detector_center_px[0] = values[i]; break;
        case PS_FIT_CENTER_COLUMN: optics->detector_center_px[1] = values[i]; break;
        case PS_FIT_SEMIANGLE: optics->semiangle_mrad = values[i]; break;
        }
    }
}

void ps_fit_clamp(const ps_fit_parameters *parameters, double *values) {
    for (int i = 0; i < parameters->n; i++) values[i] = fmin(fmax(values[i], parameters->items[i].low), parameters->items[i].high);
}

void ps_fit_trial(const ps_optics *optics, const double step_A[2], ps_trial *trial) {
    double angle = optics->rotation_deg * M_PI / 180.0, cosine = cos(angle), sine = sin(angle);
    double scale = 1e-3 / ps_wavelength_A(optics->voltage_V), turned[2][2] = {{0}};
    ps_optics_probe(optics, &trial->probe);
    for (int axis = 0; axis < 2; axis++) { /* detector axis to the axis it becomes before the rotation */
        int to = optics->detector_transpose ? 1 - axis : axis;
        turned[to][axis] = (optics->detector_flip[to] ? -1.0 : 1.0) * optics->detector_pitch_mrad[axis] * scale;
    }
    for (int axis = 0; axis < 2; axis++) {
        trial->to_k[0][axis] = turned[0][axis] * cosine - turned[1][axis] * sine;
        trial->to_k[1][axis] = turned[0][axis] * sine + turned[1][axis] * cosine;
    }
    for (int axis = 0; axis < 2; axis++)
        trial->to_k[axis][2] = -trial->to_k[axis][0] * optics->detector_center_px[0] - trial->to_k[axis][1] * optics->detector_center_px[1];
    trial->step_scale = optics->scan_step_A[0] / step_A[0];
}

double ps_fit_wrap_deg(double angle_deg) {
    double wrapped = remainder(angle_deg, 360.0);
    return wrapped <= -180.0 ? 180.0 : wrapped;
}

void ps_fit_twin(const ps_optics *optics, ps_optics *twin) {
    *twin = *optics;
    twin->rotation_deg = ps_fit_wrap_deg(optics->rotation_deg + 180.0);
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        int m = ps_aberration_orders[i][1];
        if (m % 2 != 0 || optics->C_A[i] == 0.0) continue;
        if (m == 0)
            twin->C_A[i] = -optics->C_A[i];
        else /* the negative of a term with an angle is the term turned by half of its period */
            twin->angle_rad[i] = remainder(optics->angle_rad[i] + M_PI / m, 2.0 * M_PI / m);
    }
    for (int axis = 0; axis < 2; axis++) twin->tilt_mrad[axis] = optics->tilt_mrad[axis] == 0.0 ? 0.0 : -optics->tilt_mrad[axis];
}
