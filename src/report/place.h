/* The directory that previews go to. Each file of it is written under a name of its own beside its final one and then renamed: nothing is
 * half written, a link is replaced and what it leads to stays. Nothing is replaced that an earlier preview did not write. */
#ifndef PS_REPORT_PLACE_H
#define PS_REPORT_PLACE_H

#include <stdio.h>
#include <sys/types.h>

#include "core/error.h"

typedef struct {
    char *directory; /* owned: ps_place_free */
    char *output;    /* owned; the file that is shown, which no name in the directory may lead to */
    dev_t device;
    ino_t inode;
} ps_place;

typedef struct {
    FILE *stream;    /* to write to; closed by ps_place_finish */
    char *path;      /* owned; where it is going to stand */
    char *temporary; /* owned; where it stands until then */
} ps_place_file;

/* Makes the directory, NULL: output.preview, if it is not there. PS_E_ARGUMENT when something else stands there. place: also after an error
 * ps_place_free. */
ps_code ps_place_open(const char *directory, const char *output, ps_place *place, ps_error *error);
void ps_place_free(ps_place *place);

/* PS_E_ARGUMENT when a file at path, in this place, may not be replaced: it is no regular file nor a symbolic link, it is the output under
 * whatever name, or it begins neither like a PNG picture nor like a page of a preview (an empty file is nothing to lose). */
ps_code ps_place_check(const ps_place *place, const char *path, ps_error *error);
/* Begins a file, after ps_place_check. file: when it is PS_OK, to be given to ps_place_finish. */
ps_code ps_place_create(const ps_place *place, const char *path, ps_place_file *file, ps_error *error);
/* Closes the file and gives it its name, or removes it when code, what became of writing it, is an error. The first error. */
ps_code ps_place_finish(ps_place_file *file, ps_code code, ps_error *error);

#endif
