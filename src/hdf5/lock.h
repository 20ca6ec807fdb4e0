/* One lock around every call into HDF5: packaged HDF5 libraries are not thread-safe, and a run reads ahead in a thread of its own.
 * Recursive, so that a locked part may call another. */
#ifndef PS_HDF5_LOCK_H
#define PS_HDF5_LOCK_H

#include <stdbool.h>
#include <stdint.h>

void ps_hdf5_lock(void);
void ps_hdf5_unlock(void);

/* What HDF5 works on, so that it can be said when a damaged file makes the library crash (crash.h, input/preflight.h). */
typedef struct {
    char path[4096];               /* "": nothing that was noted */
    int64_t first_frame, n_frames; /* patterns; n_frames 0: none in particular */
} ps_hdf5_work;

/* Under ps_hdf5_lock; holds until the next note or until the lock is free. path: copied. */
void ps_hdf5_note(const char *path, int64_t first_frame, int64_t n_frames);
/* The note when the calling thread holds the lock, else NULL. Fit for signal handlers. */
const ps_hdf5_work *ps_hdf5_noted(void);
/* Notes go to *work from now on, which another process may share. */
void ps_hdf5_note_into(ps_hdf5_work *work);

/* HDF5 failed to write a file. Closing it may then wait for other ranks for ever, and shutting the library down, which MPI_Finalize does,
 * may crash: a process in this state closes nothing and ends without the library's own clean-up (ps_cluster_end). */
void ps_hdf5_mark_broken(void);
bool ps_hdf5_is_broken(void);

#endif
