#include "job/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "job/job_parts.h"
#include "optics/plan.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const tasks[] = {"reconstruct", "simulate", "histogram", "fit"};
enum { TASK_FIT = PS_TASK_HISTOGRAM + 1 };

/* Every entry of a job, and the tasks it belongs to. */
enum { IN_RECONSTRUCT = 1 << PS_TASK_RECONSTRUCT, IN_SIMULATE = 1 << PS_TASK_SIMULATE, IN_HISTOGRAM = 1 << PS_TASK_HISTOGRAM };
enum { IN_ALL = IN_RECONSTRUCT | IN_SIMULATE | IN_HISTOGRAM };
static const struct {
    const char *name;
    int tasks;
} entries[] = {{"$schema", IN_ALL},
               {"comment", IN_ALL},
               {"task", IN_ALL},
               {"series", IN_RECONSTRUCT | IN_HISTOGRAM},
               {"optics", IN_RECONSTRUCT | IN_SIMULATE},
               {"upsampling", IN_RECONSTRUCT},
               {"weights", IN_RECONSTRUCT},
               {"methods", IN_RECONSTRUCT},
               {"probe_form", IN_RECONSTRUCT},
               {"output", IN_RECONSTRUCT | IN_HISTOGRAM},
               {"compute", IN_ALL},
               {"histogram", IN_HISTOGRAM},
               {"simulate", IN_SIMULATE}};

static ps_code check_entries(const ps_json *root, ps_error *error) {
    const char *names[COUNT(entries)];
    for (size_t i = 0; i < COUNT(entries); i++) names[i] = entries[i].name;
    return ps_json_object(root, names, COUNT(entries), error);
}

static ps_code read_task(const ps_json *root, ps_job *job, ps_error *error) {
    ps_json task = ps_json_member(root, "task"), comment = ps_json_member(root, "comment"), schema = ps_json_member(root, "$schema");
    const char *text;
    int choice = 0;
    PS_TRY(check_entries(root, error));
    PS_TRY(ps_json_text(&comment, &text, error));
    PS_TRY(ps_json_text(&schema, &text, error));
    PS_TRY(ps_json_require(&task, error));
    PS_TRY(ps_json_choice(&task, tasks, COUNT(tasks), &choice, error));
    if (choice == TASK_FIT) return ps_json_refuse(&task, error, "fitting optics is not part of this version");
    job->task = (ps_task)choice;
    for (size_t i = 0; i < COUNT(entries); i++) {
        ps_json entry = ps_json_member(root, entries[i].name);
        if (entry.value && !(entries[i].tasks & 1 << choice))
            return ps_json_refuse(&entry, error, "a %s job has no such entry", tasks[choice]);
    }
    return PS_OK;
}

static ps_code read_upsampling(const ps_json *place, ps_job *job, ps_error *error) {
    if (!place->value) return PS_OK;
    if (cJSON_IsString(place->value) && strcmp(place->value->valuestring, "auto") == 0) return PS_OK;
    if (!cJSON_IsNumber(place->value)) return ps_json_fail(place, error, "\"auto\" or a whole number from 1 to %d", PS_MAX_UPSAMPLING);
    return ps_json_integer(place, 1, PS_MAX_UPSAMPLING, &job->upsampling, error);
}

static ps_code read_output(const ps_json *place, ps_job *job, ps_error *error) {
    static const char *const keys[] = {"file"};
    ps_json file = ps_json_member(place, "file");
    PS_TRY(ps_json_require(place, error));
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(ps_json_require(&file, error));
    PS_TRY(ps_job_read_path(&file, job->base_directory, &job->output_file, error));
    size_t length = strlen(job->output_file);
    if (job->output_file[length - 1] == '/') return ps_json_fail(&file, error, "a file, not a directory");
    return PS_OK;
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

static ps_code read_entries(const ps_json *root, ps_job *job, ps_error *error) {
    ps_json series = ps_json_member(root, "series"), optics = ps_json_member(root, "optics"), compute = ps_json_member(root, "compute");
    ps_json output = ps_json_member(root, "output"), histogram = ps_json_member(root, "histogram"),
            simulate = ps_json_member(root, "simulate");
    const char *base = job->base_directory;
    PS_TRY(read_task(root, job, error));
    int task = 1 << job->task;
    if (task & (IN_RECONSTRUCT | IN_HISTOGRAM)) PS_TRY(ps_job_read_series(&series, base, &job->series, error));
    if (task & (IN_RECONSTRUCT | IN_SIMULATE)) PS_TRY(ps_job_read_optics(&optics, base, task == IN_RECONSTRUCT, &job->optics, error));
    if (task == IN_RECONSTRUCT) PS_TRY(read_reconstruct(root, job, error));
    if (task == IN_SIMULATE) PS_TRY(ps_job_read_simulate(&simulate, base, &job->simulate, error));
    if (task == IN_HISTOGRAM) PS_TRY(ps_job_read_histogram(&histogram, base, &job->histogram, error));
    if (task & (IN_RECONSTRUCT | IN_HISTOGRAM)) PS_TRY(read_output(&output, job, error));
    return ps_job_read_compute(&compute, job, error);
}

/* what: the job's name in messages. Takes nothing; on error *job is empty. */
static ps_code parse(const char *text, size_t bytes, const char *what, const char *base_directory, const char *const *settings,
                     int64_t n_settings, ps_job *job, ps_error *error) {
    ps_code code = PS_OK;
    *job = (ps_job){0};
    PS_GO_ALLOC(error, job->text = strdup(text));
    PS_GO_ALLOC(error, job->base_directory = strcmp(base_directory, ".") == 0 ? getcwd(NULL, 0) : ps_path_resolve(".", base_directory));
    PS_GO(ps_json_parse(text, bytes, what, &job->json, error));
    for (int64_t i = 0; i < n_settings; i++) PS_GO(ps_job_apply_setting(job->json, settings[i], error));
    PS_GO_ALLOC(error, job->effective_text = cJSON_PrintUnformatted(job->json));
    ps_json root = ps_json_root(job->json, what);
    PS_GO(read_entries(&root, job, error));
done:
    if (code != PS_OK) ps_job_free(job);
    return code;
}

ps_code ps_job_parse(const char *text, const char *base_directory, const char *const *settings, int64_t n_settings, ps_job *job,
                     ps_error *error) {
    return parse(text, strlen(text), "job", base_directory, settings, n_settings, job, error);
}

ps_code ps_job_load(const char *path, const char *const *settings, int64_t n_settings, ps_job *job, ps_error *error) {
    ps_code code = PS_OK;
    char *text = NULL, *directory = NULL, *absolute = NULL;
    size_t bytes = 0;
    ps_error cause = {0};
    memset(job, 0, sizeof *job);
    if (ps_text_read_file(path, &text, &bytes, &cause) != PS_OK) return PS_FAIL(error, PS_E_JOB, "job file %s", cause.text);
    PS_GO_ALLOC(error, directory = ps_path_directory(path));
    PS_GO_ALLOC(error, absolute = ps_path_resolve(".", path));
    PS_GO(parse(text, bytes, path, directory, settings, n_settings, job, error));
    job->path = absolute;
    absolute = NULL;
done:
    free(text);
    free(directory);
    free(absolute);
    return code;
}

void ps_job_free(ps_job *job) {
    for (int64_t i = 0; i < job->series.n_files; i++) free(job->series.files[i]);
    free(job->series.files);
    free(job->series.mask_file);
    free(job->optics.path);
    ps_method_set_free(&job->methods);
    free(job->output_file);
    free(job->backend);
    free(job->simulate.output_master);
    free(job->histogram.centre_file);
    free(job->path);
    free(job->base_directory);
    free(job->text);
    cJSON_free(job->effective_text);
    cJSON_Delete(job->json);
    memset(job, 0, sizeof *job);
}
