/* A job: one JSON file, checked against everything the program knows, before any work starts. docs/jobs.md is its reference. */
#ifndef PS_JOB_JOB_H
#define PS_JOB_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <cJSON.h>

#include "core/error.h"
#include "core/json.h"
#include "kernels/backend.h"
#include "method/method.h"
#include "optics/round.h"

typedef enum { PS_WEIGHTS_UNIFORM, PS_WEIGHTS_POISSON } ps_weights;
typedef enum { PS_PRECISION_FAST, PS_PRECISION_REFERENCE } ps_precision;
/* How g stays with a frame for what comes after its reduction: auto: exact, where something wants it and memory has room; none: not at all;
 * the others: whole and in that form, or the job is refused. */
typedef enum { PS_JOB_G_AUTO, PS_JOB_G_NONE, PS_JOB_G_EXACT, PS_JOB_G_COMPACT } ps_job_g;

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

typedef enum { PS_OPTICS_INLINE, PS_OPTICS_FILE, PS_OPTICS_PER_FRAME } ps_optics_source;

typedef struct {
    ps_optics_source source;
    char *path;                  /* file, or the pattern with {stem}; absolute; NULL inline */
    ps_optics_rounding rounding; /* of one file per recording */
    cJSON *json;                 /* inline object, owned by the job's JSON, or by `own` */
    cJSON *own;                  /* of an object with "fit": it without that; NULL: there is none. Owned */
    const cJSON *fit; /* its "fit": what is given is where a fit starts; NULL: the optics are used as they are. Owned by the job's JSON */
} ps_job_optics;

/* A file that a task's own entries name: no output may be it. */
typedef struct {
    const char *path;  /* "file" or "file:/dataset", absolute; borrowed from the job's `own` */
    const char *place; /* its JSON pointer, a literal */
} ps_job_input;

enum { PS_MOST_OWN_INPUTS = 4 };

typedef struct ps_job_kind ps_job_kind;

typedef struct {
    const ps_job_kind *kind; /* of the task */
    char *path;              /* of the job file, absolute; NULL: embedded */
    char *base_directory;    /* relative paths start here */
    char *text;              /* the file as it was read */
    char *effective_text;    /* the JSON after --set, compact: what provenance keeps */
    cJSON *json;
    ps_job_series series;
    ps_job_optics optics;
    int64_t upsampling; /* 0: auto */
    ps_weights weights;
    bool mirrored_probe; /* probe_form "published": P(q-k), for comparison with published packages only */
    ps_method_set methods;
    char *output_file;   /* absolute */
    bool measures_drift; /* of the sample, between the images of a series */
    bool aligns;         /* leaves images moved back by it, beside those as they are */
    char *backend;       /* "auto", "cpu", "cuda", "cuda:N" */
    ps_precision precision;
    ps_job_g g_storage;
    double memory_budget_GiB; /* 0: not given */
    int64_t n_threads;        /* 0: all */
    bool unpacks_on_device;   /* recordings go to a backend that unpacks as they are packed; false: as counts */
    bool keeps_invalid;       /* counts are read as they are; false: those that are none (saturated, negative, not finite) are left out */
    bool needs_histograms;    /* of its backend (kernels/histogram.h) */
    void *own;                /* what only this kind of job has; NULL: nothing. The kind's to read and free */
    int64_t n_own_inputs;
    ps_job_input own_inputs[PS_MOST_OWN_INPUTS];
} ps_job;

/* What the parser knows of a task: which entries its jobs have, and how those that no other has are read. One line of the tasks' table
 * (tasks/task.h) begins with it. */
struct ps_job_kind {
    const char *name;           /* as "task" says it */
    const char *const *entries; /* [n_entries] beside $schema, comment and task; of those all tasks share (series, optics, output, compute)
                                   the parser reads the ones that are listed */
    size_t n_entries;
    /* The others, after series and optics and before output and compute. */
    ps_code (*read)(const ps_json *root, ps_job *job, ps_error *error);
    void (*free_own)(void *own); /* NULL: free() does */
    bool has_images;             /* its output is images of a series: "output" may say what is made of their drift */
    bool fits_optics;            /* optics may be an object with "fit", which `read` takes from job->optics.fit */
};

typedef struct {
    const ps_job_kind *const *kinds; /* [n] */
    size_t n;
} ps_job_kinds;

/* kinds: what jobs there are (ps_task_job_kinds); borrowed as long as the job lives.
 * Reads, applies `settings` ("path.to.key=value", value as JSON or else a string), checks everything that can be known without
 * opening inputs. Errors name the JSON pointer, what was found, what was expected and the nearest valid key. */
ps_code ps_job_load(const ps_job_kinds *kinds, const char *path, const char *const *settings, int64_t n_settings, ps_job *job,
                    ps_error *error);
/* The same from text; base_directory is where relative paths start. */
ps_code ps_job_parse(const ps_job_kinds *kinds, const char *text, const char *base_directory, const char *const *settings,
                     int64_t n_settings, ps_job *job, ps_error *error);
void ps_job_free(ps_job *job);

/* What the job's storage of g means for one system. wants_g: something goes through g again after a reduction. */
void ps_job_plan_g(const ps_job *job, bool wants_g, ps_plan_options *options);
/* "auto", "none", "exact", "compact". */
const char *ps_job_g_name(ps_job_g storage);

#endif
