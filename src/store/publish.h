/* From a temporary name to the final one: a file appears under PATH only when it is complete and on disk. Rank-local. */
#ifndef PS_STORE_PUBLISH_H
#define PS_STORE_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

/* An empty file PATH.partial-XXXXXXXX that nobody else has; its name is malloc'd. */
ps_code ps_publish_temporary(const char *path, char **temporary, ps_error *error);
/* PS_E_IO when the disk has no room for `bytes` more: asked before HDF5 writes, which does not survive a full disk. The file is empty
 * after. */
ps_code ps_publish_try_space(const char *temporary, int64_t bytes, ps_error *error);
/* Copies from `from`'s place to its end, to `to`'s place. name: for messages. Signals and short writes do not end it. */
ps_code ps_publish_copy_bytes(int from, int to, const char *name, ps_error *error);
/* Copies the bytes of `from` into the existing file `to`. */
ps_code ps_publish_copy(const char *from, const char *to, ps_error *error);
/* Reserves the file's blocks, so that a full disk shows now and not after hours; then brings everything to disk. */
ps_code ps_publish_sync(const char *temporary, ps_error *error);
/* Gives the file its name and brings the directory to disk. Without replace an existing file is PS_E_ARGUMENT and stays untouched. */
ps_code ps_publish_rename(const char *temporary, const char *path, bool replace, ps_error *error);
/* Before a file is replaced: gives what stands at path a second name, PATH.previous-N with the first N that is free, so that it outlives
 * the replacement. *kept: that name, malloc'd; NULL when nothing stands there. */
ps_code ps_publish_keep(const char *path, char **kept, ps_error *error);
/* Takes ps_publish_keep back after the replacement failed. kept may be NULL. */
void ps_publish_restore(const char *path, const char *kept);
/* Once the replacement is complete: removes those PATH.previous-N that are own files of this program. How many. */
int ps_publish_forget(const char *path, bool (*is_own)(const char *path));
/* Copies an open file that has lost its name to PATH.recovered-N; *saved: that name, malloc'd. */
ps_code ps_publish_recover(int fd, const char *path, char **saved, ps_error *error);
/* Removes PATH.partial-* that killed runs left. Only with PATH's lock held: then nobody is writing them. */
void ps_publish_sweep(const char *path);

ps_code ps_publish_exists(const char *path, ps_error *error); /* the error for a file that stands in the way */

#endif
