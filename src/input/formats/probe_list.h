/* Files of ptychography that list where the probe stood for each pattern (CXI, ptypy, PtychoShelves, NeXus positioners). */
#ifndef PS_INPUT_FORMATS_PROBE_LIST_H
#define PS_INPUT_FORMATS_PROBE_LIST_H

#include <hdf5.h>

#include "input/reader.h"

/* Under ps_hdf5_lock. PS_E_INPUT, naming the dataset, when the file lists positions for each of reader->info.n_positions patterns: they
 * need be no raster. With options->shape_override and a scan shape they are taken as one, and a note says so. */
ps_code ps_probe_list_check(ps_reader *reader, hid_t file, const ps_reader_options *options, ps_error *error);

#endif
