/* Writes a recording in the layout of a Dectris master: data files with bitshuffle-LZ4 chunks of one position each, and a master with
 * external links, mask and metadata. No HDF5 filter plugin is needed.
 *
 * Files carry a ".part" behind their names until the recording is whole; the master is renamed last. */
#ifndef PS_TASKS_SIMULATE_MASTER_WRITER_H
#define PS_TASKS_SIMULATE_MASTER_WRITER_H

#include "core/error.h"
#include "core/types.h"

typedef struct {
    const char *master_path; /* ends in "_master.h5"; data files lie beside it: "..._data_000001.h5" */
    int64_t scan_rows, scan_columns;
    int64_t detector_rows, detector_columns;
    ps_dtype dtype; /* unsigned */
    int64_t positions_per_file;
    double voltage_V;
    const char *description; /* of the detector */
    const char *job_text;    /* kept in /entry/simulation/job */
    const char *science;     /* kept in /entry/simulation/science */
    int64_t frame;
    const char *companions[2]; /* files beside it, written under their temporary names, that get theirs together with it; NULL: none */
} ps_master_spec;

/* Path of data file `number`, from 1, of a master; malloc'd. */
char *ps_master_data_path(const char *master_path, int64_t number);

typedef struct ps_master_writer ps_master_writer;

/* spec's texts are borrowed until the end. */
ps_code ps_master_create(const ps_master_spec *spec, ps_master_writer **writer, ps_error *error);
/* stream: [bytes] of ps_bslz4_encode, for the next position in scan order. */
ps_code ps_master_append(ps_master_writer *writer, const void *stream, size_t bytes, ps_error *error);
/* Writes the master, gives all files their names and frees the writer, on error too. Files of an older recording of that name have a second
 * name, "...previous-1", until all new ones are there, and come back after an error. */
ps_code ps_master_finish(ps_master_writer *writer, ps_error *error);
/* Removes what was written; NULL is allowed. */
void ps_master_abandon(ps_master_writer *writer);

#endif
