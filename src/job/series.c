/* The "series" and "optics" entries. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "job/job_parts.h"
#include "optics/optics_json.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { MOST_FRAMES = 1 << 29, MOST_REPEATS = 1 << 16 };

ps_code ps_job_read_path(const ps_json *place, const char *base_directory, char **path, ps_error *error) {
    const char *text = NULL;
    PS_TRY(ps_json_text(place, &text, error));
    if (!text) return PS_OK;
    *path = ps_path_resolve(base_directory, text);
    return *path ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
}

static ps_code add_file(const ps_json *place, int64_t at, ps_job_series *series, ps_error *error) {
    const char *text = NULL;
    PS_TRY(ps_json_text(place, &text, error));
    series->files[at] = strdup(text);
    if (!series->files[at]) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the series");
    series->n_files = at + 1;
    return PS_OK;
}

static ps_code read_files(const ps_json *place, ps_job_series *series, ps_error *error) {
    PS_TRY(ps_json_require(place, error));
    bool is_list = cJSON_IsArray(place->value);
    int n = is_list ? cJSON_GetArraySize(place->value) : 1;
    if (n == 0 || (!is_list && !cJSON_IsString(place->value))) return ps_json_fail(place, error, "a list of file names or patterns");
    series->files = calloc((size_t)n, sizeof *series->files);
    if (!series->files) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the series");
    if (!is_list) return add_file(place, 0, series, error);
    for (ps_json element = ps_json_element(place, 0); element.value; element = ps_json_next(&element))
        PS_TRY(add_file(&element, element.index, series, error));
    return PS_OK;
}

static ps_code read_bad_pixels(const ps_json *place, const char *base_directory, ps_job_series *series, ps_error *error) {
    static const char *const keys[] = {"from_file", "mask", "hot_sigma"};
    ps_json from_file = ps_json_member(place, "from_file"), mask = ps_json_member(place, "mask"), hot = ps_json_member(place, "hot_sigma");
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(ps_json_bool(&from_file, &series->mask_from_file, error));
    if (!ps_json_is_null(&mask)) PS_TRY(ps_job_read_path(&mask, base_directory, &series->mask_file, error));
    if (!ps_json_is_null(&hot)) PS_TRY(ps_json_number(&hot, 1.0, 1e6, &series->hot_sigma, error));
    return PS_OK;
}

/* How patterns become scan positions. */
static ps_code read_positions(const ps_json *place, ps_job_series *series, ps_error *error) {
    ps_json shape = ps_json_member(place, "scan_shape"), leading = ps_json_member(place, "skip_leading");
    ps_json trailing = ps_json_member(place, "skip_trailing"), flyback = ps_json_member(place, "flyback");
    ps_json repeats = ps_json_member(place, "repeats"), serpentine = ps_json_member(place, "serpentine");
    ps_json override = ps_json_member(place, "scan_shape_override");
    if (!ps_json_is_null(&shape)) PS_TRY(ps_json_integer_pair(&shape, 1, 1 << 20, &series->scan_rows, &series->scan_columns, error));
    PS_TRY(ps_json_bool(&override, &series->scan_shape_override, error));
    if (series->scan_shape_override && series->scan_rows == 0)
        return ps_json_refuse(&override, error, "there is no scan_shape that could hold instead of the file's");
    PS_TRY(ps_json_integer(&leading, 0, MOST_FRAMES, &series->skip_leading, error));
    PS_TRY(ps_json_integer(&trailing, 0, MOST_FRAMES, &series->skip_trailing, error));
    PS_TRY(ps_json_integer(&flyback, 0, MOST_FRAMES, &series->flyback, error));
    PS_TRY(ps_json_integer(&repeats, 1, MOST_REPEATS, &series->repeats, error));
    return ps_json_bool(&serpentine, &series->serpentine, error);
}

static ps_code read_saturation(const ps_json *place, ps_job_series *series, ps_error *error) {
    if (ps_json_is_null(place)) {
        series->saturation = INFINITY;
        return PS_OK;
    }
    if (!place->value || (cJSON_IsString(place->value) && strcmp(place->value->valuestring, "file") == 0)) return PS_OK;
    if (!cJSON_IsNumber(place->value)) return ps_json_fail(place, error, "\"file\", a number of counts, or null");
    return ps_json_number(place, 1.0, 1e15, &series->saturation, error);
}

static ps_code read_selection(const ps_json *place, ps_job_series *series, ps_error *error) {
    static const char *const orders[] = {"name", "time"};
    ps_json first = ps_json_member(place, "first"), count = ps_json_member(place, "count"), stride = ps_json_member(place, "stride");
    ps_json order = ps_json_member(place, "order");
    int choice = 0;
    PS_TRY(ps_json_integer(&first, 0, 1 << 30, &series->first, error));
    if (!ps_json_is_null(&count)) PS_TRY(ps_json_integer(&count, 1, 1 << 30, &series->count, error));
    PS_TRY(ps_json_integer(&stride, 1, 1 << 30, &series->stride, error));
    PS_TRY(ps_json_choice(&order, orders, COUNT(orders), &choice, error));
    series->by_time = choice == 1;
    return PS_OK;
}

ps_code ps_job_read_series(const ps_json *place, const char *base_directory, ps_job_series *series, ps_error *error) {
    static const char *const keys[] = {"files",
                                       "first",
                                       "count",
                                       "stride",
                                       "order",
                                       "scan_shape",
                                       "flyback",
                                       "repeats",
                                       "channel",
                                       "serpentine",
                                       "allow_partial",
                                       "bad_pixels",
                                       "skip_leading",
                                       "skip_trailing",
                                       "saturation",
                                       "verify",
                                       "scan_shape_override"};
    ps_json files = ps_json_member(place, "files"), bad_pixels = ps_json_member(place, "bad_pixels");
    ps_json partial = ps_json_member(place, "allow_partial"), saturation = ps_json_member(place, "saturation");
    ps_json channel = ps_json_member(place, "channel"), verify = ps_json_member(place, "verify");
    static const char *const ways[] = {"samples", "whole"};
    int way = 0;
    *series = (ps_job_series){.count = -1, .stride = 1, .repeats = 1, .mask_from_file = true};
    PS_TRY(ps_json_require(place, error));
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(read_files(&files, series, error));
    PS_TRY(read_selection(place, series, error));
    PS_TRY(read_positions(place, series, error));
    PS_TRY(read_saturation(&saturation, series, error));
    PS_TRY(ps_json_bool(&partial, &series->allow_partial, error));
    PS_TRY(ps_json_choice(&verify, ways, COUNT(ways), &way, error));
    series->verify_whole = way == 1;
    if (!ps_json_is_null(&channel)) PS_TRY(ps_json_integer(&channel, 1, 1 << 20, &series->channel, error));
    return read_bad_pixels(&bad_pixels, base_directory, series, error);
}

/* Both, because neither has a size that would go with the other. */
static ps_code read_rounding(const ps_json *place, ps_optics_rounding *rounding, ps_error *error) {
    static const char *const keys[] = {"aberrations_rad", "rotation_deg"};
    ps_json aberrations = ps_json_member(place, keys[0]), rotation = ps_json_member(place, keys[1]);
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(ps_json_require(&aberrations, error));
    PS_TRY(ps_json_require(&rotation, error));
    PS_TRY(ps_json_number(&aberrations, 1e-6, 1.0, &rounding->aberrations_rad, error));
    return ps_json_number(&rotation, 1e-6, 10.0, &rounding->rotation_deg, error);
}

static ps_code read_per_frame(const ps_json *place, const char *base_directory, ps_job_optics *optics, ps_error *error) {
    static const char *const keys[] = {"per_frame", "round"};
    ps_json pattern = ps_json_member(place, "per_frame"), rounding = ps_json_member(place, "round");
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    optics->source = PS_OPTICS_PER_FRAME;
    if (rounding.value) PS_TRY(read_rounding(&rounding, &optics->rounding, error));
    PS_TRY(ps_job_read_path(&pattern, base_directory, &optics->path, error));
    if (strstr(optics->path, "{stem}")) return PS_OK;
    return ps_json_fail(&pattern, error, "a pattern with {stem}, which stands for each recording's name");
}

/* The object without its "fit". */
static ps_code take_fit(const ps_json *fit, ps_job_optics *optics, ps_error *error) {
    if (!cJSON_IsObject(fit->value)) return ps_json_fail(fit, error, "an object");
    optics->fit = fit->value;
    optics->own = cJSON_Duplicate(optics->json, true);
    if (!optics->own) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics");
    cJSON_DeleteItemFromObjectCaseSensitive(optics->own, "fit");
    optics->json = optics->own;
    return PS_OK;
}

ps_code ps_job_read_optics(const ps_json *place, const char *base_directory, bool has_recordings, bool may_fit, ps_job_optics *optics,
                           ps_error *error) {
    ps_optics checked;
    ps_json per_frame = ps_json_member(place, "per_frame");
    PS_TRY(ps_json_require(place, error));
    if (cJSON_IsString(place->value)) {
        optics->source = PS_OPTICS_FILE;
        return ps_job_read_path(place, base_directory, &optics->path, error);
    }
    if (!cJSON_IsObject(place->value))
        return ps_json_fail(place, error, "an optics file's name, an optics object%s",
                            has_recordings ? ", or {\"per_frame\": pattern}" : "");
    if (per_frame.value && has_recordings) return read_per_frame(place, base_directory, optics, error);
    if (per_frame.value) return ps_json_refuse(&per_frame, error, "a simulated series has one optics");
    optics->source = PS_OPTICS_INLINE;
    optics->json = (cJSON *)place->value;
    ps_json fit = ps_json_member(place, "fit"), start = *place;
    if (fit.value && may_fit) {
        PS_TRY(take_fit(&fit, optics, error));
        start.value = optics->json;
    }
    PS_TRY(ps_optics_read(&start, &checked, error));
    const char *missing = has_recordings ? NULL : ps_optics_missing(&checked); /* recordings may tell what is missing */
    ps_json absent = ps_json_member(place, missing ? missing : "");
    return missing ? ps_json_refuse(&absent, error, "missing; it is required where there is no recording that could tell it") : PS_OK;
}
