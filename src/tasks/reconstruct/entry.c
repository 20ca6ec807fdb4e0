/* Reconstruct jobs: the entries that only they have. What they say is the job's own, since planning and the output need it. */
#include <stdlib.h>
#include <string.h>

#include "job/job_parts.h"
#include "optics/plan.h"
#include "tasks/fit/entry.h"
#include "tasks/task_list.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static ps_code read_upsampling(const ps_json *place, ps_job *job, ps_error *error) {
    if (!place->value) return PS_OK;
    if (cJSON_IsString(place->value) && strcmp(place->value->valuestring, "auto") == 0) return PS_OK;
    if (!cJSON_IsNumber(place->value)) return ps_json_fail(place, error, "\"auto\" or a whole number from 1 to %d", PS_MAX_UPSAMPLING);
    return ps_json_integer(place, 1, PS_MAX_UPSAMPLING, &job->upsampling, error);
}

/* The optics' own entry for fitting them: what it leaves behind is the output's, which has the optics and how they were found. */
static ps_code read_fit(const ps_json *root, ps_job *job, ps_error *error) {
    ps_json optics = ps_json_member(root, "optics"), fit = ps_json_member(&optics, "fit");
    ps_json file = ps_json_member(&fit, "optics_file");
    if (!job->optics.fit) return PS_OK;
    ps_job_fit *own = calloc(1, sizeof *own);
    if (!own) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the fit entry");
    job->own = own;
    if (file.value) return ps_json_refuse(&file, error, "the optics are in the reconstruction's output; a fit job writes an optics file");
    PS_TRY(ps_fit_read_entry(&fit, job->base_directory, own, error));
    ps_json per_frame = ps_json_member(&fit, "per_frame");
    return per_frame.value ? ps_json_refuse(&per_frame, error, "one fit serves a reconstruction; a fit job finds each frame's optics")
                           : PS_OK;
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
    PS_TRY(read_fit(root, job, error));
    return ps_method_set_parse(&methods, &job->methods, error);
}

static const char *const entries[] = {"series", "optics", "upsampling", "weights", "methods", "probe_form", "output", "compute"};

const ps_job_kind ps_kind_reconstruct = {.name = "reconstruct",
                                         .entries = entries,
                                         .n_entries = COUNT(entries),
                                         .read = read_reconstruct,
                                         .has_images = true,
                                         .fits_optics = true};
