#include "input/source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *last_split(const char *text) {
    const char *found = NULL;
    for (const char *at = strstr(text, ":/"); at; at = strstr(at + 1, ":/")) found = at;
    return found;
}

ps_code ps_source_split(const char *text, ps_source *source, ps_error *error) {
    struct stat status;
    const char *split = stat(text, &status) == 0 ? NULL : last_split(text);
    *source =
        (ps_source){.path = split ? strndup(text, (size_t)(split - text)) : strdup(text), .dataset = split ? strdup(split + 1) : NULL};
    if (!source->path || (split && !source->dataset)) {
        ps_source_free(source);
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    }
    return PS_OK;
}

void ps_source_free(ps_source *source) {
    free(source->path);
    free(source->dataset);
    *source = (ps_source){0};
}
