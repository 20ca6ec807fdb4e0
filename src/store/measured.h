/* What an existing output says of values that were measured in recordings: they belong to the file once it exists. A run that goes on with
 * it takes them from here and does not measure again, so that frames done now and then are alike, whichever recordings can be read today.
 */
#ifndef PS_STORE_MEASURED_H
#define PS_STORE_MEASURED_H

#include "store/output.h"

/* Of one /entry/optics_N. */
typedef struct {
    char *used, *origin;  /* JSON */
    uint8_t *bad;         /* [detector_rows, detector_columns] why a pixel is left out, bits; 4: hot */
    double *mean_pattern; /* [detector_rows, detector_columns]; NULL: none is recorded */
    int64_t n_active;
    double *weights; /* [n_active]; NULL: no frame of it was prepared yet */
    double dose;     /* that the weights were made with; 0 with uniform weights */
    bool is_prepared;
    bool was_readable; /* some recording of it could be read, so that its values are its own */
    bool has_done;     /* some frame of it is done */
    int64_t first;     /* index of its first recording that could be read when the output was made; -1: none could */
} ps_measured_optics;

typedef struct {
    char *path;
    int64_t n_frames, detector_rows, detector_columns;
    int64_t *optics_of;  /* [n_frames] */
    char **sources;      /* [n_frames] as they were named; their order may come from recordings too */
    ps_frame_seen *seen; /* [n_frames]; NULL: an output of an earlier version, which looked at no recording */
    int64_t n_optics;
    ps_measured_optics *optics; /* [n_optics] */
} ps_measured;

/* Rank-local; changes nothing. PS_E_HDF5 when the file is no output of this program or lacks what every output has. Owned by the caller:
 * ps_measured_free, which may be called for NULL. */
ps_code ps_measured_read(const char *path, ps_measured **measured, ps_error *error);
void ps_measured_free(ps_measured *measured);

/* The optics of a frame; NULL: measured is NULL or does not have the frame. */
ps_measured_optics *ps_measured_of_frame(const ps_measured *measured, int64_t frame);

/* One process, the file open: writes the mean patterns that the spec has and the file has a place for, but no values yet. */
ps_code ps_measured_add_patterns(const ps_output *output, const ps_output_spec *spec, ps_error *error);

#endif
