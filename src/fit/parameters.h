/* What a fit may change of a set of optics: a list of numbers, each with its natural size, its bounds and where the search starts; and
 * sets of optics as kernels/trials.h tries them. docs/fit.md. */
#ifndef PS_FIT_PARAMETERS_H
#define PS_FIT_PARAMETERS_H

#include "kernels/trials.h"
#include "optics/optics.h"

/* An aberration with an angle is two numbers, C cos(m phi) and C sin(m phi), which have no direction in which they cannot be told. */
typedef enum {
    PS_FIT_ROTATION,
    PS_FIT_ABERRATION,
    PS_FIT_ABERRATION_SINE,
    PS_FIT_TILT_ROW,
    PS_FIT_TILT_COLUMN,
    PS_FIT_THICKNESS,
    PS_FIT_STEP_SCALE,
    PS_FIT_CENTER_ROW,
    PS_FIT_CENTER_COLUMN,
    PS_FIT_SEMIANGLE
} ps_fit_kind;

enum { PS_FIT_MOST_PARAMETERS = 40, PS_FIT_NAME = 24 };

typedef struct {
    ps_fit_kind kind;
    int term;               /* of an aberration: index into ps_aberration_orders */
    char name[PS_FIT_NAME]; /* "rotation_deg", "C10_A", "C12_cos_A", "C12_sin_A", "tilt_row_mrad", ... */
    double size;            /* natural size: for an aberration, 1 rad of phase at the aperture's rim */
    double low, high;       /* bounds; infinite where there are none */
} ps_fit_parameter;

typedef struct {
    int n;
    ps_fit_parameter items[PS_FIT_MOST_PARAMETERS];
} ps_fit_parameters;

/* Names as jobs give them: "rotation_deg", "C10" ... "C56", "tilt_mrad", "thickness_A", "scan_step_A", "detector_center_px",
 * "semiangle_mrad"; one name stands for all numbers of a quantity. */
enum { PS_FIT_N_NAMES = PS_N_ABERRATIONS + 6 };
const char *ps_fit_name(int quantity);  /* 0 ... PS_FIT_N_NAMES - 1 */
int ps_fit_find_name(const char *name); /* -1: there is no such quantity */
int ps_fit_quantity_of_term(int term);  /* of an aberration */
int ps_fit_quantity_of(const ps_fit_parameter *parameter);

/* Adds a quantity's numbers, with sizes for these optics and the bounds that physics sets (thickness >= 0, ...). */
void ps_fit_add(ps_fit_parameters *parameters, int quantity, const ps_optics *optics);
bool ps_fit_has(const ps_fit_parameters *parameters, int quantity);

/* values: [n] of the parameters. step_A: the scan step that a scale of 1 stands for. */
void ps_fit_read(const ps_fit_parameters *parameters, const ps_optics *optics, const double step_A[2], double *values);
void ps_fit_apply(const ps_fit_parameters *parameters, const double *values, const double step_A[2], ps_optics *optics);
/* into the bounds */
void ps_fit_clamp(const ps_fit_parameters *parameters, double *values);

/* The optics as one trial over a band that was taken at step_A; nothing of them missing. */
void ps_fit_trial(const ps_optics *optics, const double step_A[2], ps_trial *trial);

/* wavelength / semiangle^2, the scale of a defocus: 2 pi of it are half a turn of phase at the rim. */
double ps_fit_defocus_unit_A(const ps_optics *optics);

/* The optics that explain a phase object equally well, with its sign turned: rotation + 180 degrees, all even terms and the tilt negated.
 */
void ps_fit_twin(const ps_optics *optics, ps_optics *twin);
/* Degrees into (-180, 180]. */
double ps_fit_wrap_deg(double angle_deg);

#endif
