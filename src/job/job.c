#include "job/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "job/job_parts.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What every job may have. */
static const char *const common_entries[] = {"$schema", "comment", "task"};
enum { MOST_ENTRIES = 64, MOST_KINDS = 16 };

static bool is_among(const char *name, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static bool has_entry(const ps_job_kind *kind, const char *name) {
    return is_among(name, common_entries, COUNT(common_entries)) || is_among(name, kind->entries, kind->n_entries);
}

/* Every entry that any job has, each once; names: [MOST_ENTRIES]. */
static ps_code list_entries(const ps_job_kinds *kinds, const char **names, size_t *n, ps_error *error) {
    *n = COUNT(common_entries);
    memcpy(names, common_entries, sizeof common_entries);
    for (size_t k = 0; k < kinds->n; k++)
        for (size_t i = 0; i < kinds->kinds[k]->n_entries; i++) {
            if (is_among(kinds->kinds[k]->entries[i], names, *n)) continue;
            if (*n == MOST_ENTRIES) return PS_FAIL(error, PS_E_INTERNAL, "more than %d entries of jobs", MOST_ENTRIES);
            names[(*n)++] = kinds->kinds[k]->entries[i];
        }
    return PS_OK;
}

static ps_code choose_kind(const ps_json *task, const ps_job_kinds *kinds, ps_job *job, ps_error *error) {
    const char *names[MOST_KINDS];
    int choice = 0;
    if (kinds->n > MOST_KINDS) return PS_FAIL(error, PS_E_INTERNAL, "more than %d kinds of jobs", MOST_KINDS);
    for (size_t i = 0; i < kinds->n; i++) names[i] = kinds->kinds[i]->name;
    PS_TRY(ps_json_require(task, error));
    PS_TRY(ps_json_choice(task, names, kinds->n, &choice, error));
    job->kind = kinds->kinds[choice];
    return PS_OK;
}

static ps_code read_task(const ps_json *root, const ps_job_kinds *kinds, ps_job *job, ps_error *error) {
    ps_json task = ps_json_member(root, "task"), comment = ps_json_member(root, "comment"), schema = ps_json_member(root, "$schema");
    const char *text, *names[MOST_ENTRIES];
    size_t n;
    PS_TRY(list_entries(kinds, names, &n, error));
    PS_TRY(ps_json_object(root, names, n, error));
    PS_TRY(ps_json_text(&comment, &text, error));
    PS_TRY(ps_json_text(&schema, &text, error));
    PS_TRY(choose_kind(&task, kinds, job, error));
    for (size_t i = 0; i < n; i++) {
        ps_json entry = ps_json_member(root, names[i]);
        if (entry.value && !has_entry(job->kind, names[i]))
            return ps_json_refuse(&entry, error, "a %s job has no such entry", job->kind->name);
    }
    return PS_OK;
}

/* What is made of the images' drift. */
static ps_code read_drift(const ps_json *place, ps_job *job, ps_error *error) {
    ps_json drift = ps_json_member(place, "drift"), align = ps_json_member(place, "align");
    job->measures_drift = job->kind->has_images;
    if (!job->kind->has_images && (drift.value || align.value))
        return ps_json_refuse(drift.value ? &drift : &align, error, "a %s job leaves no series of images", job->kind->name);
    PS_TRY(ps_json_bool(&drift, &job->measures_drift, error));
    PS_TRY(ps_json_bool(&align, &job->aligns, error));
    if (job->aligns && !job->measures_drift)
        return ps_json_refuse(&align, error, "images are aligned by the drift that /output/drift leaves out");
    return PS_OK;
}

static ps_code read_output(const ps_json *place, ps_job *job, ps_error *error) {
    static const char *const keys[] = {"file", "drift", "align"};
    ps_json file = ps_json_member(place, "file");
    PS_TRY(ps_json_require(place, error));
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(ps_json_require(&file, error));
    PS_TRY(ps_job_read_path(&file, job->base_directory, &job->output_file, error));
    size_t length = strlen(job->output_file);
    if (job->output_file[length - 1] == '/') return ps_json_fail(&file, error, "a file, not a directory");
    return read_drift(place, job, error);
}

static ps_code read_entries(const ps_json *root, const ps_job_kinds *kinds, ps_job *job, ps_error *error) {
    ps_json series = ps_json_member(root, "series"), optics = ps_json_member(root, "optics"), compute = ps_json_member(root, "compute");
    ps_json output = ps_json_member(root, "output");
    const char *base = job->base_directory;
    PS_TRY(read_task(root, kinds, job, error));
    bool has_recordings = has_entry(job->kind, "series");
    if (has_recordings) PS_TRY(ps_job_read_series(&series, base, &job->series, error));
    if (has_entry(job->kind, "optics"))
        PS_TRY(ps_job_read_optics(&optics, base, has_recordings, job->kind->fits_optics, &job->optics, error));
    PS_TRY(job->kind->read(root, job, error));
    if (has_entry(job->kind, "output")) PS_TRY(read_output(&output, job, error));
    return ps_job_read_compute(&compute, job, error);
}

/* what: the job's name in messages. Takes nothing; on error *job is empty. */
static ps_code parse(const ps_job_kinds *kinds, const char *text, size_t bytes, const char *what, const char *base_directory,
                     const char *const *settings, int64_t n_settings, ps_job *job, ps_error *error) {
    ps_code code = PS_OK;
    *job = (ps_job){0};
    PS_GO_ALLOC(error, job->text = strdup(text));
    PS_GO_ALLOC(error, job->base_directory = strcmp(base_directory, ".") == 0 ? getcwd(NULL, 0) : ps_path_resolve(".", base_directory));
    PS_GO(ps_json_parse(text, bytes, what, &job->json, error));
    for (int64_t i = 0; i < n_settings; i++) PS_GO(ps_job_apply_setting(job->json, settings[i], error));
    PS_GO_ALLOC(error, job->effective_text = cJSON_PrintUnformatted(job->json));
    ps_json root = ps_json_root(job->json, what);
    PS_GO(read_entries(&root, kinds, job, error));
done:
    if (code != PS_OK) ps_job_free(job);
    return code;
}

ps_code ps_job_parse(const ps_job_kinds *kinds, const char *text, const char *base_directory, const char *const *settings,
                     int64_t n_settings, ps_job *job, ps_error *error) {
    return parse(kinds, text, strlen(text), "job", base_directory, settings, n_settings, job, error);
}

ps_code ps_job_load(const ps_job_kinds *kinds, const char *path, const char *const *settings, int64_t n_settings, ps_job *job,
                    ps_error *error) {
    ps_code code = PS_OK;
    char *text = NULL, *directory = NULL, *absolute = NULL;
    size_t bytes = 0;
    ps_error cause = {0};
    memset(job, 0, sizeof *job);
    if (ps_text_read_file(path, &text, &bytes, &cause) != PS_OK) return PS_FAIL(error, PS_E_JOB, "job file %s", cause.text);
    PS_GO_ALLOC(error, directory = ps_path_directory(path));
    PS_GO_ALLOC(error, absolute = ps_path_resolve(".", path));
    PS_GO(parse(kinds, text, bytes, path, directory, settings, n_settings, job, error));
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
    cJSON_Delete(job->optics.own);
    ps_method_set_free(&job->methods);
    free(job->output_file);
    free(job->backend);
    if (job->own) (job->kind->free_own ? job->kind->free_own : free)(job->own);
    free(job->path);
    free(job->base_directory);
    free(job->text);
    cJSON_free(job->effective_text);
    cJSON_Delete(job->json);
    memset(job, 0, sizeof *job);
}
