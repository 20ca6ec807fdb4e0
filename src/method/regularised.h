/* What the methods with a strength share: the phase and the complex method. docs/physics.md section 5. */
#ifndef PS_METHOD_REGULARISED_H
#define PS_METHOD_REGULARISED_H

#include "method/method.h"

/* Places of the shared results, counted from the last image. */
enum { PS_REGULARISED_RESIDUAL, PS_REGULARISED_EFFECTIVE_DOF, PS_REGULARISED_GCV, PS_REGULARISED_CHOSEN };
#define PS_REGULARISED_RESULTS                                                                                      \
    {.name = "residual",                                                                                            \
     .axes = PS_RESULT_CURVE,                                                                                       \
     .long_name = "weighted squared residual, summed over all frequencies but zero",                                \
     .shown_as = "residual"},                                                                                       \
        {.name = "effective_degrees_of_freedom",                                                                    \
         .former = "influence",                                                                                     \
         .axes = PS_RESULT_CURVE,                                                                                   \
         .long_name = "trace of the influence matrix, summed over all frequencies but zero"},                       \
        {.name = "gcv", .axes = PS_RESULT_CURVE, .long_name = "generalized cross-validation", .shown_as = "gcv"}, { \
        .name = "chosen_strength", .axes = PS_RESULT_NUMBER, .shown_as = "strength"                                 \
    }

/* JSON schema of a strength, and of an entry whose strengths look like ITEM. */
#define PS_STRENGTH_SCHEMA \
    "{\"type\":\"number\",\"minimum\":1e-12,\"maximum\":1e12,\"description\":\"dimensionless, 0.001 ... 10 is the useful range\"}"
#define PS_REGULARISED_SCHEMA(ITEM)                                                                                             \
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"strength\"],\"properties\":{\"strength\":{\"anyOf\":[" \
    "{\"const\":\"auto\"}," ITEM ",{\"type\":\"array\",\"items\":" ITEM ",\"minItems\":1,\"maxItems\":1000}],"                  \
    "\"description\":\"a number, a list, or auto: chosen per frame by cross-validation\"},"                                     \
    "\"smoothness_inv_A\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"number\",\"minimum\":1e-6,\"maximum\":1e6}],"             \
    "\"description\":\"1/A at which the prior has risen to 4; null: prior 1\"}}}"

/* The members of a ps_method with these names. parse: {"strength": ..., "smoothness_inv_A": ...}; pairs where method->has_amplitudes. */
ps_code ps_regularised_parse(const ps_json *place, ps_method_settings *settings, ps_error *error);
void ps_regularised_describe(const ps_method_settings *settings, FILE *out);
void ps_regularised_fingerprint(const ps_method_settings *settings, FILE *out);
/* Results 0 (phase) and, of a method with amplitudes, 1 (logarithm of the amplitude) are the images, [n_strengths, image], and go to sink.
 * values: of the method's results. */
ps_code ps_regularised_solve(const ps_method_settings *settings, ps_frame *frame, double n_data, ps_image_sink *sink, void *const *values,
                             ps_error *error);

#endif
