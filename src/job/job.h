/* A job: one JSON file, checked against everything the program knows, before any work starts. docs/jobs.md is its reference. */
#ifndef PS_JOB_JOB_H
#define PS_JOB_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <cJSON.h>

#include "core/error.h"
#include "kernels/backend.h"

typedef enum { PS_TASK_RECONSTRUCT, PS_TASK_SIMULATE, PS_TASK_HISTOGRAM } ps_task;
typedef enum { PS_WEIGHTS_UNIFORM, PS_WEIGHTS_POISSON } ps_weights;
typedef enum { PS_PRECISION_FAST, PS_PRECISION_REFERENCE } ps_precision;

typedef struct {
    char **files; /* [n_files] patterns as given */
    int64_t n_files;
    int64_t scan_rows, scan_columns;                       /* 0: from the file */
    bool scan_shape_override;                              /* the shape holds although the file says another */
    int64_t first, count, stride;                          /* of the ordered series; count -1: all */
    bool by_time;                                          /* order "time" */
    int64_t skip_leading, skip_trailing, flyback, repeats; /* patterns and scan positions, as ps_reader_options says */
    bool serpentine, allow_partial;
    double saturation; /* counts at and above are no counts; 0: as the recording says; INFINITY: all are */
    int64_t channel;   /* of [position, channel, row, column] data, from 1; 0: not said */
    bool mask_from_file;
    char *mask_file;   /* "file.npy" or "file.h5:/dataset", non-zero = bad; NULL: none; absolute */
    double hot_sigma;  /* 0: no search */
    bool verify_whole; /* verify "whole": files are told apart by all of their content, not by samples of it */
} ps_job_series;

typedef struct {
    bool enabled;
    bool automatic;          /* strength "auto" */
    int64_t n_strengths;     /* 1 when automatic */
    ps_strength *strengths;  /* [n_strengths]; unused when automatic */
    double smoothness_inv_A; /* INFINITY: prior 1 */
} ps_job_method;

typedef enum { PS_OPTICS_INLINE, PS_OPTICS_FILE, PS_OPTICS_PER_FRAME } ps_optics_source;

typedef struct {
    ps_optics_source source;
    char *path;  /* file, or the pattern with {stem}; absolute; NULL inline */
    cJSON *json; /* inline object, owned by the job's JSON */
} ps_job_optics;

typedef struct {
    uint64_t seed;
    char *output_master; /* pattern with {frame}: "run/sim_{frame}_master.h5"; absolute */
    int64_t n_frames;
    int64_t scan_rows, scan_columns;
    int64_t detector_rows, detector_columns;
    int64_t object_upsampling;       /* object grid relative to the scan grid; 0: as auto upsampling */
    char object[16];                 /* "crystal" or "random" */
    double lattice_A;                /* crystal: side of the square two-site cell; default 3.9 */
    double lattice_rotation_deg;     /* crystal: of the cell against the scan rows; default 0 */
    double atom_sigma_A;             /* crystal: of the Gaussian atoms; 0: a tenth of lattice_A */
    int64_t n_vacancies;             /* crystal: atoms missing in every frame, chosen by the seed; default 0 */
    double phase_rad, log_amplitude; /* root mean square of the object's phase and of its log-amplitude */
    double dose_per_position;        /* electrons per scan position; 0: no noise, counts rounded from a fixed scale */
    double drift_A[2];               /* per frame */
    double defocus_step_A;           /* added to -C10 per frame */
    bool moving_defect;
    ps_dtype dtype;          /* uint8, uint16, uint32 */
    int64_t frames_per_file; /* positions in one data file; 0: one scan's worth in one file */
} ps_job_simulate;

typedef enum { PS_CENTRE_NONE, PS_CENTRE_MEDIAN, PS_CENTRE_FILE } ps_histogram_centre;

typedef struct {
    int64_t n_bins;
    bool automatic_range;        /* range "auto": from the data */
    double range[2];             /* lowest edge, highest edge; unused when automatic */
    ps_histogram_centre centre;  /* what is subtracted from each pixel first */
    char *centre_file;           /* "file.npy" or "file.h5:/dataset", absolute; NULL unless PS_CENTRE_FILE */
    int64_t rows[2], columns[2]; /* detector region, first and end; end 0: whole detector */
    int64_t stride;              /* every stride-th position of a recording */
    int64_t sample;              /* positions that an automatic range and medians are taken from */
    double saturation;           /* counts at and above are saturated; NAN: as the recording says */
    /* Thresholds of the masks, as ps_mask_rules. */
    double hot_sigma, dead_fraction, noisy_ratio, saturated_fraction;
} ps_job_histogram;

typedef struct {
    ps_task task;
    char *path;           /* of the job file, absolute; NULL: embedded */
    char *base_directory; /* relative paths start here */
    char *text;           /* the file as it was read */
    char *effective_text; /* the JSON after --set, compact: what provenance keeps */
    cJSON *json;
    ps_job_series series;
    ps_job_optics optics;
    int64_t upsampling; /* 0: auto */
    ps_weights weights;
    bool mirrored_probe; /* probe_form "published": P(q-k), for comparison with published packages only */
    bool ssb_enabled;
    ps_ssb_estimator ssb_estimator;
    ps_job_method phase, complex_;
    char *output_file; /* absolute */
    char *backend;     /* "auto", "cpu", "cuda", "cuda:N" */
    ps_precision precision;
    double memory_budget_GiB; /* 0: not given */
    int64_t n_threads;        /* 0: all */
    ps_job_simulate simulate;
    ps_job_histogram histogram;
} ps_job;

/* Reads, applies `settings` ("path.to.key=value", value as JSON or else a string), checks everything that can be known without
 * opening inputs. Errors name the JSON pointer, what was found, what was expected and the nearest valid key. */
ps_code ps_job_load(const char *path, const char *const *settings, int64_t n_settings, ps_job *job, ps_error *error);
/* The same from text; base_directory is where relative paths start. */
ps_code ps_job_parse(const char *text, const char *base_directory, const char *const *settings, int64_t n_settings, ps_job *job,
                     ps_error *error);
void ps_job_free(ps_job *job);

#endif
