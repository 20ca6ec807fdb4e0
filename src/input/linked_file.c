#include "input/linked_file.h"

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
