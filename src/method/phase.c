/* The regularised phase method: the phase of a pure phase object. docs/physics.md section 5. */
#include "method/regularised.h"
#include "method/table.h"

static const ps_result_desc results[] = {
    {.name = "phase", .axes = PS_RESULT_IMAGE_SWEEP, .unit = "rad", .long_name = "phase of the object", .shown_as = "phase"},
    PS_REGULARISED_RESULTS};
static const char *const scales[] = {"scale_phase"}, *const examples[] = {"{\"strength\":[0.02,0.5]}"};

static void plan(const ps_method_settings *settings, ps_plan_options *options) {
    options->smoothness_phase_inv_A = settings->smoothness_inv_A;
}

static ps_code read_scales(ps_system *system, double *values, ps_error *error) {
    return ps_system_scales(system, PS_METHOD_PHASE, NULL, values, error);
}

const ps_method ps_method_phase = {.name = "phase",
                                   .schema = PS_REGULARISED_SCHEMA(PS_STRENGTH_SCHEMA),
                                   .bits = PS_METHOD_PHASE,
                                   .stage = PS_STAGE_SOLVE,
                                   .n_results = sizeof results / sizeof *results,
                                   .results = results,
                                   .n_scales = 1,
                                   .scales = scales,
                                   .n_examples = sizeof examples / sizeof *examples,
                                   .examples = examples,
                                   .parse = ps_regularised_parse,
                                   .plan = plan,
                                   .describe = ps_regularised_describe,
                                   .fingerprint = ps_regularised_fingerprint,
                                   .solve = ps_regularised_solve,
                                   .read_scales = read_scales};
