/* Element types of HDF5 datasets, and what counts of them are delivered as. */
#ifndef PS_HDF5_ELEMENT_TYPE_H
#define PS_HDF5_ELEMENT_TYPE_H

#include <hdf5.h>
#include <stdbool.h>

#include "core/types.h"

/* "24-bit integers", "bool or enumerated values", ... of a stored type; text: cut to bytes. */
void ps_hdf5_type_name(hid_t type, char *text, size_t bytes);
/* dtype: what read() will deliver for a stored HDF5 type; *converted: HDF5 must convert (64-bit integers become float64, half
 * precision float32, numbers with padding in them are unpacked); false: no detector counts. */
bool ps_hdf5_dtype(hid_t type, ps_dtype *dtype, bool *big_endian, bool *converted);
hid_t ps_hdf5_native(ps_dtype dtype); /* borrowed */

#endif
