/* Outputs of this program that stand among a series' recordings, or will when a pattern is looked at the next time. */
#include <fnmatch.h>
#include <glob.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/text.h"
#include "hdf5/write.h"
#include "input/preflight.h"
#include "input/source.h"
#include "store/guard.h"
#include "store/info.h"

/* ---- what is there ---- */

void ps_guard_list_series(const ps_job *job, ps_series *series) {
    const ps_job_series *s = &job->series;
    *series = (ps_series){0};
    if (s->n_files > 0 && ps_series_build(job->base_directory, (const char *const *)s->files, s->n_files, 0, -1, 1, series, NULL) != PS_OK)
        *series = (ps_series){0};
}

static bool is_truth(const char *path) {
    hid_t file = H5I_INVALID_HID;
    if (H5Fis_hdf5(path) <= 0 || ps_h5_open_read(path, &file, NULL) != PS_OK) return false;
    bool truth = H5Lexists(file, "entry", H5P_DEFAULT) > 0 && H5Lexists(file, "entry/truth", H5P_DEFAULT) > 0;
    H5Fclose(file);
    return truth;
}

/* What the recording is instead of one; NULL: nothing known. */
static const char *own_kind(const char *source, const ps_reader_options *options) {
    struct stat status;
    ps_source parts = {0};
    const char *kind = NULL;
    if (ps_source_split(source, &parts, NULL) == PS_OK && stat(parts.path, &status) == 0 && S_ISREG(status.st_mode) &&
        ps_preflight_inspect(source, options, NULL) == PS_OK)
        kind = ps_output_is_output(parts.path) ? "an output" : is_truth(parts.path) ? "the truth of a simulation" : NULL;
    ps_source_free(&parts);
    return kind;
}

static ps_code refuse_own(const ps_series *recordings, const ps_reader_options *options, ps_error *error) {
    const char *first = NULL, *kind = NULL;
    long long n = 0;
    for (int64_t i = 0; i < recordings->n_items; i++) {
        const char *found = own_kind(recordings->items[i].source, options);
        if (!found) continue;
        if (n++ == 0) {
            first = recordings->items[i].source;
            kind = found;
        }
    }
    if (n == 0) return PS_OK;
    return PS_FAIL(error, PS_E_JOB,
                   "/series/files: %s is %s of ptyseries, no recording (%lld of %lld files are of this kind); narrow the pattern, or "
                   "keep them in another folder",
                   first, kind, n, (long long)recordings->n_items);
}

/* ---- what a pattern would catch ---- */

/* The part of a brace group that begins behind "{" up to the next "," or "}" of its level. */
static const char *end_of_choice(const char *text) {
    int depth = 0;
    for (; *text; text++) {
        if (*text == '{') depth++;
        if (depth == 0 && (*text == ',' || *text == '}')) break;
        if (*text == '}') depth--;
    }
    return text;
}

static const char *end_of_group(const char *open) {
    const char *at = open;
    do at = end_of_choice(at + 1);
    while (*at == ',');
    return at;
}

static bool is_same_folder(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

/* A pattern without braces. */
static bool catches_plain(const char *pattern, const char *folder, const char *name) {
    const char *slash = strrchr(pattern, '/');
    glob_t found = {0};
    bool caught = false;
    if (!slash || !strpbrk(pattern, "*?[") || fnmatch(slash + 1, name, FNM_PERIOD) != 0) return false;
    char *folders = slash == pattern ? strdup("/") : strndup(pattern, (size_t)(slash - pattern));
    if (folders && glob(folders, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && !caught; i++) caught = is_same_folder(found.gl_pathv[i], folder);
    globfree(&found);
    free(folders);
    return caught;
}

static bool catches(const char *pattern, const char *folder, const char *name) {
    const char *open = strchr(pattern, '{'), *end = open ? end_of_group(open) : NULL;
    bool caught = false;
    if (!open || *end != '}') return catches_plain(pattern, folder, name);
    for (const char *choice = open + 1, *stop; !caught; choice = stop + 1) {
        stop = end_of_choice(choice);
        char *one = ps_text_format("%.*s%.*s%s", (int)(open - pattern), pattern, (int)(stop - choice), choice, end + 1);
        caught = one && (strpbrk(one, "*?[{") ? catches(one, folder, name) : false);
        free(one);
        if (stop == end) break;
    }
    return caught;
}

static ps_code refuse_pattern(const ps_job *job, ps_error *error) {
    const char *slash = strrchr(job->output_file, '/'), *name = slash ? slash + 1 : job->output_file;
    char *folder = ps_path_directory(job->output_file);
    ps_code code = folder ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    for (int64_t i = 0; i < job->series.n_files && code == PS_OK; i++) {
        ps_source parts = {0};
        char *pattern = ps_path_resolve(job->base_directory, job->series.files[i]);
        if (pattern && ps_source_split(pattern, &parts, NULL) == PS_OK && catches(parts.path, folder, name))
            code = PS_FAIL(
                error, PS_E_JOB,
                "/output/file: the pattern %s of /series/files catches %s, so that the next run would take the output for a recording; "
                "give it another name or folder, or narrow the pattern",
                job->series.files[i], name);
        ps_source_free(&parts);
        free(pattern);
    }
    free(folder);
    return code;
}

ps_code ps_guard_series(const ps_job *job, const ps_reader_options *options, ps_error *error) {
    ps_code code = PS_OK;
    ps_series recordings;
    ps_h5_quiet();
    ps_guard_list_series(job, &recordings);
    PS_GO(refuse_pattern(job, error));
    PS_GO(refuse_own(&recordings, options, error));
done:
    ps_series_free(&recordings);
    return code;
}
