/* Single side band. docs/physics.md section 6. */
#include "method/table.h"

enum { PHASE, LOSS };
static const ps_result_desc results[] = {{.name = "phase", .axes = PS_RESULT_IMAGE, .unit = "rad", .shown_as = "ssb"},
                                         {.name = "loss", .axes = PS_RESULT_NUMBER, .unit = "rad^2"}};
static const char *const estimators[] = {"wave", "phase"}; /* as ps_ssb_estimator */
static const char *const examples[] = {"{}", "{\"estimator\":\"phase\"}"};

static ps_code parse(const ps_json *place, ps_method_settings *settings, ps_error *error) {
    static const char *const keys[] = {"estimator"};
    ps_json estimator = ps_json_member(place, "estimator");
    PS_TRY(ps_json_object(place, keys, 1, error));
    settings->choice = PS_SSB_WAVE;
    return ps_json_choice(&estimator, estimators, 2, &settings->choice, error);
}

/* Only the phase estimator has a loss. */
static bool leaves(const ps_method_settings *settings, int result) {
    return result != LOSS || settings->choice == PS_SSB_PHASE;
}

static void describe(const ps_method_settings *settings, FILE *out) {
    fprintf(out, "estimator %s", estimators[settings->choice]);
}

static void fingerprint(const ps_method_settings *settings, FILE *out) {
    fprintf(out, "method.ssb.estimator=%s\n", estimators[settings->choice]);
}

static ps_code make_image(ps_frame *frame, const ps_method_settings *settings, float *image, void *const *values, ps_error *error) {
    return ps_frame_ssb(frame, (ps_ssb_estimator)settings->choice, image, NULL, values[LOSS], error);
}

static ps_code solve(const ps_method_settings *settings, ps_frame *frame, double n_data, ps_image_sink *sink, void *const *values,
                     ps_error *error) {
    (void)n_data;
    return ps_method_send_one(settings, frame, sink, PHASE, make_image, values, error);
}

/* An image for every pixel, each from its own g. */
static bool is_phase(const ps_method_settings *settings) {
    return settings->choice == PS_SSB_PHASE;
}

const ps_method ps_method_ssb = {
    .name = "ssb",
    .schema = "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"estimator\":{\"enum\":[\"wave\",\"phase\"],"
              "\"description\":\"default wave; phase gives a loss too\"}}}",
    .bits = PS_METHOD_SSB,
    .stage = PS_STAGE_SSB,
    .n_results = sizeof results / sizeof *results,
    .results = results,
    .n_examples = sizeof examples / sizeof *examples,
    .examples = examples,
    .parse = parse,
    .leaves = leaves,
    .describe = describe,
    .fingerprint = fingerprint,
    .solve = solve,
    .images_every_pixel = is_phase,
    .wants_g = is_phase};
