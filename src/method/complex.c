/* The regularised complex method: phase and log-amplitude together. docs/physics.md section 5. */
#include "method/regularised.h"
#include "method/table.h"

static const ps_result_desc results[] = {
    {.name = "phase", .axes = PS_RESULT_IMAGE_SWEEP, .unit = "rad", .long_name = "phase of the object", .shown_as = "complex-phase"},
    {.name = "log_amplitude", .axes = PS_RESULT_IMAGE_SWEEP, .shown_as = "complex-log-amplitude"},
    PS_REGULARISED_RESULTS};
static const char *const scales[] = {"scale_complex_amplitude", "scale_complex_phase"};
static const char *const examples[] = {"{\"strength\":[{\"amplitude\":0.05,\"phase\":0.02},0.5]}"};

static void plan(const ps_method_settings *settings, ps_plan_options *options) {
    options->smoothness_complex_inv_A = settings->smoothness_inv_A;
}

static ps_code read_scales(ps_system *system, double *values, ps_error *error) {
    return ps_system_scales(system, PS_METHOD_COMPLEX, &values[0], &values[1], error);
}

#define PAIR_SCHEMA                                                                                                                  \
    "{\"anyOf\":[" PS_STRENGTH_SCHEMA ",{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"amplitude\",\"phase\"]," \
    "\"properties\":{\"amplitude\":" PS_STRENGTH_SCHEMA ",\"phase\":" PS_STRENGTH_SCHEMA "}}]}"

const ps_method ps_method_complex = {.name = "complex",
                                     .schema = PS_REGULARISED_SCHEMA(PAIR_SCHEMA),
                                     .bits = PS_METHOD_COMPLEX,
                                     .has_amplitudes = true,
                                     .stage = PS_STAGE_SOLVE,
                                     .n_results = sizeof results / sizeof *results,
                                     .results = results,
                                     .n_scales = 2,
                                     .scales = scales,
                                     .n_examples = sizeof examples / sizeof *examples,
                                     .examples = examples,
                                     .parse = ps_regularised_parse,
                                     .plan = plan,
                                     .describe = ps_regularised_describe,
                                     .fingerprint = ps_regularised_fingerprint,
                                     .solve = ps_regularised_solve,
                                     .read_scales = read_scales};
