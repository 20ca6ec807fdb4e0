/* The data of a Dectris master: what /entry/data holds and links to, put in the order of its image numbers. Used by reader_dectris.c. */
#ifndef PS_INPUT_FORMATS_DECTRIS_LINKS_H
#define PS_INPUT_FORMATS_DECTRIS_LINKS_H

#include "input/formats/hdf5_common.h"

#define PS_DECTRIS_DATA "/entry/data"

bool ps_dectris_is_numbered(const char *link); /* "data_000001" */

/* Adds the data of all links to reader->segments. Data files that are missing are an error, or with options->allow_partial positions
 * without data. Where the data files number their images (image_nr_low, image_nr_high) these numbers decide on the order; one that
 * contradicts what the file holds, an image in two files, or images in none are errors, the last with allow_partial positions without
 * data. promised: patterns in all, 0: not known. Under ps_hdf5_lock. */
ps_code ps_dectris_add_data(ps_hdf5_reader *reader, hid_t master, const ps_reader_options *options, int64_t promised, ps_error *error);

#endif
