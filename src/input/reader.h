/* One recording (a 4D-STEM frame) behind one interface; one file per format implements it. open.h opens one.
 *
 * Readers are rank-local and not thread-safe; they take
 * ps_hdf5_lock themselves where they need it (do not hold it around a read: decoding needs no lock). They never modify a file. Shapes,
 * counts and sizes are 64-bit. */
#ifndef PS_INPUT_READER_H
#define PS_INPUT_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/types.h"
#include "input/name_list.h"

/* What a job says of its recordings; zeros say nothing. docs/input.md. */
typedef struct {
    int64_t scan_rows, scan_columns;
    bool shape_override;                 /* scan_rows and scan_columns hold although the file says another scan, or a list of positions */
    int64_t skip_leading, skip_trailing; /* patterns at both ends that belong to no scan position */
    int64_t flyback;                     /* positions behind each scan row that are not part of it */
    int64_t repeats;                     /* patterns per position, which are summed; 0 or 1: one */
    bool serpentine;                     /* every second scan row runs backwards */
    bool allow_partial;                  /* data that is missing is filled from the nearest pattern and counted, not refused */
    double saturation;                   /* instead of what the file says; INFINITY: no count is saturated */
    int64_t channel;                     /* of [position, channel, row, column] data, from 1 */
    /* Values that are no counts become the invalid-count value of the type (ps_dtype_invalid_value; NAN in floating types): counts at or
     * above the saturation value, infinities, negative values of signed integers, which are delivered as unsigned ones then, and
     * invalid-count values that were written into other types (adapters/clean.h). */
    bool exclude_invalid;
} ps_reader_options;

/* What a file tells about itself. NAN and 0 stand for "does not say". */
typedef struct {
    char format[64];                 /* "Dectris master", "NumPy", ... */
    int64_t n_positions;             /* patterns in the recording */
    int64_t scan_rows, scan_columns; /* 0 when the file does not say */
    int64_t detector_rows, detector_columns;
    int64_t n_planned; /* patterns that were to be recorded; 0: not said */
    ps_dtype dtype;
    ps_stored stored;
    int bit_depth;        /* of the detector's counts, which may be less than dtype holds: 2^bit_depth - 1 is no count; 0: not said */
    bool big_endian;      /* in the file; read() always returns native order */
    char compression[32]; /* "bitshuffle-lz4", "lz4", "none", ... */
    double voltage_V;
    double scan_step_A[2], detector_pitch_mrad[2];
    double saturation;         /* counts at and above are saturated; NAN: not said */
    char acquisition_time[64]; /* ISO 8601 or empty */
    int64_t n_files;           /* files that hold the data */
    int64_t data_bytes;        /* their size on disk; of HDF5 0: ps_reader_data_bytes looks for it */
    int64_t n_missing;         /* patterns without data, filled (allow_partial) */
    /* where the file says it: "/entry/instrument/beam/incident_energy", "dim0", ...; empty: it does not */
    char voltage_place[80], scan_place[80], step_place[80], pitch_place[80];
    char scan_doubt[200]; /* why the patterns must not be taken for a square: what the file says instead; empty: they may */
    /* a detector pixel where the file gives it as a spatial frequency, which a voltage makes an angle; NAN: it does not. At pitch_place. */
    double detector_pitch_inv_A[2];
} ps_recording;

void ps_recording_clear(ps_recording *info); /* says nothing: 0, "" and NAN */
/* What the recording says of the detector's pitch: a spatial frequency times the wavelength at voltage_V (NAN: not known), else the angle
 * that it gives. pitch_mrad: rows, columns; NAN: nothing. */
void ps_recording_pitch(const ps_recording *info, double voltage_V, double pitch_mrad[2]);

typedef struct ps_reader ps_reader;

/* Values that exclude_invalid replaced in what was read so far, by kind. */
typedef struct {
    int64_t n_saturated, n_negative, n_nonfinite;
} ps_invalid_counts;

/* Where patterns lie in a file as they are delivered, but for their byte order: position p from byte first_byte + p * stride_bytes on,
 * first lead_bytes that are for `check`, then its counts. */
typedef struct ps_reader_plain {
    const char *path;
    int descriptor; /* the reader's */
    int64_t first_byte, stride_bytes;
    bool big_endian;
    int64_t lead_bytes;
    /* Whether what stands in front of a pattern is what should; any thread. NULL: nothing to check. */
    ps_code (*check)(const ps_reader *reader, int64_t position, const uint8_t *lead, ps_error *error);
} ps_reader_plain;

typedef struct {
    const char *name;
    /* true when the file at path is this reader's: looks at content. dataset: the part behind "file.h5:", or NULL. */
    bool (*probe)(const char *path, const char *dataset);
    ps_code (*open)(const char *path, const char *dataset, const ps_reader_options *options, ps_reader **reader, ps_error *error);
    void (*close)(ps_reader *reader); /* its own parts; ps_reader_close does the rest */
    /* counts: [n_positions, detector_rows, detector_columns] of info.dtype, native byte order. Names file, pattern and byte offset on
     * damage.
     */
    ps_code (*read)(ps_reader *reader, int64_t first_position, int64_t n_positions, void *counts, ps_error *error);
    /* bad: [detector_rows, detector_columns], 1 where the file's own mask says not to use a pixel; *present false: the file has none. */
    ps_code (*mask)(ps_reader *reader, uint8_t *bad, bool *present, ps_error *error); /* NULL: the inner reader's, or none */
    ps_invalid_counts (*invalid)(const ps_reader *reader);                            /* NULL: the inner reader's, if any */
    ps_code (*data_bytes)(ps_reader *reader, int64_t *bytes, ps_error *error);        /* NULL: the inner reader's, or info's */
    bool (*plain)(const ps_reader *reader, ps_reader_plain *plain); /* NULL, or false: they do not lie there as delivered */
} ps_reader_ops;

/* Each reader's struct begins with this. */
struct ps_reader {
    const ps_reader_ops *ops;
    ps_recording info;
    char *path;
    char *notes;        /* ps_reader_note */
    ps_name_list files; /* that it reads besides path; the reader adds them when it opens (input/file_list.h) */
    ps_reader *inner;   /* NULL, or the reader this one is in front of, which it owns */
};

void ps_reader_close(ps_reader *reader);
ps_code ps_reader_read(ps_reader *reader, int64_t first_position, int64_t n_positions, void *counts, ps_error *error);
ps_code ps_reader_mask(ps_reader *reader, uint8_t *bad, bool *present, ps_error *error);

/* Bytes on disk of what is read, which takes a walk through every chunk's entry in the index of an HDF5 file. */
ps_code ps_reader_data_bytes(ps_reader *reader, int64_t *bytes, ps_error *error);

/* Adds to files everything the recording is read from: the named file, linked data files, sources of virtual datasets, external raw files,
 * companions; those that are missing (allow_partial) too. Always in the same order. */
ps_code ps_reader_list_files(const ps_reader *reader, ps_name_list *files, ps_error *error);

/* Lines about how the file was understood ("warning: ..." where a person should look); "" when there are none. Owned by the reader. */
const char *ps_reader_notes(const ps_reader *reader);
/* For readers: adds a line. */
void ps_reader_note(ps_reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Zeros without exclude_invalid. */
ps_invalid_counts ps_reader_invalid(const ps_reader *reader);

#endif
