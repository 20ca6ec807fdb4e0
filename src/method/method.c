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

ps_code ps_method_solve(const ps_method_settings *settings, ps_frame *frame, double n_data, void *const *values, ps_error *error) {
    return settings->method->solve(settings, frame, n_data, values, error);
}

/* ---- results of a frame ---- */

ps_code ps_method_results_create(const ps_method_set *set, int64_t image_pixels, ps_method_results *results, ps_error *error) {
    ps_code code = PS_OK;
    *results = (ps_method_results){.set = set};
    for (int64_t i = 0; i < set->n; i++)
        for (int r = 0; r < set->items[i].method->n_results; r++) {
            size_t n = (size_t)ps_method_result_elements(&set->items[i], r, image_pixels);
            if (n == 0) continue;
            results->values[i][r] = malloc(n * ps_result_element_bytes(&set->items[i].method->results[r]));
            PS_GO_ALLOC(error, results->values[i][r]);
        }
done:
    if (code != PS_OK) ps_method_results_free(results);
    return code;
}

void ps_method_results_free(ps_method_results *results) {
    for (int i = 0; i < PS_MOST_METHODS; i++)
        for (int r = 0; r < PS_MOST_METHOD_RESULTS; r++) free(results->values[i][r]);
    *results = (ps_method_results){0};
}
