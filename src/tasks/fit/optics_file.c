#include "tasks/fit/optics_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "hdf5/write.h"
#include "optics/optics_json.h"
#include "store/publish.h"

static const char comment_begin[] = "fitted by ptyseries";

/* path without its extension, the given ending behind it. */
static char *replace_ending(const char *path, const char *ending) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    int length = dot && (!slash || dot > slash + 1) ? (int)(dot - path) : (int)strlen(path);
    return ps_text_format("%.*s%s", length, path, ending);
}

ps_code ps_fit_optics_path(const ps_job *job, const ps_run_plan *run, int64_t group, int64_t frame, char **path, ps_error *error) {
    const char *given = ps_fit_entry(job)->optics_file;
    char ending[40] = "_optics.json";
    if (run->n_groups > 1) snprintf(ending, sizeof ending, "_optics_%lld.json", (long long)group);
    if (!given && ps_fit_entry(job)->per_frame) {
        char *pattern = replace_ending(job->output_file, "_{stem}_optics.json");
        *path = pattern ? ps_text_replace(pattern, "{stem}", run->series.items[frame].stem) : NULL;
        free(pattern);
    } else if (!given)
        *path = replace_ending(job->output_file, ending);
    else if (strstr(given, "{stem}"))
        *path = ps_text_replace(given, "{stem}", run->series.items[frame].stem);
    else if (run->n_groups > 1) {
        snprintf(ending, sizeof ending, "_%lld.json", (long long)group);
        *path = replace_ending(given, ending);
    } else
        *path = strdup(given);
    return *path ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
}

static bool is_own(const char *path) {
    char *text = NULL;
    size_t bytes = 0;
    bool own = ps_text_read_file(path, &text, &bytes, NULL) == PS_OK && (bytes == 0 || strstr(text, comment_begin));
    free(text);
    return own;
}

ps_code ps_fit_optics_check(const char *path, bool overwrite, ps_error *error) {
    if (access(path, F_OK) != 0) return PS_OK;
    if (!is_own(path))
        return PS_FAIL(error, PS_E_ARGUMENT,
                       "%s: stands where the fitted optics are to go, and no fit wrote it; give another /fit/optics_file", path);
    return overwrite ? PS_OK : PS_FAIL(error, PS_E_ARGUMENT, "%s: is there already; --overwrite replaces it", path);
}

static bool add_comment(cJSON *json, const ps_job *job, const ps_fit_item *item) {
    char text[640];
    const ps_fit_result *r = &item->result;
    snprintf(text, sizeof text, "%s from frame %lld of %s: explained power %.6g before, %.6g after; errors and correlations are in %s",
             comment_begin, (long long)item->frame, job->path ? job->path : "a job", r->before, r->after, job->output_file);
    return cJSON_AddStringToObject(json, "comment", text) != NULL;
}

ps_code ps_fit_optics_text(const ps_job *job, const ps_fit_item *item, char **text, ps_error *error) {
    cJSON *json = ps_optics_to_json(&item->result.optics);
    *text = json && add_comment(json, job, item) ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    return *text ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics");
}

static ps_code write_text(const char *path, const char *text, ps_error *error) {
    FILE *out = fopen(path, "w");
    if (!out) return ps_io_fail(error, errno, "%s: cannot be written", path);
    bool ok = fputs(text, out) >= 0 && fputc('\n', out) >= 0 && fflush(out) == 0 && fsync(fileno(out)) == 0;
    int problem = errno;
    if (fclose(out) != 0 || !ok) return ps_io_fail(error, problem, "%s: cannot be written", path);
    return PS_OK;
}

ps_code ps_fit_optics_write(const char *path, const ps_job *job, const ps_fit_item *item, ps_error *error) {
    ps_code code = PS_OK;
    char *text = NULL, *temporary = NULL;
    PS_GO(ps_fit_optics_text(job, item, &text, error));
    PS_GO(ps_publish_temporary(path, &temporary, error));
    PS_GO(write_text(temporary, text, error));
    PS_GO(ps_publish_rename(temporary, path, true, error));
done:
    if (code != PS_OK && temporary) unlink(temporary);
    cJSON_free(text);
    free(temporary);
    return code;
}
