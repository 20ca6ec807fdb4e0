/* One lock around every call into HDF5: packaged HDF5 libraries are not thread-safe, and a run reads ahead in a thread of its own.
 * Recursive, so that a locked part may call another. */
#ifndef PS_CORE_LOCK_H
#define PS_CORE_LOCK_H

#include <stdbool.h>

void ps_hdf5_lock(void);
void ps_hdf5_unlock(void);

/* HDF5 could not close a file it failed to write. The library then crashes when it is shut down, which MPI_Finalize does: a process in this
 * state must leave by another door. */
void ps_hdf5_mark_broken(void);
bool ps_hdf5_is_broken(void);

#endif
