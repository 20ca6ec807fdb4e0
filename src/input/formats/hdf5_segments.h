/* A recording spread over many HDF5 datasets, in order: the linked data files of a master, the sources of a virtual dataset, or one
 * dataset alone; with pieces that are missing, where that is allowed.
 *
 * Every dataset is looked at once when it is added (shape, type); it is opened again when its positions are read, and at most
 * PS_MAX_OPEN_SEGMENTS stay open, so that recordings of thousands of files work under a low limit of open files. */
#ifndef PS_INPUT_FORMATS_HDF5_SEGMENTS_H
#define PS_INPUT_FORMATS_HDF5_SEGMENTS_H

#include "hdf5/dataset.h"
#include "input/name_list.h"
#include "input/reader.h"

enum { PS_MAX_OPEN_SEGMENTS = 8 };

typedef struct {
    char *path, *name;     /* file, dataset; NULL: missing */
    int64_t first, n;      /* positions of the recording it holds */
    int64_t source_first;  /* its first position in the dataset */
    int64_t rows, columns; /* of its patterns, and their type, when it was added */
    ps_dtype dtype;
    ps_stored stored;
    ps_hdf5_dataset *opened; /* NULL: closed */
    int64_t last_use;
} ps_segment;

typedef struct {
    int64_t n_segments, room;
    ps_segment *segments; /* [n_segments] */
    int64_t n_positions, clock;
    int64_t image_low, image_high; /* numbers of its images that the dataset added last carries (image_nr_low, image_nr_high); 0: none */
    int n_open;
    bool is_written;     /* something was written into at least one of the datasets that were added */
    bool allow_partial;  /* fill what is missing from the nearest pattern before it, else after it */
    bool channels;       /* rank 4 is [position, channel, row, column] */
    int64_t channel;     /* of these, from 1; 0: not chosen */
    ps_name_list *files; /* gets every file that is read; NULL: nobody asks */
} ps_segments;           /* starts as {0} but for the last four */

/* Appends the dataset's positions; those of a virtual dataset are its sources'. The first one sets what *info says of shape, type and
 * compression; a later one of another shape or type is PS_E_INPUT. info->n_positions and n_files grow. */
ps_code ps_segments_add(ps_segments *list, const char *path, const char *name, ps_recording *info, ps_error *error);
/* Appends n positions without data. */
ps_code ps_segments_add_missing(ps_segments *list, int64_t n, ps_recording *info, ps_error *error);
/* For who puts the segments into another order: empties the list but for its last members from is_written on, and what *info says of its
 * length; then appends what *segment of the old list holds, which is empty afterwards. */
void ps_segments_begin_again(ps_segments *list, ps_recording *info);
ps_code ps_segments_take(ps_segments *list, ps_segment *segment, ps_recording *info, ps_error *error);
/* counts: [n_positions, rows, columns] */
ps_code ps_segments_read(ps_segments *list, int64_t first_position, int64_t n_positions, size_t frame_bytes, void *counts, ps_error *error);
/* Opens the dataset of segment number i, which has a path, unless it is open: segment->opened. */
ps_code ps_segments_use(ps_segments *list, int64_t i, ps_error *error);
/* Bytes on disk of what all segments lie in. */
ps_code ps_segments_bytes(ps_segments *list, int64_t *bytes, ps_error *error);
void ps_segments_free(ps_segments *list);

/* What both halves of the implementation use: PS_E_INPUT when list->channel is none of the dataset's; the type as the file has it. */
ps_code ps_segments_check_channel(const ps_segments *list, const ps_hdf5_dataset *dataset, ps_error *error);
const char *ps_stored_name(ps_dtype dtype, ps_stored stored);

#endif
