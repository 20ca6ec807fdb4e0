/* One lock around every call into HDF5: packaged HDF5 libraries are not thread-safe, and a run reads ahead in a thread of its own.
 * Recursive, so that a locked part may call another. */
#ifndef PS_CORE_LOCK_H
#define PS_CORE_LOCK_H

void ps_hdf5_lock(void);
void ps_hdf5_unlock(void);

#endif
