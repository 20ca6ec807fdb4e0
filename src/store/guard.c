#include "store/guard.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"
#include "input/preflight.h"
#include "input/recording_files.h"
#include "input/series.h"
#include "input/source.h"
#include "store/info.h"

/* ---- what is written ---- */

ps_code ps_guard_add(ps_guard_targets *targets, char *path, const char *what, ps_error *error) {
    struct stat status;
    if (!path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) {
        free(path);
        return PS_OK;
    }
    if (targets->n == targets->room) {
        int64_t room = targets->room ? 2 * targets->room : 16;
        ps_guard_target *larger = realloc(targets->targets, (size_t)room * sizeof *larger);
        if (!larger) {
            free(path);
            return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the list of files that are written");
        }
        targets->targets = larger;
        targets->room = room;
    }
    targets->targets[targets->n++] =
        (ps_guard_target){.path = path, .what = what, .own = ps_output_is_output(path), .device = status.st_dev, .inode = status.st_ino};
    return PS_OK;
}

void ps_guard_free(ps_guard_targets *targets) {
    for (int64_t i = 0; i < targets->n; i++) free(targets->targets[i].path);
    free(targets->targets);
    *targets = (ps_guard_targets){0};
}

/* Every file whose name is path and something behind it that begins with `ending`. */
static ps_code add_matches(ps_guard_targets *targets, const char *path, const char *ending, const char *what, ps_error *error) {
    const char *slash = strrchr(path, '/');
    char *folder = ps_path_directory(path), *prefix = ps_text_format("%s%s", slash ? slash + 1 : path, ending);
    ps_code code = folder && prefix ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    DIR *directory = code == PS_OK ? opendir(folder) : NULL;
    for (struct dirent *entry; directory && code == PS_OK && (entry = readdir(directory));)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            code = ps_guard_add(targets, ps_text_format("%s/%s", folder, entry->d_name), what, error);
    if (directory) closedir(directory);
    free(prefix);
    free(folder);
    return code;
}

/* path itself, its lock, and what earlier runs left beside it, which is removed. */
static ps_code add_with_company(ps_guard_targets *targets, const char *path, const char *what, ps_error *error) {
    PS_TRY(ps_guard_add(targets, strdup(path), what, error));
    PS_TRY(ps_guard_add(targets, ps_text_format("%s.lock", path), "a lock of the run", error));
    PS_TRY(add_matches(targets, path, ".partial-", "what a killed run left, which is removed", error));
    return add_matches(targets, path, ".previous-", "an earlier result, which is removed when the new one is complete", error);
}

/* Recordings link to no lock and no crate, whatever stands in them: looking for that would open every recording once more. */
static void mark_aside(ps_guard_targets *targets, const char *output_file) {
    size_t length = strlen(output_file);
    for (int64_t i = 0; i < targets->n; i++) {
        const char *path = targets->targets[i].path;
        bool beside = strncmp(path, output_file, length) != 0 || strcmp(path + length, ".lock") == 0;
        targets->targets[i].own |= beside;
    }
}

static ps_code list_targets(const char *output_file, ps_guard_targets *targets, ps_error *error) {
    char *folder = ps_path_directory(output_file), *crate = folder ? ps_text_format("%s/ro-crate-metadata.json", folder) : NULL;
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, crate);
    PS_GO(add_with_company(targets, output_file, "/output/file", error));
    PS_GO(add_with_company(targets, crate, "the RO-Crate beside /output/file", error));
    mark_aside(targets, output_file);
done:
    free(crate);
    free(folder);
    return code;
}

/* ---- what is read ---- */

typedef struct {
    const ps_guard_targets *targets;
    const ps_reader_options *options;
    bool follow; /* into what recordings link to */
} guard;

/* via: the file that links to path; NULL: the job names it. role: where the job names path or via. */
static ps_code compare(const guard *g, const char *path, const char *role, const char *via, ps_error *error) {
    struct stat status;
    if (stat(path, &status) != 0) return PS_OK;
    for (int64_t i = 0; i < g->targets->n; i++) {
        const ps_guard_target *target = &g->targets->targets[i];
        if (target->inode != status.st_ino || target->device != status.st_dev) continue;
        bool other_name = strcmp(path, target->path) != 0;
        return PS_FAIL(error, PS_E_JOB, "%s: the run would write over %s, which the job reads (%s%s%s%s%s); give the output another name",
                       target->what, target->path, role, other_name ? ", as " : "", other_name ? path : "", via ? ", linked from " : "",
                       via ? via : "");
    }
    return PS_OK;
}

/* A file that the job names, "path" or "path:/dataset", and what it links to. */
static ps_code look_at_file(const guard *g, const char *source, const char *role, bool follow, ps_error *error) {
    ps_code code = PS_OK;
    ps_source parts = {0};
    ps_name_list linked = {0};
    PS_GO(ps_source_split(source, &parts, error));
    PS_GO(compare(g, parts.path, role, NULL, error));
    if (!follow) goto done;
    if (ps_preflight_inspect(source, g->options, NULL) == PS_OK) PS_GO(ps_recording_files_list(source, g->options, &linked, error));
    if (linked.n == 0) PS_GO(ps_recording_files_guess(parts.path, &linked, error)); /* a damaged master names none */
    for (int64_t i = 0; i < linked.n; i++) PS_GO(compare(g, linked.names[i], role, parts.path, error));
done:
    ps_name_list_free(&linked);
    ps_source_free(&parts);
    return code;
}

static ps_code look_at_optics(const ps_job *job, const guard *g, const ps_series *series, ps_error *error) {
    if (job->optics.source == PS_OPTICS_FILE && job->optics.path) return look_at_file(g, job->optics.path, "/optics", false, error);
    if (job->optics.source != PS_OPTICS_PER_FRAME) return PS_OK;
    for (int64_t i = 0; i < series->n_items; i++) {
        char *path = ps_text_replace(job->optics.path, "{stem}", series->items[i].stem);
        ps_code code = path ? look_at_file(g, path, "/optics/per_frame", false, error)
                            : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
        free(path);
        PS_TRY(code);
    }
    return PS_OK;
}

ps_code ps_guard_inputs(const ps_job *job, const ps_guard_targets *targets, const ps_reader_options *options, ps_error *error) {
    ps_code code = PS_OK;
    ps_series series;
    guard g = {.targets = targets, .options = options};
    if (targets->n == 0) return PS_OK;
    for (int64_t i = 0; i < targets->n; i++) g.follow |= !targets->targets[i].own;
    ps_guard_list_series(job, &series);
    if (job->path) PS_GO(look_at_file(&g, job->path, "the job itself", false, error));
    PS_GO(look_at_optics(job, &g, &series, error));
    if (job->series.mask_file) PS_GO(look_at_file(&g, job->series.mask_file, "/series/bad_pixels/mask", true, error));
    for (int64_t i = 0; i < job->n_own_inputs; i++) PS_GO(look_at_file(&g, job->own_inputs[i].path, job->own_inputs[i].place, true, error));
    for (int64_t i = 0; i < series.n_items; i++) PS_GO(look_at_file(&g, series.items[i].source, "/series/files", g.follow, error));
done:
    ps_series_free(&series);
    return code;
}

/* ---- the output of a job that writes one file ---- */

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    if (S_ISFIFO(mode)) return "a pipe";
    return S_ISSOCK(mode) ? "a socket" : "no regular file";
}

static ps_code check_place(const char *file, ps_error *error) {
    struct stat found;
    ps_code code = PS_OK;
    char *folder = ps_path_directory(file);
    if (!folder) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    size_t length = strlen(file);
    if (stat(folder, &found) != 0)
        code = PS_FAIL(error, PS_E_JOB, "/output/file: found %s, but there is no directory %s (%s); create it first", file, folder,
                       strerror(errno));
    else if (!S_ISDIR(found.st_mode))
        code = PS_FAIL(error, PS_E_JOB, "/output/file: found %s, but %s is no directory", file, folder);
    else if (length == 0 || file[length - 1] == '/')
        code = PS_FAIL(error, PS_E_JOB, "/output/file: found %s, expected the name of a file", file);
    else if (stat(file, &found) == 0 && !S_ISREG(found.st_mode))
        code = PS_FAIL(error, PS_E_JOB, "/output/file: %s is %s, expected a file", file, kind_of(found.st_mode));
    else if (access(folder, W_OK | X_OK) != 0)
        code = PS_FAIL(error, PS_E_JOB, "/output/file: found %s, but no file can be created in %s: %s", file, folder, strerror(errno));
    free(folder);
    return code;
}

ps_code ps_guard_output(const ps_job *job, const ps_reader_options *options, ps_error *error) {
    ps_code code = PS_OK;
    ps_guard_targets targets = {0};
    PS_GO(check_place(job->output_file, error));
    PS_GO(list_targets(job->output_file, &targets, error));
    PS_GO(ps_guard_inputs(job, &targets, options, error));
    PS_GO(ps_guard_series(job, options, error));
done:
    ps_guard_free(&targets);
    return code;
}
