/* The matched filter: the right side of the phase method as an image. docs/physics.md section 10. */
#include "method/table.h"

static const ps_result_desc results[] = {
    {.name = "image", .axes = PS_RESULT_IMAGE, .unit = "relative", .long_name = "matched filter of the phase", .shown_as = "mf"}};
static const char *const examples[] = {"{}"};

static ps_code parse(const ps_json *place, ps_method_settings *settings, ps_error *error) {
    (void)settings;
    return ps_json_object(place, NULL, 0, error);
}

static void describe(const ps_method_settings *settings, FILE *out) {
    (void)settings;
    fputs("matched filter, not normalised", out);
}

/* Nothing can be set, but a file says that it was asked for. */
static void fingerprint(const ps_method_settings *settings, FILE *out) {
    (void)settings;
    fputs("method.mf.coefficients=right_side\n", out);
}

static ps_code make_image(ps_frame *frame, const ps_method_settings *settings, float *image, void *const *values, ps_error *error) {
    (void)settings;
    (void)values;
    return ps_frame_right_side_image(frame, image, NULL, error);
}

static ps_code solve(const ps_method_settings *settings, ps_frame *frame, double n_data, ps_image_sink *sink, void *const *values,
                     ps_error *error) {
    (void)n_data;
    return ps_method_send_one(settings, frame, sink, 0, make_image, values, error);
}

const ps_method ps_method_mf = {
    .name = "mf",
    .schema = "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{},\"description\":\"takes no settings: {}\"}",
    .bits = PS_METHOD_MF,
    .stage = PS_STAGE_SOLVE,
    .n_results = sizeof results / sizeof *results,
    .results = results,
    .n_examples = sizeof examples / sizeof *examples,
    .examples = examples,
    .parse = parse,
    .describe = describe,
    .fingerprint = fingerprint,
    .solve = solve};
