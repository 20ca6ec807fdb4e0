/* Files that the HDF5 library opens by itself, behind links and datasets: looked at before, because it would wait at a FIFO for ever. */
#ifndef PS_HDF5_BEHIND_H
#define PS_HDF5_BEHIND_H

#include <hdf5.h>

#include "core/error.h"

/* An access property list for calls that follow links (as link access and as dataset access): an external link whose file is no regular
 * one is not followed, and the call fails. Borrowed; H5P_DEFAULT when it cannot be made. Under ps_hdf5_lock. */
hid_t ps_hdf5_links(void);
/* "FILE is a FIFO (named pipe), expected a regular file" of the link that made the last call with ps_hdf5_links fail, or NULL. The next
 * such call begins anew: ps_hdf5_links clears it. */
const char *ps_hdf5_refused_link(void);

/* What an opened dataset takes from other files: PS_E_INPUT when a source of a virtual dataset is no regular file or is numbered ("%b"),
 * or when a file of external storage is missing, no regular file, or too short, which HDF5 would read as zeros. name: the dataset's, for
 * messages. Under ps_hdf5_lock, before anything asks for the dataset's space. */
ps_code ps_hdf5_check_behind(hid_t dataset, const char *name, ps_error *error);

#endif
