/* The "histogram" entry. */
#include <math.h>
#include <string.h>

#include "job/job_parts.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static ps_code read_range(const ps_json *place, ps_job_histogram *histogram, ps_error *error) {
    PS_TRY(ps_json_require(place, error));
    histogram->automatic_range = cJSON_IsString(place->value) && strcmp(place->value->valuestring, "auto") == 0;
    if (histogram->automatic_range) return PS_OK;
    if (!cJSON_IsArray(place->value)) return ps_json_fail(place, error, "[lowest, highest] or \"auto\"");
    PS_TRY(ps_json_pair(place, -1e300, 1e300, histogram->range, error));
    if (!(histogram->range[0] < histogram->range[1])) return ps_json_fail(place, error, "a lowest edge below the highest");
    return PS_OK;
}

static ps_code read_centre(const ps_json *place, const char *base_directory, ps_job_histogram *histogram, ps_error *error) {
    const char *text = NULL;
    if (ps_json_is_null(place)) return PS_OK;
    PS_TRY(ps_json_text(place, &text, error));
    if (!text) return PS_OK;
    histogram->centre = strcmp(text, "median") == 0 ? PS_CENTRE_MEDIAN : PS_CENTRE_FILE;
    return histogram->centre == PS_CENTRE_FILE ? ps_job_read_path(place, base_directory, &histogram->centre_file, error) : PS_OK;
}

ps_code ps_job_read_histogram(const ps_json *place, const char *base_directory, ps_job_histogram *histogram, ps_error *error) {
    static const char *const keys[] = {"bins", "range", "centre"};
    ps_json bins = ps_json_member(place, "bins"), range = ps_json_member(place, "range"), centre = ps_json_member(place, "centre");
    PS_TRY(ps_json_require(place, error));
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(ps_json_require(&bins, error));
    PS_TRY(ps_json_integer(&bins, 1, 1 << 20, &histogram->n_bins, error));
    PS_TRY(read_range(&range, histogram, error));
    return read_centre(&centre, base_directory, histogram, error);
}
