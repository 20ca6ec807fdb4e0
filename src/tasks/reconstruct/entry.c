/* Reconstruct jobs: the entries that only they have. What they say is the job's own, since planning and the output need it. */
#include <string.h>

#include "job/job_parts.h"
#include "optics/plan.h"
#include "tasks/task_list.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static ps_code read_upsampling(const ps_json *place, ps_job *job, ps_error *error) {
    if (!place->value) return PS_OK;
    if (cJSON_IsString(place->value) && strcmp(place->value->valuestring, "auto") == 0) return PS_OK;
    if (!cJSON_IsNumber(place->value)) return ps_json_fail(place, error, "\"auto\" or a whole number from 1 to %d", PS_MAX_UPSAMPLING);
    return ps_json_integer(place, 1, PS_MAX_UPSAMPLING, &job->upsampling, error);
}

static ps_code read_reconstruct(const ps_json *root, ps_job *job, ps_error *error) {
    static const char *const weights[] = {"uniform", "poisson"}, *const forms[] = {"exact", "published"};
    ps_json upsampling = ps_json_member(root, "upsampling"), weight = ps_json_member(root, "weights");
    ps_json methods = ps_json_member(root, "methods"), form = ps_json_member(root, "probe_form");
    int choice = PS_WEIGHTS_UNIFORM, published = 0;
    PS_TRY(read_upsampling(&upsampling, job, error));
    PS_TRY(ps_json_choice(&weight, weights, COUNT(weights), &choice, error));
    PS_TRY(ps_json_choice(&form, forms, COUNT(forms), &published, error));
    job->weights = (ps_weights)choice;
    job->mirrored_probe = published == 1;
    return ps_method_set_parse(&methods, &job->methods, error);
}

static const char *const entries[] = {"series", "optics", "upsampling", "weights", "methods", "probe_form", "output", "compute"};

const ps_job_kind ps_kind_reconstruct = {.name = "reconstruct", .entries = entries, .n_entries = COUNT(entries), .read = read_reconstruct};
