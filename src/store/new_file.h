/* A new output file, from an empty one under a temporary name to one with its own: what every task that writes one does. Rank-local. */
#ifndef PS_STORE_NEW_FILE_H
#define PS_STORE_NEW_FILE_H

#include <hdf5.h>
#include <stdbool.h>

#include "core/error.h"
#include "store/lock.h"

typedef struct {
    const char *path; /* borrowed */
    bool overwrite;
    char *temporary; /* NULL once it is published */
    ps_lock lock;
} ps_new_file;

#define PS_NEW_FILE_NONE ((ps_new_file){.lock = PS_LOCK_NONE})

/* Takes the output's lock, sweeps up what killed runs left, and makes an empty temporary file where `bytes` have room. PS_E_ARGUMENT when
 * the output exists and is not to be replaced, or another run writes it. SIGXFSZ is ignored from here on, so that a file size limit
 * becomes an error. On error too the file is the caller's to end. */
ps_code ps_new_file_begin(const char *path, bool overwrite, int64_t bytes, ps_new_file *file, ps_error *error);
/* Writes the tree into it: the root, and what fill puts there; then closes it. */
typedef ps_code (*ps_new_file_fill)(hid_t file, const void *spec, ps_error *error);
ps_code ps_new_file_write(const ps_new_file *file, ps_new_file_fill fill, const void *spec, ps_error *error);
/* Brings it to disk and gives it its name. *kept: what stood there until now has this name, malloc'd; NULL: nothing did. */
ps_code ps_new_file_publish(ps_new_file *file, char **kept, ps_error *error);
/* Whether what was kept is an output of this program; a warning says where it is when it is none. kept: NULL: false. */
bool ps_new_file_kept_own(const char *path, const char *kept);
/* Removes the file if it is not published, and gives the lock back. */
void ps_new_file_end(ps_new_file *file);

#endif
