/* One recording (a 4D-STEM frame) behind one interface; one file per format implements it.
 *
 * A format is chosen by looking into the file, never by its name alone. Readers are rank-local and not thread-safe unless said;
 * they never modify a file. Shapes, counts and sizes are 64-bit. */
#ifndef PS_INPUT_READER_H
#define PS_INPUT_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/types.h"

typedef struct {
    int64_t scan_rows, scan_columns; /* 0: not told by the job */
} ps_reader_options;

/* What a file tells about itself. NAN and 0 stand for "does not say". */
typedef struct {
    char format[64];                 /* "Dectris master", "NumPy", ... */
    int64_t n_positions;             /* detector frames in the recording */
    int64_t scan_rows, scan_columns; /* 0 when the file does not say */
    int64_t detector_rows, detector_columns;
    ps_dtype dtype;
    bool big_endian;      /* in the file; read() always returns native order */
    char compression[32]; /* "bitshuffle-lz4", "lz4", "none", ... */
    double voltage_V;
    double scan_step_A[2], detector_pitch_mrad[2];
    double saturation;         /* counts at and above are saturated; NAN: not said */
    char acquisition_time[64]; /* ISO 8601 or empty */
    int64_t n_files;           /* files that hold the data */
    int64_t data_bytes;        /* their size on disk */
} ps_recording;

void ps_recording_clear(ps_recording *info); /* says nothing: 0, "" and NAN */

typedef struct ps_reader ps_reader;

typedef struct {
    const char *name;
    /* true when the file at path is this reader's: looks at content. dataset: the part behind "file.h5:", or NULL. */
    bool (*probe)(const char *path, const char *dataset);
    ps_code (*open)(const char *path, const char *dataset, const ps_reader_options *options, ps_reader **reader, ps_error *error);
    void (*close)(ps_reader *reader);
    /* counts: [n_positions, detector_rows, detector_columns] of info.dtype, native byte order. Names file, frame and byte offset on damage.
     */
    ps_code (*read)(ps_reader *reader, int64_t first_position, int64_t n_positions, void *counts, ps_error *error);
    /* bad: [detector_rows, detector_columns], 1 where the file's own mask says not to use a pixel; *present false: the file has none. */
    ps_code (*mask)(ps_reader *reader, uint8_t *bad, bool *present, ps_error *error);
} ps_reader_ops;

/* Each reader's struct begins with this. */
struct ps_reader {
    const ps_reader_ops *ops;
    ps_recording info;
    char *path;
};

/* source: "path" or "path:/dataset". Finds the reader, opens it. Owned by the caller: ps_reader_close. */
ps_code ps_reader_open(const char *source, const ps_reader_options *options, ps_reader **reader, ps_error *error);
void ps_reader_close(ps_reader *reader);
ps_code ps_reader_read(ps_reader *reader, int64_t first_position, int64_t n_positions, void *counts, ps_error *error);
ps_code ps_reader_mask(ps_reader *reader, uint8_t *bad, bool *present, ps_error *error);

/* Scan shape from the job (options), else the file's metadata, else the exact square root of n_positions; otherwise PS_E_INPUT with both
 * numbers and the factor pairs that would fit. Never trims or pads. */
ps_code ps_reader_scan_shape(const ps_reader *reader, const ps_reader_options *options, int64_t *rows, int64_t *columns, ps_error *error);

#endif
