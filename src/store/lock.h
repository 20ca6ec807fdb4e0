/* One writer per output: PATH.lock, held while a file is created or written. Rank-local; one rank of a run holds it.
 *
 * The lock is the kernel's (fcntl), so it ends with the process however that ends, on one node and across nodes of NFS, GPFS, and Lustre
 * mounted with flock. Where the file system knows no such locks, the text in the lock file decides: a writer on this host that is gone, or
 * an earlier start of the same Slurm job, is stale; anything else is taken for alive. */
#ifndef PS_STORE_LOCK_H
#define PS_STORE_LOCK_H

#include "core/error.h"

typedef struct {
    int fd;
    char *path; /* of the lock file */
} ps_lock;
#define PS_LOCK_NONE ((ps_lock){-1, NULL})

/* PS_E_ARGUMENT, naming host, process and job of the other writer, when there is one. */
ps_code ps_lock_take(const char *path, ps_lock *lock, ps_error *error);
void ps_lock_release(ps_lock *lock); /* removes the lock file; nothing happens when none is held */

#endif
