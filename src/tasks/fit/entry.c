#include "tasks/fit/entry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job/job_parts.h"
#include "optics/plan.h"
#include "tasks/task_list.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { TRANSPOSE = PS_FIT_N_NAMES, FLIP, N_FREE_NAMES };

static const char *free_name(int i) {
    return i == TRANSPOSE ? "detector_transpose" : i == FLIP ? "detector_flip" : ps_fit_name(i);
}

static void free_automatically(ps_fit_options *options) {
    options->automatic = options->transpose = true;
    options->free[ps_fit_find_name("rotation_deg")] = options->free[ps_fit_find_name("C10")] = options->free[ps_fit_find_name("C12")] =
        true;
}

static ps_code read_free_name(const ps_json *place, ps_fit_options *options, ps_error *error) {
    const char *names[N_FREE_NAMES];
    int choice = 0;
    for (int i = 0; i < N_FREE_NAMES; i++) names[i] = free_name(i);
    PS_TRY(ps_json_choice(place, names, N_FREE_NAMES, &choice, error));
    bool *flag = choice == TRANSPOSE ? &options->transpose : choice == FLIP ? &options->flips : &options->free[choice];
    if (*flag) return ps_json_refuse(place, error, "%s is there already", names[choice]);
    *flag = true;
    return PS_OK;
}

static bool is_auto(const ps_json *place) {
    return cJSON_IsString(place->value) && strcmp(place->value->valuestring, "auto") == 0;
}

static ps_code read_free(const ps_json *place, ps_fit_options *options, ps_error *error) {
    if (!place->value || is_auto(place)) {
        free_automatically(options);
        return PS_OK;
    }
    if (!cJSON_IsArray(place->value) || cJSON_GetArraySize(place->value) == 0)
        return ps_json_fail(place, error, "\"auto\" or a list of what is to be fitted, such as [\"rotation_deg\", \"C10\"]");
    for (ps_json name = ps_json_element(place, 0); name.value; name = ps_json_next(&name)) {
        PS_TRY(ps_json_require(&name, error));
        PS_TRY(read_free_name(&name, options, error));
    }
    bool any = false;
    for (int i = 0; i < PS_FIT_N_NAMES; i++) any = any || options->free[i];
    return any ? PS_OK : ps_json_fail(place, error, "at least one quantity beside transposition and flips");
}

static ps_code read_bounds_of(const ps_json *place, int quantity, ps_fit_options *options, ps_error *error) {
    double bounds[2] = {0};
    bool has_angle = quantity < PS_N_ABERRATIONS && ps_aberration_orders[quantity][1] > 0;
    bool is_pair = quantity == ps_fit_find_name("detector_center_px");
    if (is_pair) return ps_json_refuse(place, error, "the centre stays within 3 pixels of where the optics put it");
    PS_TRY(ps_json_pair(place, -1e12, 1e12, bounds, error));
    if (!(bounds[0] < bounds[1])) return ps_json_fail(place, error, "[lowest, highest] with the lowest below the highest");
    if (has_angle && bounds[0] != 0.0) return ps_json_fail(place, error, "[0, largest size], because the term has an angle");
    if (!options->free[quantity] && !options->automatic) return ps_json_refuse(place, error, "bounds of what is not free");
    options->bounded[quantity] = true;
    options->low[quantity] = bounds[0];
    options->high[quantity] = bounds[1];
    return PS_OK;
}

static ps_code read_bounds(const ps_json *place, ps_fit_options *options, ps_error *error) {
    const char *names[PS_FIT_N_NAMES];
    for (int i = 0; i < PS_FIT_N_NAMES; i++) names[i] = ps_fit_name(i);
    if (!place->value) return PS_OK;
    PS_TRY(ps_json_object(place, names, PS_FIT_N_NAMES, error));
    for (int i = 0; i < PS_FIT_N_NAMES; i++) {
        ps_json bounds = ps_json_member(place, names[i]);
        if (bounds.value) PS_TRY(read_bounds_of(&bounds, i, options, error));
    }
    return PS_OK;
}

static ps_code read_optics_file(const ps_json *place, const char *base_directory, ps_job_fit *fit, ps_error *error) {
    if (!place->value) return PS_OK;
    PS_TRY(ps_job_read_path(place, base_directory, &fit->optics_file, error));
    if (fit->per_frame && !strstr(fit->optics_file, "{stem}"))
        return ps_json_fail(place, error, "a name with {stem}, which stands for each recording's name, because every recording is fitted");
    return PS_OK;
}

ps_code ps_fit_read_entry(const ps_json *place, const char *base_directory, ps_job_fit *fit, ps_error *error) {
    static const char *const keys[] = {"free",       "bounds", "frequencies", "strength", "upsampling",
                                       "phase_sign", "frame",  "optics_file", "per_frame"};
    static const char *const signs[] = {"auto", "positive", "negative"};
    ps_json members[COUNT(keys)];
    int sign = PS_SIGN_AUTO;
    *fit = (ps_job_fit){.n_frequencies = 0, .strength = 0.01, .upsampling = 1};
    if (place->value) PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    for (size_t i = 0; i < COUNT(keys); i++) members[i] = ps_json_member(place, keys[i]);
    PS_TRY(read_free(&members[0], &fit->options, error));
    PS_TRY(read_bounds(&members[1], &fit->options, error));
    if (!is_auto(&members[2])) PS_TRY(ps_json_integer(&members[2], 10, 100000, &fit->n_frequencies, error));
    PS_TRY(ps_json_number(&members[3], 1e-9, 1e3, &fit->strength, error));
    PS_TRY(ps_json_integer(&members[4], 1, PS_MAX_UPSAMPLING, &fit->upsampling, error));
    PS_TRY(ps_json_choice(&members[5], signs, COUNT(signs), &sign, error));
    fit->sign = (ps_fit_sign)sign;
    PS_TRY(ps_json_integer(&members[6], 0, 1 << 30, &fit->frame, error));
    PS_TRY(ps_json_bool(&members[8], &fit->per_frame, error));
    if (fit->per_frame && members[6].value) return ps_json_refuse(&members[6], error, "given although every recording is fitted");
    return read_optics_file(&members[7], base_directory, fit, error);
}

static ps_code read_entry(const ps_json *root, ps_job *job, ps_error *error) {
    ps_json place = ps_json_member(root, "fit");
    ps_job_fit *fit = calloc(1, sizeof *fit);
    if (!fit) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the fit entry");
    job->own = fit;
    job->upsampling = 1; /* images are the scan's size: pictures of how the fit went, not results */
    return ps_fit_read_entry(&place, job->base_directory, fit, error);
}

static void free_entry(void *own) {
    ps_job_fit *fit = own;
    free(fit->optics_file);
    free(fit);
}

const ps_job_fit *ps_fit_entry(const ps_job *job) {
    return job->own;
}

static const char *const entries[] = {"series", "optics", "output", "compute", "fit"};

const ps_job_kind ps_kind_fit = {
    .name = "fit", .entries = entries, .n_entries = COUNT(entries), .read = read_entry, .free_own = free_entry};
