/* From a job to what will be done: the recordings, their optics groups, masks and plans. `check` prints it, `run` works through it.
 *
 * Rank-local (but for ps_run_plan_preflight) and deterministic: every rank builds it for itself from the same files and gets the same.
 * docs/physics.md section 4. */
#ifndef PS_PLAN_PLAN_H
#define PS_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/cluster.h"
#include "input/name_list.h"
#include "input/reader.h"
#include "input/series.h"
#include "job/job.h"
#include "optics/measure.h"
#include "optics/plan.h"
#include "store/measured.h"
#include "store/output.h"

/* Why a pixel is left out; bits of ps_run_group.bad. A pixel counts once, for the first of file, mask, dead, hot that names it. */
enum { PS_BAD_FILE = 1, PS_BAD_MASK = 2, PS_BAD_HOT = 4, PS_BAD_DEAD = 8 };

/* What some patterns of a recording show (ps_run_plan_survey). */
typedef struct {
    bool looked;                             /* false: not looked at, or it could not be read */
    bool has_disc;                           /* of what follows, only then: */
    double center_px[2], radius_px, plateau; /* of the bright-field disc; counts per position inside it */
    int64_t n_positions;                     /* good patterns that were read */
    int64_t n_empty, n_marked_patterns;      /* odd ones that were read (input/odd_patterns.h) */
    int64_t n_hot;                           /* pixels, not masked, that are hot */
    int64_t n_dead;                          /* pixels inside the disc, not masked, that count nothing */
} ps_run_seen;

typedef struct {
    ps_recording info;  /* zeros when unreadable */
    int64_t group;      /* index of its optics group; when unreadable, of the group it would be in with the first readable frame's mask */
    char *unreadable;   /* why it cannot be opened; NULL: it can */
    ps_name_list files; /* everything it is read from; none when unreadable */
    char *refused;      /* why it can be opened but must not be reconstructed with its group; NULL: it may */
    ps_run_seen seen;
    int64_t n_own;
    int32_t *
        own; /* [n_own] pixels that are dead, or hot where the job asks for it, in this recording but not in its group's first; ascending */
} ps_run_frame;

/* What some patterns of a group's first readable recording show. */
typedef struct {
    int64_t frame;       /* index of the recording; -1: none was looked at */
    int64_t n_positions; /* that were read */
    int64_t n_marked;    /* pixels, not masked, that hold no count at some of them, but at others */
    int64_t n_hot;       /* pixels, not masked, that are hot at the job's hot_sigma, or clearly so where the job has none */
    bool has_disc;
    ps_disc disc;  /* radius in mrad; in pixels where the pitch is not known */
    char *no_disc; /* why none could be measured; NULL: it was */
} ps_run_inspection;

/* Frames with identical optics, identical pixel mask and, where the optics leave something open, recordings that say the same: what one
 * prepared system serves. */
typedef struct {
    ps_optics optics;
    char *source; /* the optics file's path; NULL: inline in the job */
    char *given;  /* the optics file's or object's text */
    char *used;   /* canonical JSON of what is used */
    char *origin; /* JSON: where each of its values that a recording can tell comes from */
    char *said;   /* what its recordings say of the values that its optics leave open */
    ps_run_inspection look;
    int64_t first; /* once looked at: index of the recording whose dead pixels are the group's and that others are held against, the first
                      that could be read when the output was begun; -1: none */
    uint8_t *bad;  /* [detector_rows, detector_columns] PS_BAD_* bits, 0: good */
    int64_t n_bad_file, n_bad_mask, n_bad_hot, n_bad_dead;
    int64_t n_frames;
    int64_t *frames; /* [n_frames] indices into the series, ascending */
    ps_plan plan;    /* pixels and totals always; frequencies and aliases (and prior) only between open and close */
} ps_run_group;

typedef struct {
    ps_series series;
    ps_run_frame *frames; /* [series.n_items] */
    int64_t n_unreadable;
    int64_t n_groups;
    ps_run_group *groups; /* [n_groups], by their first frame */
    int64_t scan_rows, scan_columns, detector_rows, detector_columns;
    ps_dtype dtype;
    int64_t upsampling; /* of all groups: given, or the largest that any optics needs */
    int64_t image_rows, image_columns;
    double image_step_A[2];
    ps_optics_rounding moved; /* by rounding, at most, of all frames' optics; 0: nothing was */
    int64_t n_warnings;
    char **warnings; /* [n_warnings] what a user should know before starting */
} ps_run_plan;

/* Collective; before a plan is built. Shares out among the ranks the preflight of recordings (input/preflight.h). What does not pass is
 * looked at again by each rank that opens it, and is unreadable then. */
ps_code ps_run_plan_preflight(const ps_cluster *cluster, const ps_job *job, ps_error *error);

/* job: a reconstruct job. Opens every recording's headers; counts are read only where optics leave open what the disc in a mean pattern
 * tells. A recording that cannot be opened is recorded in its frame
 * and only fails the call (PS_E_INPUT) when none can. PS_E_JOB or PS_E_INPUT for anything that makes the whole series impossible: frames
 * whose scan, detector or dtype differ (all are listed), optics that cannot be used, no active pixel, too many aliases. On error
 * *plan is empty. Owned by the caller: ps_run_plan_free. */
ps_code ps_run_plan_build(const ps_job *job, ps_run_plan *plan, ps_error *error);
/* The same for going on with an output: what optics leave open is what it says (for groups of which it knew a recording), and recordings
 * that cannot be read now stay in the group they were in. measured may be NULL. Hot pixels: ps_first_patterns. */
ps_code ps_run_plan_build_like(const ps_job *job, const ps_measured *measured, ps_run_plan *plan, ps_error *error);
/* The recordings only, for tasks without optics: no groups, no upsampling, no warnings but those of the series' order. */
ps_code ps_run_plan_open(const ps_job *job, ps_run_plan *plan, ps_error *error);
/* Fills data_bytes of every readable frame's info, which opening recordings leaves out where it takes long. */
ps_code ps_run_plan_find_bytes(const ps_job *job, ps_run_plan *plan, ps_error *error);
void ps_run_plan_free(ps_run_plan *plan);

/* Looks at some patterns of the groups' first recordings and adds warnings where they and the optics do not fit together. */
ps_code ps_run_plan_inspect(const ps_job *job, ps_run_plan *plan, ps_error *error);

/* Looks at some patterns of every readable recording (most > 0: of at most so many, spread over the series, and of each group's first), and
 * fills `seen`, `own` and `refused` of its frame; dead pixels of a group's first recording are entered into the group. Adds warnings: discs
 * that are not where that of the group's first recording is (refused when they are far off), hot and dead pixels, odd patterns.
 *
 * measured: the output that is gone on with, or NULL: then a group's dead pixels are those that it says, whichever recordings can be read
 * now, and what it says of the disc of a recording that cannot be read counts as if it had been seen.
 *
 * Collective where cluster is not NULL: ranks share the recordings, all get the same. The plan must be the same on all. Ends with
 * PS_E_INTERRUPTED when a stop is wanted. Reads up to 4 MiB of each recording, 64 MiB of each group's first, and of all
 * where the job looks for hot pixels. */
ps_code ps_run_plan_survey(const ps_cluster *cluster, const ps_job *job, const ps_measured *measured, ps_run_plan *plan, int64_t most,
                           ps_error *error);
/* As the output records it; n_empty and n_marked_patterns are left 0, they are counted in all patterns. */
ps_frame_seen ps_run_seen_frame(const ps_run_seen *seen);

/* How a job's recordings are to be read (job->keeps_invalid: values as they are). */
ps_reader_options ps_job_reader_options(const ps_job *job);

/* The group's plan with all frequencies and aliases, for ps_backend_ops.system_create; closing drops them again (a series may have hundreds
 * of optics). Opening an open group does nothing. */
ps_code ps_run_group_open(const ps_job *job, ps_run_plan *plan, int64_t group, ps_error *error);
void ps_run_group_close(ps_run_plan *plan, int64_t group);

/* hot: [detector_rows, detector_columns], not 0: hot. Replaces what an earlier call marked, and rebuilds the group's active pixels; the
 * group must be closed. */
ps_code ps_run_group_set_hot(const ps_job *job, ps_run_plan *plan, int64_t group, const uint8_t *hot, ps_error *error);
/* The same for dead pixels: dead: [n] pixels. */
ps_code ps_run_group_set_dead(const ps_job *job, ps_run_plan *plan, int64_t group, const int32_t *dead, int64_t n, ps_error *error);

const char *ps_run_plan_group_name(const ps_run_group *group); /* for messages */
ps_code ps_run_plan_add_warning(ps_run_plan *plan, ps_error *error, const char *format, ...) __attribute__((format(printf, 3, 4)));

enum { PS_MOST_FRAMES_PER_BATCH = 8 }; /* how many at most share one evaluation of the transfer */

#endif
