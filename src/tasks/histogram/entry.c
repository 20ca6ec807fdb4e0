#include "tasks/histogram/entry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job/job_parts.h"
#include "tasks/task_list.h"

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

static ps_code read_region(const ps_json *place, ps_job_histogram *histogram, ps_error *error) {
    static const char *const keys[] = {"rows", "columns"};
    enum { MOST = 1 << 24 };
    ps_json rows = ps_json_member(place, "rows"), columns = ps_json_member(place, "columns");
    if (!place->value || ps_json_is_null(place)) return PS_OK;
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(ps_json_require(&rows, error));
    PS_TRY(ps_json_require(&columns, error));
    PS_TRY(ps_json_integer_pair(&rows, 0, MOST, &histogram->rows[0], &histogram->rows[1], error));
    PS_TRY(ps_json_integer_pair(&columns, 0, MOST, &histogram->columns[0], &histogram->columns[1], error));
    if (histogram->rows[0] >= histogram->rows[1]) return ps_json_fail(&rows, error, "[first, end] with first below end");
    if (histogram->columns[0] >= histogram->columns[1]) return ps_json_fail(&columns, error, "[first, end] with first below end");
    return PS_OK;
}

static ps_code read_masks(const ps_json *place, ps_job_histogram *histogram, ps_error *error) {
    static const char *const keys[] = {"hot_sigma", "dead_fraction", "noisy_ratio", "saturated_fraction"};
    ps_json hot = ps_json_member(place, keys[0]), dead = ps_json_member(place, keys[1]), noisy = ps_json_member(place, keys[2]);
    ps_json saturated = ps_json_member(place, keys[3]);
    if (!place->value) return PS_OK;
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(ps_json_number(&hot, 1, 1e6, &histogram->hot_sigma, error));
    PS_TRY(ps_json_number(&dead, 0, 1, &histogram->dead_fraction, error));
    PS_TRY(ps_json_number(&noisy, 1, 1e6, &histogram->noisy_ratio, error));
    return ps_json_number(&saturated, 0, 1, &histogram->saturated_fraction, error);
}

static ps_code read_histogram(const ps_json *place, const char *base_directory, ps_job_histogram *histogram, ps_error *error) {
    static const char *const keys[] = {"bins", "range", "centre", "region", "stride", "sample", "saturation", "masks"};
    ps_json bins = ps_json_member(place, "bins"), range = ps_json_member(place, "range"), centre = ps_json_member(place, "centre");
    ps_json region = ps_json_member(place, "region"), stride = ps_json_member(place, "stride"), sample = ps_json_member(place, "sample");
    ps_json saturation = ps_json_member(place, "saturation"), masks = ps_json_member(place, "masks");
    *histogram = (ps_job_histogram){.stride = 1,
                                    .sample = 256,
                                    .saturation = NAN,
                                    .hot_sigma = 8,
                                    .dead_fraction = 0.05,
                                    .noisy_ratio = 5,
                                    .saturated_fraction = 0.001};
    PS_TRY(ps_json_require(place, error));
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(ps_json_require(&bins, error));
    PS_TRY(ps_json_integer(&bins, 1, 1 << 20, &histogram->n_bins, error));
    PS_TRY(read_range(&range, histogram, error));
    PS_TRY(read_region(&region, histogram, error));
    PS_TRY(ps_json_integer(&stride, 1, 1 << 30, &histogram->stride, error));
    PS_TRY(ps_json_integer(&sample, 1, 1 << 30, &histogram->sample, error));
    if (!ps_json_is_null(&saturation)) PS_TRY(ps_json_number(&saturation, -1e300, 1e300, &histogram->saturation, error));
    PS_TRY(read_masks(&masks, histogram, error));
    return read_centre(&centre, base_directory, histogram, error);
}

static ps_code read_entry(const ps_json *root, ps_job *job, ps_error *error) {
    ps_json place = ps_json_member(root, "histogram");
    ps_job_histogram *histogram = calloc(1, sizeof *histogram);
    if (!histogram) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the histogram entry");
    job->own = histogram;
    job->keeps_invalid = job->needs_histograms = true;
    PS_TRY(read_histogram(&place, job->base_directory, histogram, error));
    if (histogram->centre_file) job->own_inputs[job->n_own_inputs++] = (ps_job_input){histogram->centre_file, "/histogram/centre"};
    return PS_OK;
}

static void free_entry(void *own) {
    ps_job_histogram *histogram = own;
    free(histogram->centre_file);
    free(histogram);
}

const ps_job_histogram *ps_histogram_entry(const ps_job *job) {
    return job->own;
}

static const char *const entries[] = {"series", "output", "compute", "histogram"};

const ps_job_kind ps_kind_histogram = {
    .name = "histogram", .entries = entries, .n_entries = COUNT(entries), .read = read_entry, .free_own = free_entry};
