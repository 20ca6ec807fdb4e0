/* Axes that a dataset's file describes: HyperSpy's axis-N groups, HDF5 dimension labels and scales, xarray's and NeXus's lists of names. */
#ifndef PS_INPUT_FORMATS_HDF5_AXES_H
#define PS_INPUT_FORMATS_HDF5_AXES_H

#include <hdf5.h>

#include "input/reader.h"

/* Under ps_hdf5_lock. dataset: "/..." in file, of rank 3 or 4. Takes steps, pitch and (HyperSpy) the voltage into reader->info; PS_E_INPUT
 * when the axes are said to be in another order than [scan ..., detector row, detector column], or of other sizes. */
ps_code ps_hdf5_axes_take(ps_reader *reader, hid_t file, const char *dataset, ps_error *error);

/* Names of the axes of a dataset or group: an attribute that is a list of texts, or one text as JSON's list or parted by ":" or ",".
 * names: [most][64]; returns how many there are, 0: none. */
int ps_hdf5_attribute_list(hid_t file, const char *object, const char *attribute, int most, char (*names)[64]);

#endif
