/* The output file: one HDF5 file, NeXus conventions, valid at every instant. docs/file-format.md is its reference.
 *
 * Life of a file: one rank creates it at full size under a temporary name, flushes, closes and renames it; all ranks open it with
 * MPI-IO; from then on only raw data is written, independently, each frame's state last. Whatever is killed, the file opens and
 * tells the truth about which frames are done. */
#ifndef PS_STORE_OUTPUT_H
#define PS_STORE_OUTPUT_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/stage.h"
#include "core/usage.h"
#include "job/job.h"
#include "method/method.h"
#include "optics/plan.h"
#include "store/layout.h"

/* What one optics group contributes to the file; pointers are borrowed during ps_output_create. */
typedef struct {
    const char *given;  /* the optics file's or object's text */
    const char *used;   /* canonical JSON of what was used */
    const char *origin; /* JSON: where values come from that were not given; NULL: all were */
    const ps_plan *plan;
    const uint8_t *bad;                                    /* [detector_rows, detector_columns] pixels left out, of any kind */
    int64_t n_bad_file, n_bad_mask, n_bad_hot, n_bad_dead; /* how many of each kind */
    int64_t first_frame;                                   /* whose dead pixels these are; -1: no recording of it can be read */
    bool needs_mean_pattern;                               /* weights or hot pixels come from one: the file gets a place for it */
    const double *mean_pattern;                            /* [detector_rows, detector_columns] counts; NULL: there is none (yet) */
} ps_output_optics;

/* One of the files behind a recording, and what its content comes to. */
typedef struct {
    const char *path;
    int64_t bytes;    /* -1: it is not there */
    int64_t mtime_ns; /* for people; nothing compares it */
    uint32_t samples; /* CRC-32 of samples of its content (plan/file_checks.h); 0: it could not be read */
    uint32_t whole;   /* CRC-32 of all of it; 0: not asked for */
} ps_output_file;

typedef struct {
    const char *source;
    int64_t bytes, mtime_ns;
    uint32_t checksum;            /* CRC-32 of the named file's first and last MiB; 0: the recording cannot be read */
    const char *acquisition_time; /* ISO 8601 or "" */
    int64_t optics;               /* index */
    int64_t n_files;              /* 0: the recording cannot be read */
    const ps_output_file *files;  /* [n_files] everything it is read from, always in the same order */
    const char *unreadable;       /* why it cannot be read; NULL: it can */
} ps_output_frame_source;

typedef struct {
    const char *key, *value;
} ps_output_note;

typedef struct {
    const ps_job *job; /* methods, strengths, names */
    int64_t n_frames;
    const ps_output_frame_source *frames; /* [n_frames] */
    int64_t n_optics;
    const ps_output_optics *optics; /* [n_optics] */
    int64_t image_rows, image_columns;
    double image_step_A[2];
    int64_t n_notes;             /* provenance: program, version, commit, libraries, command line, MPI layout, Slurm variables ... */
    const ps_output_note *notes; /* [n_notes], one string dataset each in /entry/process_1 */
} ps_output_spec;

typedef struct {
    const ps_method_results *methods; /* of all methods of the job */
    double dose, data_norm;
    int64_t n_excluded;                           /* active pixels left out in this frame only, because they hold no count somewhere */
    int64_t n_saturated, n_negative, n_nonfinite; /* values of the whole recording that are no counts, by kind */
    int64_t n_missing;                            /* patterns without data, filled from others */
    double seconds[PS_N_STAGES];
    int64_t peak_memory_bytes; /* of the process so far */
    const char *device;
    const char *note; /* what a user should know about this frame, such as a backend other than the series' first; NULL: nothing */
} ps_frame_result;

/* What looking at a frame's recording found. */
typedef struct {
    int64_t n_empty, n_marked_patterns;       /* patterns without counts where others have some; patterns whose pixels hold no count */
    int64_t n_hot, n_dead;                    /* pixels that count what is not there; pixels inside the disc that count nothing */
    double disc_center_px[2], disc_radius_px; /* radius 0: no disc was measured */
} ps_frame_seen;

typedef struct ps_output ps_output;

/* Rank-local, called by one rank: creates the file. PS_E_ARGUMENT when it exists and overwrite is false (untouched then), or when another
 * run writes it. With overwrite what stood there gets the name PATH.previous-N at the moment when the new file, complete but for results,
 * takes its place. */
ps_code ps_output_create(const char *path, bool overwrite, const ps_output_spec *spec, ps_error *error);
/* Rank-local, called by one rank, MPI running: makes an existing file ready to go on with. spec is what this run would have created.
 * Refuses with PS_E_ARGUMENT and the list of differences when the file was made with another fingerprint or from other content, and when
 * another run writes it; the file is untouched then. Every done frame's CRC is verified (all cores); damaged frames, and failed ones when
 * retry_failed, are pending again; retry_failed also forgets which frames were begun and never ended. The run becomes the next
 * /entry/process_N, with the spec's notes. */
ps_code ps_output_resume(const char *path, const ps_output_spec *spec, bool retry_failed, ps_error *error);
/* Collective over communicator: opens an existing file for writing. Errors are agreed on by all ranks; PS_E_ARGUMENT when another
 * run writes it. SIGXFSZ is ignored from here on, so that a file size limit becomes an error. */
ps_code ps_output_open(const char *path, MPI_Comm communicator, ps_output **output, ps_error *error);
/* Rank-local. PS_E_IO when something else removed, replaced, moved or cut the file. Images and curves (read back and compared), then the
 * CRC of all of them and the frame's row, then (flushed) its state. Refuses non-finite values with PS_E_NUMERIC and writes nothing then.
 * Of one output one thread writes at a time, except that another may write attempts and what was prepared. */
ps_code ps_output_write_frame(ps_output *output, int64_t frame, const ps_frame_result *result, ps_error *error);

/* The same in parts: images one by one, in any order, then the rest. What is on its way is kept in a list that serves one frame after
 * another; owned by the caller. Rank-local, as all of this. */
typedef struct ps_frame_parts ps_frame_parts;
ps_code ps_frame_parts_create(const ps_output *output, ps_frame_parts **parts, ps_error *error);
void ps_frame_parts_destroy(ps_frame_parts *parts);
/* Nothing is written of this frame yet. */
void ps_frame_parts_begin(ps_frame_parts *parts, int64_t frame);
typedef struct {
    const ps_method *method;
    int result;   /* of the method's list, an image */
    int64_t part; /* which strength; 0 where there is one image */
} ps_image_place;
/* image: [image_rows, image_columns]. Each is written once, read back and compared. One that holds values that are not finite is
 * PS_E_NUMERIC and not written; those written before stand in the file then, and the frame is not done. */
ps_code ps_output_write_image(ps_output *output, ps_frame_parts *parts, const ps_image_place *place, const float *image, ps_error *error);
/* All that ps_output_write_frame does and was not done yet. result->methods: NULL for what was written by ps_output_write_image. */
ps_code ps_output_finish_frame(ps_output *output, ps_frame_parts *parts, const ps_frame_result *result, ps_error *error);

/* Rank-local, before the frame is written or failed. */
ps_code ps_output_write_seen(ps_output *output, int64_t frame, const ps_frame_seen *seen, ps_error *error);
ps_code ps_output_fail_frame(ps_output *output, int64_t frame, const char *reason, ps_error *error);
/* Rank-local. How often frames were begun and never ended (their process was killed, their device lost), as the file said when it was
 * opened: [n_frames], borrowed; all 0 in a file without that column. Writing a frame, or failing one that this rank began, sets its count
 * to 0. */
const int32_t *ps_output_attempts(const ps_output *output);
/* Rank-local. Writes that count and brings it to disk; nothing in a file without that column. */
ps_code ps_output_write_attempts(ps_output *output, int64_t frame, int32_t attempts, ps_error *error);
/* Rank-local: weights and scales of a prepared optics. */
typedef struct {
    const double *weights; /* [n_active] */
    double dose;
    const ps_method_set *methods;
    double scales[PS_MOST_METHODS][PS_MOST_METHOD_SCALES]; /* of methods->items[i], as its method reads them */
    const char *backend, *precision;                       /* what prepared it */
} ps_output_prepared;
ps_code ps_output_write_prepared(ps_output *output, int64_t optics, const ps_output_prepared *prepared, ps_error *error);
/* Rank-local, by one rank: that the optics were held against a frame's data, what a user should be told ("": nothing), and how long that
 * took. Nothing happens in a file without room for it. *looked: it was done, by an earlier run or this one; true without room. */
enum { PS_WIDTH_DOUBT = 320 };
ps_code ps_output_write_doubt(ps_output *output, int64_t optics, const char *text, double seconds, ps_error *error);
ps_code ps_output_has_looked(ps_output *output, int64_t optics, bool *looked, ps_error *error);
/* Rank-local. Seconds of each stage, over all frames that this rank wrote: [PS_N_STAGES], borrowed. Those of writing go up to where the
 * frame is on disk. */
const double *ps_output_stage_seconds(const ps_output *output);
/* Rank-local, by one rank, before closing: what bounded the run, over all ranks. Nothing happens in a file without room for it. */
ps_code ps_output_write_usage(ps_output *output, const ps_usage *usage, ps_error *error);
/* Collective: writes end time and counts (rank 0), closes, and puts the file into the directory's ro-crate-metadata.json. When every frame
 * is done, earlier results kept beside it (PATH.previous-N) go. PS_E_IO when the file is no longer there or was cut: what can be saved is.
 */
ps_code ps_output_close(ps_output *output, ps_error *error);

/* Rank-local: states of all frames of a file on disk (also while it is being written); *states is malloc'd, [n]. */
ps_code ps_output_states(const char *path, int64_t *n, uint8_t **states, ps_error *error);

#endif
