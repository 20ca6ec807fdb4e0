#include "store/crate.h"

#include <cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "hdf5/write.h"
#include "store/layout.h"
#include "store/lock.h"
#include "store/publish.h"
#include "store/view.h"

static const char crate_name[] = "ro-crate-metadata.json";
static const char profile_id[] = "https://w3id.org/ro/wfrun/process/0.5";
static const char licence_id[] = "#licence-not-stated";

/* ---- entities of the graph ---- */

static cJSON *find_entity(const cJSON *graph, const char *id) {
    cJSON *entity;
    cJSON_ArrayForEach(entity, graph) {
        const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entity, "@id"));
        if (found && strcmp(found, id) == 0) return entity;
    }
    return NULL;
}

/* A fresh entity in the place of one that has this id. Running out of memory shows when the crate is printed: cJSON adds nothing to NULL.
 */
static cJSON *add_entity(cJSON *graph, const char *id, const char *type) {
    cJSON *old = find_entity(graph, id), *entity = cJSON_CreateObject();
    if (old) cJSON_Delete(cJSON_DetachItemViaPointer(graph, old));
    cJSON_AddStringToObject(entity, "@id", id);
    cJSON_AddStringToObject(entity, "@type", type);
    cJSON_AddItemToArray(graph, entity);
    return entity;
}

static cJSON *reference(const char *id) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "@id", id);
    return object;
}

static void add_reference(cJSON *entity, const char *key, const char *id) {
    cJSON_AddItemToObject(entity, key, reference(id));
}

/* Adds a reference to the list `key` unless it stands there. */
static void list_reference(cJSON *entity, const char *key, const char *id) {
    cJSON *list = cJSON_GetObjectItemCaseSensitive(entity, key);
    if (!cJSON_IsArray(list)) {
        cJSON_DeleteItemFromObjectCaseSensitive(entity, key);
        list = cJSON_AddArrayToObject(entity, key);
    }
    if (!find_entity(list, id)) cJSON_AddItemToArray(list, reference(id));
}

static void add_text(cJSON *entity, const char *key, const char *text) {
    if (text && *text) cJSON_AddStringToObject(entity, key, text);
}

/* prefix and text as a URI: what is not allowed there is percent-encoded; malloc'd. */
static char *uri(const char *prefix, const char *text) {
    char *result = malloc(strlen(prefix) + 3 * strlen(text) + 1), *end = result;
    if (!result) return NULL;
    end += sprintf(end, "%s", prefix);
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || strchr("-._~/", *text))
            *end++ = *text;
        else
            end += sprintf(end, "%%%02X", (unsigned char)*text);
    *end = '\0';
    return result;
}

/* ---- the crate as a whole ---- */

static void add_root(cJSON *graph) {
    char now[PS_WIDTH_TIME];
    ps_output_time_now(now);
    cJSON *descriptor = add_entity(graph, crate_name, "CreativeWork");
    add_reference(descriptor, "conformsTo", "https://w3id.org/ro/crate/1.1");
    add_reference(descriptor, "about", "./");
    cJSON *root = add_entity(graph, "./", "Dataset");
    cJSON_AddStringToObject(root, "name", "Reconstructions by ptyseries");
    cJSON_AddStringToObject(root, "description", "Direct ptychography of 4D-STEM time series: output files and the runs that made them");
    cJSON_AddStringToObject(root, "datePublished", now);
    add_reference(root, "license", licence_id);
    add_reference(root, "conformsTo", profile_id);
    cJSON *licence = add_entity(graph, licence_id, "CreativeWork");
    cJSON_AddStringToObject(licence, "name", "licence not stated");
    cJSON_AddStringToObject(licence, "description", "Whoever publishes these data states their licence here");
    cJSON *profile = add_entity(graph, profile_id, "CreativeWork");
    cJSON_AddStringToObject(profile, "name", "Process Run Crate");
    cJSON_AddStringToObject(profile, "version", "0.5");
}

static cJSON *new_crate(void) {
    cJSON *crate = cJSON_CreateObject();
    cJSON_AddStringToObject(crate, "@context", "https://w3id.org/ro/crate/1.1/context");
    add_root(cJSON_AddArrayToObject(crate, "@graph"));
    return crate;
}

static ps_code load_crate(const char *path, cJSON **crate, ps_error *error) {
    char *text = NULL;
    if (access(path, F_OK) != 0) {
        *crate = new_crate();
        return PS_OK;
    }
    PS_TRY(ps_text_read_file(path, &text, NULL, error));
    *crate = cJSON_Parse(text);
    free(text);
    if (*crate && find_entity(cJSON_GetObjectItemCaseSensitive(*crate, "@graph"), "./")) return PS_OK;
    cJSON_Delete(*crate);
    *crate = NULL;
    return PS_FAIL(error, PS_E_ARGUMENT, "%s is no RO-Crate: left as it is, the output is not described there", path);
}

static ps_code save_text(const char *path, const char *text, ps_error *error) {
    char *temporary = NULL;
    ps_code code = PS_OK;
    FILE *file = NULL;
    PS_GO(ps_publish_temporary(path, &temporary, error));
    file = fopen(temporary, "w");
    if (!file || fputs(text, file) < 0 || fputc('\n', file) < 0) {
        code = ps_io_fail(error, errno, "%s: cannot write", temporary);
        goto done;
    }
    int closed = fclose(file);
    file = NULL;
    if (closed != 0) {
        code = ps_io_fail(error, errno, "%s: cannot write", temporary);
        goto done;
    }
    PS_GO(ps_publish_sync(temporary, error));
    PS_GO(ps_publish_rename(temporary, path, true, error));
done:
    if (file) fclose(file);
    if (code != PS_OK && temporary) unlink(temporary);
    free(temporary);
    return code;
}

/* ---- one output ---- */

static char *process_text(const ps_view *view, int64_t index, const char *name) {
    char path[96];
    snprintf(path, sizeof path, "process_%lld/%s", (long long)index, name);
    return ps_view_text(view, path);
}

static char *add_software(cJSON *graph, const ps_view *view, int64_t index) {
    char *version = process_text(view, index, "version"), *commit = process_text(view, index, "commit");
    char *id = version && commit ? ps_text_format("#ptyseries-%s-%s", version, commit) : NULL;
    if (id) {
        cJSON *software = add_entity(graph, id, "SoftwareApplication");
        cJSON_AddStringToObject(software, "name", "ptyseries");
        add_text(software, "softwareVersion", version);
        cJSON_AddStringToObject(software, "description", "Direct ptychography of 4D-STEM time series on clusters");
    }
    free(version);
    free(commit);
    return id;
}

/* Times with "+00:00" for "Z", as the profile's validator wants them. */
static void add_time(cJSON *action, const char *key, const char *time) {
    char text[PS_WIDTH_TIME + 8];
    if (!*time) return;
    snprintf(text, sizeof text, "%.*s+00:00", (int)strcspn(time, "Z"), time);
    cJSON_AddStringToObject(action, key, text);
}

/* A run that is on, or was killed, has no status. */
static void add_status(cJSON *action, const char *state) {
    if (strcmp(state, "finished") == 0) cJSON_AddStringToObject(action, "actionStatus", "http://schema.org/CompletedActionStatus");
    if (strcmp(state, "stopped") != 0) return;
    cJSON_AddStringToObject(action, "actionStatus", "http://schema.org/FailedActionStatus");
    cJSON_AddStringToObject(action, "error", "stopped before all frames were done");
}

static const char *media_type(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strncmp(dot, ".h5", 3) == 0 || strncmp(dot, ".hdf5", 5) == 0 || strncmp(dot, ".emd", 4) == 0)
               ? "application/x-hdf5"
               : "application/octet-stream";
}

/* The job as it was run, as an input of the action; malloc'd id. */
static char *add_job(cJSON *graph, const ps_view *view, const char *file_id, int64_t index) {
    char *id = ps_text_format("#%s-job-%lld", file_id, (long long)index), *text = process_text(view, index, "job_effective");
    cJSON *job = id ? add_entity(graph, id, "CreativeWork") : NULL;
    cJSON_AddStringToObject(job, "name", "job");
    cJSON_AddStringToObject(job, "encodingFormat", "application/json");
    add_text(job, "text", text);
    free(text);
    return id;
}

/* inputs: [n_frames] ids */
static void add_action(cJSON *graph, const ps_view *view, int64_t index, const char *file_id, char *const *inputs) {
    char *id = ps_text_format("#%s-run-%lld", file_id, (long long)index), *software = add_software(graph, view, index);
    char *job = add_job(graph, view, file_id, index), *state = process_text(view, index, "state");
    char *start = process_text(view, index, "start_time"), *end = process_text(view, index, "end_time");
    char *command = process_text(view, index, "command_line");
    if (id && software && job && state && start && end && command) {
        cJSON *action = add_entity(graph, id, "CreateAction");
        char *name = ps_text_format("run %lld of %s", (long long)index, file_id);
        add_text(action, "name", name);
        free(name);
        add_text(action, "description", command);
        add_time(action, "startTime", start);
        add_time(action, "endTime", end);
        add_status(action, state);
        add_reference(action, "instrument", software);
        cJSON *objects = cJSON_AddArrayToObject(action, "object");
        cJSON_AddItemToArray(objects, reference(job));
        for (int64_t i = 0; i < view->n_frames; i++) cJSON_AddItemToArray(objects, reference(inputs[i]));
        add_reference(action, "result", file_id);
        list_reference(find_entity(graph, "./"), "mentions", id);
    }
    free(id);
    free(software);
    free(job);
    free(state);
    free(start);
    free(end);
    free(command);
}

static void add_output(cJSON *graph, const ps_view *view, const char *file_id) {
    struct stat status;
    cJSON *file = add_entity(graph, file_id, "File");
    char *description = ps_text_format("%lld frames: %lld done, %lld failed, %lld pending", (long long)view->n_frames,
                                       (long long)view->n_by_state[PS_FRAME_DONE], (long long)view->n_by_state[PS_FRAME_FAILED],
                                       (long long)view->n_by_state[PS_FRAME_PENDING]);
    cJSON_AddStringToObject(file, "name", file_id);
    add_text(file, "description", description);
    cJSON_AddStringToObject(file, "encodingFormat", "application/x-hdf5");
    if (stat(view->path, &status) == 0) {
        char *size = ps_text_format("%lld", (long long)status.st_size);
        add_text(file, "contentSize", size);
        free(size);
    }
    list_reference(find_entity(graph, "./"), "hasPart", file_id);
    free(description);
}

/* The inputs as data entities; *ids: [n_frames] malloc'd. */
static ps_code add_inputs(cJSON *graph, const ps_view *view, char ***ids, ps_error *error) {
    char **sources = NULL;
    double *bytes = malloc((size_t)view->n_frames * sizeof *bytes);
    ps_code code = PS_OK;
    *ids = calloc((size_t)view->n_frames, sizeof **ids);
    PS_GO_ALLOC(error, bytes);
    PS_GO_ALLOC(error, *ids);
    PS_GO(ps_view_texts(view, "frames/source", view->n_frames, &sources, error));
    PS_GO(ps_view_numbers(view, "frames/source_bytes", view->n_frames, bytes, error));
    for (int64_t i = 0; i < view->n_frames; i++) {
        const char *slash = strrchr(sources[i], '/');
        char *size = ps_text_format("%.0f", bytes[i]);
        (*ids)[i] = uri("file://", sources[i]);
        PS_GO_ALLOC(error, (*ids)[i]);
        cJSON *file = add_entity(graph, (*ids)[i], "File");
        cJSON_AddStringToObject(file, "name", slash ? slash + 1 : sources[i]);
        cJSON_AddStringToObject(file, "encodingFormat", media_type(sources[i]));
        add_text(file, "contentSize", size);
        list_reference(find_entity(graph, "./"), "hasPart", (*ids)[i]);
        free(size);
    }
done:
    ps_view_free_texts(sources, view->n_frames);
    free(bytes);
    return code;
}

static ps_code describe(cJSON *graph, const ps_view *view, ps_error *error) {
    ps_code code = PS_OK;
    char **inputs = NULL;
    const char *slash = strrchr(view->path, '/');
    char *file_id = uri("", slash ? slash + 1 : view->path);
    PS_GO_ALLOC(error, file_id);
    add_output(graph, view, file_id);
    PS_GO(add_inputs(graph, view, &inputs, error));
    for (int64_t i = 1; i <= view->n_processes; i++) {
        char *state = process_text(view, i, "state");
        if (state && strcmp(state, "unused") != 0) add_action(graph, view, i, file_id, inputs);
        free(state);
    }
done:
    ps_view_free_texts(inputs, view->n_frames);
    free(file_id);
    return code;
}

static ps_code update(const char *crate_path, const ps_view *view, ps_error *error) {
    ps_code code = PS_OK;
    cJSON *crate = NULL;
    char *text = NULL;
    PS_GO(load_crate(crate_path, &crate, error));
    PS_GO(describe(cJSON_GetObjectItemCaseSensitive(crate, "@graph"), view, error));
    text = cJSON_Print(crate);
    PS_GO_ALLOC(error, text);
    PS_GO(save_text(crate_path, text, error));
done:
    cJSON_free(text);
    cJSON_Delete(crate);
    return code;
}

ps_code ps_crate_write(const char *path, ps_error *error) {
    ps_code code = PS_OK;
    ps_lock lock = PS_LOCK_NONE;
    ps_view view = {.file = H5I_INVALID_HID, .entry = H5I_INVALID_HID};
    char *directory = ps_path_directory(path), *crate_path = directory ? ps_text_format("%s/%s", directory, crate_name) : NULL;
    PS_GO_ALLOC(error, crate_path);
    PS_GO(ps_view_open(path, &view, error));
    PS_GO(ps_lock_take(crate_path, &lock, error));
    ps_publish_sweep(crate_path);
    PS_GO(update(crate_path, &view, error));
done:
    ps_lock_release(&lock);
    ps_view_close(&view);
    free(crate_path);
    free(directory);
    return code;
}

void ps_crate_tell(const char *path) {
    ps_error problem = {0};
    if (ps_crate_write(path, &problem) != PS_OK) ps_log(PS_LOG_WARNING, "the output is complete, its RO-Crate is not: %s", problem.text);
}
