#include "hdf5/linked_file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"

char *ps_linked_file_find(const char *path, const char *linked) {
    char real[PATH_MAX];
    const char *slash = strrchr(linked, '/');
    char *beside = ps_path_directory(path), *behind = realpath(path, real) ? ps_path_directory(real) : NULL;
    char *candidates[4] = {
        linked[0] == '/' ? strdup(linked) : NULL,
        linked[0] != '/' && behind ? ps_text_format("%s/%s", behind, linked) : NULL,
        linked[0] != '/' ? ps_text_format("%s/%s", beside, linked) : NULL,
        linked[0] == '/' ? ps_text_format("%s/%s", beside, slash + 1) : NULL,
    };
    char *found = NULL;
    for (int i = 0; i < 4; i++) {
        if (!found && candidates[i] && access(candidates[i], F_OK) == 0)
            found = candidates[i];
        else
            free(candidates[i]);
    }
    free(beside);
    free(behind);
    return found;
}

char *ps_external_file_place(const char *path, const char *named) {
    static const char origin[] = "${ORIGIN}";
    const char *prefix = getenv("HDF5_EXTFILE_PREFIX");
    if (named[0] == '/' || !prefix || !prefix[0] || strcmp(prefix, ".") == 0) return strdup(named);
    if (strncmp(prefix, origin, sizeof origin - 1) != 0) return ps_text_format("%s/%s", prefix, named);
    char *folder = ps_path_directory(path);
    char *place = folder ? ps_text_format("%s%s/%s", folder, prefix + sizeof origin - 1, named) : NULL;
    free(folder);
    return place;
}

/* Where "_data_000001" begins at the end of a name of n characters, else n. */
static size_t without_number(const char *path, size_t n) {
    static const char word[] = "_data_";
    size_t at = n, tail = sizeof word - 1;
    while (at > 0 && path[at - 1] >= '0' && path[at - 1] <= '9') at--;
    return at < n && at > tail && strncmp(path + at - tail, word, tail) == 0 ? at - tail : n;
}

char *ps_linked_file_master(const char *path) {
    static const char ending[] = ".h5";
    size_t n = strlen(path), tail = sizeof ending - 1;
    if (n <= tail || strcmp(path + n - tail, ending) != 0) return NULL;
    char *master = ps_text_format("%.*s_master.h5", (int)without_number(path, n - tail), path);
    if (master && access(master, F_OK) == 0) return master;
    free(master);
    return NULL;
}
