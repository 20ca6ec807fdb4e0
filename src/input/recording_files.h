/* Which files a recording, or another HDF5 input, may consist of: what must not be written over. A list of its own beside what an opened
 * reader reads (input/file_list.h), which it contains: other datasets of the same files, recordings that do not open now, and every place
 * where HDF5 looks for a file count too. */
#ifndef PS_INPUT_RECORDING_FILES_H
#define PS_INPUT_RECORDING_FILES_H

#include "input/name_list.h"
#include "input/reader.h"

/* source: "path" or "path:/dataset". Adds to files what reading it may open besides path itself and is there: what its reader, opened with
 * the options, lists (nothing when it does not open); the files of external links, of virtual datasets and of
 * external storage, and of the files found so in turn; the raw file of an EMPAD .xml and the .xml of a raw file; the .hdr of a .mib; the
 * master of a data file. Opens HDF5 files (under ps_hdf5_lock); one that does not open adds nothing. PS_E_MEMORY only. */
ps_code ps_recording_files_list(const char *source, const ps_reader_options *options, ps_name_list *files, ps_error *error);
/* The same for a recording that is too damaged to be opened: by names alone, "x_data_*.h5" and "x.h5" beside "x_master.h5". */
ps_code ps_recording_files_guess(const char *path, ps_name_list *files, ps_error *error);

#endif
