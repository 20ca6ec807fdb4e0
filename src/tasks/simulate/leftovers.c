#include "tasks/simulate/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "hdf5/write.h"

static const char mark[] = ".previous-";

/* Where ".previous-N" begins at the end of a name; NULL: nowhere. */
static const char *ending_of(const char *name) {
    const char *at = NULL;
    for (const char *next = name; (next = strstr(next, mark)); next++) at = next;
    const char *number = at ? at + strlen(mark) : "";
    return *number && number[strspn(number, "0123456789")] == '\0' ? at : NULL;
}

ps_code ps_leftovers_read(ps_leftovers *leftovers, const char *directory, ps_error *error) {
    ps_code code = PS_OK;
    if (leftovers->directory && strcmp(leftovers->directory, directory) == 0) return PS_OK;
    ps_leftovers_free(leftovers);
    DIR *opened = opendir(directory);
    if (!opened && errno != ENOENT) return ps_io_fail(error, errno, "%s: cannot list the directory", directory);
    leftovers->directory = strdup(directory);
    PS_GO_ALLOC(error, leftovers->directory);
    for (struct dirent *entry; opened && (entry = readdir(opened));)
        if (ending_of(entry->d_name)) PS_GO_ALLOC(error, ps_name_list_add(&leftovers->names, entry->d_name) == PS_OK);
done:
    if (opened) closedir(opened);
    return code;
}

void ps_leftovers_free(ps_leftovers *leftovers) {
    free(leftovers->directory);
    ps_name_list_free(&leftovers->names);
    *leftovers = (ps_leftovers){0};
}

/* ---- of a recording ---- */

static bool is_rest(const char *rest, size_t length, const char *expected) {
    return strlen(expected) == length && strncmp(rest, expected, length) == 0;
}

static bool is_data(const char *rest, size_t length) {
    static const char begin[] = "_data_", end[] = ".h5";
    if (length <= strlen(begin) + strlen(end) || strncmp(rest, begin, strlen(begin)) != 0) return false;
    size_t digits = strspn(rest + strlen(begin), "0123456789"), before = strlen(begin) + digits;
    return digits > 0 && before + strlen(end) == length && strncmp(rest + before, end, strlen(end)) == 0;
}

typedef enum { FOREIGN, MASTER, TRUTH, OTHER } part;

/* Which file of the recording of this master has the first `length` letters of name as its own. */
static part part_of(const char *name, size_t length, const char *master) {
    const char *slash = strrchr(master, '/'), *own = slash ? slash + 1 : master;
    size_t stem = strlen(own) - strlen("_master.h5");
    if (length <= stem || strncmp(name, own, stem) != 0) return FOREIGN;
    if (is_rest(name + stem, length - stem, "_master.h5")) return MASTER;
    if (is_rest(name + stem, length - stem, "_truth.h5")) return TRUTH;
    return is_rest(name + stem, length - stem, "_optics.json") || is_data(name + stem, length - stem) ? OTHER : FOREIGN;
}

static ps_code add(ps_frame_leftovers *found, const char *directory, const char *name, size_t length, part of, ps_error *error) {
    ps_code code = PS_OK;
    char *path = ps_text_format("%s/%s", directory, name), *former = ps_text_format("%s/%.*s", directory, (int)length, name);
    PS_GO_ALLOC(error, path && former);
    if (of == TRUTH && !found->truth) PS_GO_ALLOC(error, found->truth = strdup(path));
    found->displaced |= access(former, F_OK) != 0;
    found->of_master |= of == MASTER;
    if (found->n++ > 0) goto done;
    found->first = path;
    path = NULL;
done:
    free(path);
    free(former);
    return code;
}

ps_code ps_frame_leftovers_find(const ps_leftovers *leftovers, const char *master, ps_frame_leftovers *found, ps_error *error) {
    ps_code code = PS_OK;
    *found = (ps_frame_leftovers){0};
    for (int64_t i = 0; i < leftovers->names.n && code == PS_OK; i++) {
        const char *name = leftovers->names.names[i];
        size_t length = (size_t)(ending_of(name) - name);
        part of = part_of(name, length, master);
        if (of != FOREIGN) code = add(found, leftovers->directory, name, length, of, error);
    }
    if (code != PS_OK) ps_frame_leftovers_free(found);
    return code;
}

void ps_frame_leftovers_free(ps_frame_leftovers *found) {
    free(found->first);
    free(found->truth);
    *found = (ps_frame_leftovers){0};
}

static void remove_parts(const ps_leftovers *leftovers, const char *master, bool of_master) {
    for (int64_t i = 0; i < leftovers->names.n; i++) {
        const char *name = leftovers->names.names[i];
        part of = part_of(name, (size_t)(ending_of(name) - name), master);
        char *path = of != FOREIGN && (of == MASTER) == of_master ? ps_text_format("%s/%s", leftovers->directory, name) : NULL;
        if (path) unlink(path);
        free(path);
    }
}

void ps_leftovers_remove(const char *master) {
    ps_leftovers leftovers = {0};
    char *directory = ps_path_directory(master);
    if (directory && ps_leftovers_read(&leftovers, directory, NULL) == PS_OK) {
        remove_parts(&leftovers, master, false);
        remove_parts(&leftovers, master, true);
    }
    ps_leftovers_free(&leftovers);
    free(directory);
}
