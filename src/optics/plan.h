/* From optics, shapes and a mask to the list of systems to solve. docs/physics.md sections 3 and 4. */
#ifndef PS_OPTICS_PLAN_H
#define PS_OPTICS_PLAN_H

#include "optics/optics.h"

enum { PS_MAX_UPSAMPLING = 64 };

typedef struct {
    int64_t scan_rows, scan_columns;
    int64_t detector_rows, detector_columns;
    int64_t upsampling;            /* 0: auto */
    double smoothness_phase_inv_A; /* INFINITY: prior 1 */
    double smoothness_complex_inv_A;
    const uint8_t *bad; /* [detector_rows, detector_columns], not 0: leave out; may be NULL */
    bool mirrored_probe;
    ps_g_storage g_storage; /* these two as ps_system_desc has them */
    bool keeps_g;
} ps_plan_options;

typedef struct {
    ps_system_desc desc;                         /* points into the plan */
    int64_t full_plane_aliases;                  /* aliases of all frequencies of the full plane but zero (what scales average over) */
    int64_t alias_histogram[PS_MAX_ALIASES + 1]; /* solved frequencies by alias count */
    int64_t n_bright;                            /* active pixels with aperture 1 (dose is their median) */
    uint8_t *is_bright;                          /* [n_active] */
    int64_t n_left_out;                          /* bad pixels that the aperture would have made active */
} ps_plan;

/* PS_E_JOB when nothing can be solved: no active pixel, nothing but active pixels (the disc's edge was not recorded), no pixel with
 * aperture 1, no alias, more than PS_MAX_ALIASES (the text says which smaller upsampling would work). On error *plan is empty. Owned by the
 * caller: ps_plan_free. */
ps_code ps_plan_build(const ps_optics *optics, const ps_plan_options *options, ps_plan *plan, ps_error *error);
void ps_plan_free(ps_plan *plan);
/* Frees frequencies, aliases and priors, and keeps pixels and all counts: what is worth keeping of a plan that is not in use. */
void ps_plan_drop_frequencies(ps_plan *plan);

/* Section 4: the smallest U with U/(2 s) >= 2 alpha_max/wavelength in both directions. */
int64_t ps_plan_auto_upsampling(const ps_optics *optics);

/* dose: median over bright pixels of mean [n_active]; bright pixels with n_marked > 0 are left out (n_marked may be NULL).
 * PS_E_INPUT when it is not > 0. weights: poisson weights [n_active], section 5. */
ps_code ps_plan_dose(const ps_plan *plan, const double *mean, const int64_t *n_marked, double *dose, ps_error *error);
void ps_plan_poisson_weights(const ps_plan *plan, const double *mean, double dose, double *weights);

#endif
