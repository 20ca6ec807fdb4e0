/* Truth values in HDF5 files, which h5py writes as an enumeration and others as a number. */
#ifndef PS_HDF5_FLAG_H
#define PS_HDF5_FLAG_H

#include <hdf5.h>
#include <stdbool.h>

/* Of the attribute of an object, or (attribute NULL) of a dataset; false: there is none, or it is no single truth value. */
bool ps_hdf5_flag(hid_t location, const char *object, const char *attribute, bool *flag);

#endif
