/* What users write for a recording: "path" or "path:/dataset". */
#ifndef PS_INPUT_SOURCE_H
#define PS_INPUT_SOURCE_H

#include "core/error.h"

typedef struct {
    char *path;    /* owned */
    char *dataset; /* owned, begins with "/"; NULL: none given */
} ps_source;

/* A colon may be part of a file name: what exists as a file under the whole name is a path; otherwise the last ":/" splits. */
ps_code ps_source_split(const char *text, ps_source *source, ps_error *error);
void ps_source_free(ps_source *source);

#endif
