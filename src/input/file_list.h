/* The files behind a recording: whatever its counts, shapes and values are read from, in the order in which they are met. */
#ifndef PS_INPUT_FILE_LIST_H
#define PS_INPUT_FILE_LIST_H

#include "hdf5/dataset.h"
#include "input/name_list.h"

/* Adds a file unless it is listed; by its real name (no links, absolute) when it is there, else as it is written. */
ps_code ps_file_list_add(ps_name_list *files, const char *path, ps_error *error);
/* Adds the file that holds the dataset, its external raw files, and the files of a virtual dataset's sources, theirs too. A source of a
 * source that is missing is PS_E_INPUT: HDF5 would fill it with zeros. Under ps_hdf5_lock. */
ps_code ps_file_list_add_dataset(ps_name_list *files, const ps_hdf5_dataset *dataset, ps_error *error);

#endif
