/* The formats, in the order in which they are tried. */
#ifndef PS_INPUT_FORMATS_FORMATS_H
#define PS_INPUT_FORMATS_FORMATS_H

#include "input/reader.h"

extern const ps_reader_ops ps_reader_dectris, ps_reader_emd, ps_reader_hdf5, ps_reader_npy, ps_reader_mib, ps_reader_empad;

#endif
