/* One lock around every call into HDF5: packaged HDF5 libraries are not thread-safe, and a run reads ahead in a thread of its own.
 * Recursive, so that a locked part may call another. */
#ifndef PS_CORE_LOCK_H
#define PS_CORE_LOCK_H

#include <stdbool.h>

void ps_hdf5_lock(void);
void ps_hdf5_unlock(void);

/* HDF5 failed to write a file. Closing it may then wait for other ranks for ever, and shutting the library down, which MPI_Finalize does,
 * may crash: a process in this state closes nothing and leaves by another door (ps_cluster_end). */
void ps_hdf5_mark_broken(void);
bool ps_hdf5_is_broken(void);

#endif
