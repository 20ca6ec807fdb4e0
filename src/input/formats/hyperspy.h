/* HyperSpy's files (.hspy): /Experiments/NAME/data beside one group axis-N for each of its axes. */
#ifndef PS_INPUT_FORMATS_HYPERSPY_H
#define PS_INPUT_FORMATS_HYPERSPY_H

#include <hdf5.h>

#include "input/formats/axis_order.h"

/* Under ps_hdf5_lock. Fills axes [rank] and sets *found when the groups are there, and takes the beam energy into reader->info. shape:
 * [rank] of the dataset; axes of another size are PS_E_INPUT. */
ps_code ps_hyperspy_read_axes(ps_reader *reader, hid_t file, const char *dataset, int rank, const hsize_t *shape, ps_axis *axes,
                              bool *found, ps_error *error);

#endif
