#include "method/method.h"

#include <stdlib.h>

#include "method/curves.h"

bool ps_result_is_image(const ps_result_desc *result) {
    return result->axes == PS_RESULT_IMAGE || result->axes == PS_RESULT_IMAGE_SWEEP;
}

size_t ps_result_element_bytes(const ps_result_desc *result) {
    return ps_result_is_image(result) ? sizeof(float) : sizeof(double);
}

bool ps_method_leaves(const ps_method_settings *settings, int result) {
    return !settings->method->leaves || settings->method->leaves(settings, result);
}

int64_t ps_method_curve_points(const ps_method_settings *settings) {
    if (!settings->has_strengths) return 0;
    return settings->automatic ? PS_N_CURVE_STRENGTHS : settings->n_strengths;
}

void ps_method_curve_strengths(const ps_method_settings *settings, ps_strength *strengths) {
    double grid[PS_N_CURVE_STRENGTHS];
    ps_curve_strengths(grid);
    for (int64_t i = 0; i < ps_method_curve_points(settings); i++)
        strengths[i] = settings->automatic ? (ps_strength){grid[i], grid[i]} : settings->strengths[i];
}

int64_t ps_method_result_elements(const ps_method_settings *settings, int result, int64_t image_pixels) {
    if (!ps_method_leaves(settings, result)) return 0;
    switch (settings->method->results[result].axes) {
    case PS_RESULT_NUMBER: return 1;
    case PS_RESULT_CURVE: return ps_method_curve_points(settings);
    case PS_RESULT_IMAGE: return image_pixels;
    case PS_RESULT_IMAGE_SWEEP: return settings->n_strengths * image_pixels;
    }
    return 0;
}

/* ---- images ---- */

/* All of a method's images in arrays of the caller's. */
typedef struct {
    ps_image_sink sink;
    void *const *values;
    int64_t image_pixels;
} array_sink;

static ps_code array_room(ps_image_sink *sink, int result, int64_t strength, float **image, ps_error *error) {
    const array_sink *arrays = (const array_sink *)sink;
    (void)error;
    *image = (float *)arrays->values[result] + strength * arrays->image_pixels;
    return PS_OK;
}

static ps_code array_send(ps_image_sink *sink, int result, int64_t strength, float *image, ps_error *error) {
    (void)sink, (void)result, (void)strength, (void)image, (void)error;
    return PS_OK;
}

static void array_drop(ps_image_sink *sink, float *image) {
    (void)sink, (void)image;
}

ps_code ps_method_solve(const ps_method_settings *settings, ps_frame *frame, double n_data, void *const *values, ps_error *error) {
    array_sink arrays = {.sink = {.n_rooms = INT64_MAX, .room = array_room, .send = array_send, .drop = array_drop},
                         .values = values,
                         .image_pixels = ps_frame_image_pixels(frame)};
    return ps_method_solve_to(settings, frame, n_data, &arrays.sink, values, error);
}

ps_code ps_method_solve_to(const ps_method_settings *settings, ps_frame *frame, double n_data, ps_image_sink *sink, void *const *values,
                           ps_error *error) {
    return settings->method->solve(settings, frame, n_data, sink, values, error);
}

ps_code ps_method_send_one(const ps_method_settings *settings, ps_frame *frame, ps_image_sink *sink, int result, ps_image_make make,
                           void *const *values, ps_error *error) {
    float *image;
    PS_TRY(sink->room(sink, result, 0, &image, error));
    ps_code code = make(frame, settings, image, values, error);
    if (code == PS_OK) return sink->send(sink, result, 0, image, error);
    sink->drop(sink, image);
    return code;
}

/* ---- results of a frame ---- */

static ps_code create_results(const ps_method_set *set, int64_t image_pixels, bool with_images, ps_method_results *results,
                              ps_error *error) {
    ps_code code = PS_OK;
    *results = (ps_method_results){.set = set};
    for (int64_t i = 0; i < set->n; i++)
        for (int r = 0; r < set->items[i].method->n_results; r++) {
            const ps_result_desc *desc = &set->items[i].method->results[r];
            size_t n = (size_t)ps_method_result_elements(&set->items[i], r, image_pixels);
            if (n == 0 || (ps_result_is_image(desc) && !with_images)) continue;
            results->values[i][r] = malloc(n * ps_result_element_bytes(desc));
            PS_GO_ALLOC(error, results->values[i][r]);
        }
done:
    if (code != PS_OK) ps_method_results_free(results);
    return code;
}

ps_code ps_method_results_create(const ps_method_set *set, int64_t image_pixels, ps_method_results *results, ps_error *error) {
    return create_results(set, image_pixels, true, results, error);
}

ps_code ps_method_results_create_numbers(const ps_method_set *set, ps_method_results *results, ps_error *error) {
    return create_results(set, 1, false, results, error);
}

void ps_method_results_free(ps_method_results *results) {
    for (int i = 0; i < PS_MOST_METHODS; i++)
        for (int r = 0; r < PS_MOST_METHOD_RESULTS; r++) free(results->values[i][r]);
    *results = (ps_method_results){0};
}
