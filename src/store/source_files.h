/* Columns of /entry/frames that tell every file behind a frame's recording: n_files [N]; file_name, file_bytes, file_mtime_ns, file_crc32
 * (of samples), file_whole_crc32, each [N, F]. F is made for the recording with the most files; where a later one has more, the last column
 * stands for the rest together. */
#ifndef PS_STORE_SOURCE_FILES_H
#define PS_STORE_SOURCE_FILES_H

#include "store/output.h"
#include "store/rows.h"

typedef struct {
    bool present; /* false: a file of an earlier version, or without any recording that could be read */
    int64_t room; /* F */
    ps_rows n, name, bytes, mtime_ns, samples, whole;
} ps_file_columns;
#define PS_FILE_COLUMNS_NONE \
    ((ps_file_columns){      \
        .n.dataset = -1, .name.dataset = -1, .bytes.dataset = -1, .mtime_ns.dataset = -1, .samples.dataset = -1, .whole.dataset = -1})

/* What one frame's row says. */
typedef struct {
    int64_t n_files;       /* of the recording; 0: nothing is recorded */
    int64_t n;             /* entries that follow: n_files, or F when there are more */
    ps_output_file *files; /* [n]; path is the name without folders */
    char *names;           /* what the paths point into */
} ps_file_row;

/* Creates and fills the columns of the files that the series names, in the open group /entry/frames: source, acquisition_time,
 * source_bytes, source_mtime_ns, source_crc32. frames: [n_frames]. */
ps_code ps_frame_sources_create(hid_t group, int64_t n_frames, const ps_output_frame_source *frames, ps_error *error);
/* Creates and fills the columns in the open group /entry/frames. */
ps_code ps_file_columns_create(hid_t frames, const ps_output_spec *spec, ps_error *error);
int64_t ps_file_columns_bytes(const ps_output_spec *spec); /* that they take */

ps_code ps_file_columns_open(hid_t entry, ps_file_columns *columns, ps_error *error);
void ps_file_columns_close(ps_file_columns *columns);
/* fd: of the same file. Free the row with ps_file_row_free. */
ps_code ps_file_columns_read(const ps_file_columns *columns, int fd, int64_t frame, ps_file_row *row, ps_error *error);
ps_code ps_file_columns_write(const ps_file_columns *columns, int64_t frame, const ps_output_frame_source *source, size_t limit_bytes,
                              ps_error *error);
void ps_file_row_free(ps_file_row *row);

/* The source's files as a row of `room` entries has them. */
ps_code ps_file_row_from(const ps_output_frame_source *source, int64_t room, ps_file_row *row, ps_error *error);

const char *ps_file_name(const char *path); /* without folders */

#endif
