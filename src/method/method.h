/* A method of reconstruction: all that the program knows of it. table.h lists the methods, each of which is one file of this folder; job
 * parsing, schema, plan, check, output, resume, view, preview, report and info loop over the list and name none. docs/add-a-method.md says
 * how to add one.
 *
 * Everything here is rank-local. */
#ifndef PS_METHOD_METHOD_H
#define PS_METHOD_METHOD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/json.h"
#include "core/stage.h"
#include "kernels/backend.h"
#include "optics/plan.h"

enum { PS_MOST_METHODS = 16, PS_MOST_METHOD_RESULTS = 8, PS_MOST_METHOD_SCALES = 4 };

/* The axes of a result in the file; the frame is always the first. Images are float, numbers and curves double. */
typedef enum {
    PS_RESULT_NUMBER,      /* [frame] */
    PS_RESULT_CURVE,       /* [frame, curve_strength] */
    PS_RESULT_IMAGE,       /* [frame, row, column] */
    PS_RESULT_IMAGE_SWEEP, /* [frame, strength, row, column] */
} ps_result_axes;

/* One dataset of a method's group. */
typedef struct {
    const char *name;   /* below the method's group */
    const char *former; /* its name in files of format 1, and a soft link to it since; NULL: the same */
    ps_result_axes axes;
    const char *unit, *long_name; /* NULL: none */
    const char *shown_as; /* images: how pictures and their files are called; curves: of a plot; numbers: of a column in the report's table
                             of frames, behind the method's name. NULL: not shown */
} ps_result_desc;

typedef struct ps_method ps_method;

/* Where a method's images go, one after another. The caller fills the functions and puts what they need behind them. */
typedef struct ps_image_sink ps_image_sink;
struct ps_image_sink {
    int64_t n_rooms; /* images that are asked room for before one of them is sent, at most, but of a pair always both; 1 or more */
    /* Room for [image] floats, for an image of that result: strength counts through the method's strengths, 0 without. May wait. */
    ps_code (*room)(ps_image_sink *sink, int result, int64_t strength, float **image, ps_error *error);
    /* The image was asked for: it is there, or on its way (ps_backend_host_wait) where room gave memory of the backend's. */
    ps_code (*send)(ps_image_sink *sink, int result, int64_t strength, float *image, ps_error *error);
    /* It was not made after all. */
    void (*drop)(ps_image_sink *sink, float *image);
};

/* What a job says of one method. */
typedef struct {
    const ps_method *method;
    bool has_strengths;      /* a regularised method: results over strengths, curves, a chosen strength */
    bool automatic;          /* strength "auto" */
    int64_t n_strengths;     /* 1 when automatic; 0 without strengths */
    ps_strength *strengths;  /* [n_strengths], owned by the set; unused when automatic */
    double smoothness_inv_A; /* INFINITY: prior 1 */
    int choice;              /* of a method with alternatives (single side band: ps_ssb_estimator) */
} ps_method_settings;

/* The methods of a job in the table's order, each at most once. */
typedef struct {
    int64_t n;
    ps_method_settings items[PS_MOST_METHODS]; /* [n] */
} ps_method_set;

struct ps_method {
    const char *name;    /* the key in a job's "methods", and the group below /entry */
    const char *schema;  /* JSON schema of its entry; configs/job.schema.json holds the same */
    ps_methods bits;     /* PS_METHOD_* that the backend must be asked for; those of PS_METHODS_PREPARED need N prepared */
    bool has_amplitudes; /* strengths are pairs (amplitude, phase) */
    ps_stage stage;      /* where its time is counted */
    int n_results;
    const ps_result_desc *results; /* [n_results]; the first is an image and the group's signal, other images its auxiliary signals;
                                      with strengths, the first has them as its axis */
    int n_scales;
    const char *const *scales; /* [n_scales] names below /entry/optics_N */
    int n_examples;
    const char *const *examples; /* [n_examples] entries of a job which between them leave every result; tests and bench solve them */

    /* Fills settings but for method; they are zeros with smoothness_inv_A = INFINITY before. PS_E_JOB with the JSON pointer. */
    ps_code (*parse)(const ps_json *place, ps_method_settings *settings, ps_error *error);
    /* Whether this job's method leaves that result. NULL: every one. */
    bool (*leaves)(const ps_method_settings *settings, int result);
    /* What it asks of the plan. NULL: nothing. */
    void (*plan)(const ps_method_settings *settings, ps_plan_options *options);
    /* What follows "NAME: " in a line for people, such as "strength 0.1, 0.3". */
    void (*describe)(const ps_method_settings *settings, FILE *out);
    /* Lines "method.NAME.key=value": all that changes its results. */
    void (*fingerprint)(const ps_method_settings *settings, FILE *out);
    /* See ps_method_solve_to. */
    ps_code (*solve)(const ps_method_settings *settings, ps_frame *frame, double n_data, ps_image_sink *sink, void *const *values,
                     ps_error *error);
    /* values: [n_scales] of a prepared system. NULL without scales. */
    ps_code (*read_scales)(ps_system *system, double *values, ps_error *error);
    /* Whether its images take time for every active pixel, not only for every frequency. NULL: no. */
    bool (*images_every_pixel)(const ps_method_settings *settings);
    /* Whether it goes through g again after the reduction. NULL: no. */
    bool (*wants_g)(const ps_method_settings *settings);
};

/* ---- the table ---- */

extern const ps_method *const ps_method_table[]; /* [ps_n_methods] */
extern const int ps_n_methods;

/* ---- one method of a job ---- */

/* An entry as a job has it, such as one of method->examples, in a set of its own. PS_E_JOB; owned by the caller: ps_method_set_free. */
ps_code ps_method_parse(const ps_method *method, const char *entry, ps_method_set *set, ps_error *error);

bool ps_method_leaves(const ps_method_settings *settings, int result);
/* Points of the method's curves: its strengths, or the grid of an automatic one; 0 without strengths. */
int64_t ps_method_curve_points(const ps_method_settings *settings);
/* strengths: [ps_method_curve_points] */
void ps_method_curve_strengths(const ps_method_settings *settings, ps_strength *strengths);
/* Elements of one frame's part of a result; 0: it leaves none. */
int64_t ps_method_result_elements(const ps_method_settings *settings, int result, int64_t image_pixels);
bool ps_result_is_image(const ps_result_desc *result);
size_t ps_result_element_bytes(const ps_result_desc *result);

/* values: [method->n_results], host, owned by the caller: float for images, double else, each of ps_method_result_elements; NULL for
 * what the method does not leave. n_data: complex values of the full plane that were fitted, active pixels times scan frequencies but
 * zero. The frame must be reduced. docs/physics.md sections 5 and 6. */
ps_code ps_method_solve(const ps_method_settings *settings, ps_frame *frame, double n_data, void *const *values, ps_error *error);
/* The same with images sent to the sink as they are made, each once, in any order; values: of images unused. On an error some were sent. */
ps_code ps_method_solve_to(const ps_method_settings *settings, ps_frame *frame, double n_data, ps_image_sink *sink, void *const *values,
                           ps_error *error);
/* For methods with one image: asks for room, lets `make` fill it and sends it. make: image [image] floats. */
typedef ps_code (*ps_image_make)(ps_frame *frame, const ps_method_settings *settings, float *image, void *const *values, ps_error *error);
ps_code ps_method_send_one(const ps_method_settings *settings, ps_frame *frame, ps_image_sink *sink, int result, ps_image_make make,
                           void *const *values, ps_error *error);

/* ---- all methods of a job ---- */

/* The job's "methods" entry. On error the set is empty. Owned by the caller: ps_method_set_free. */
ps_code ps_method_set_parse(const ps_json *place, ps_method_set *set, ps_error *error);
void ps_method_set_free(ps_method_set *set);
/* PS_METHOD_* bits of all. */
ps_methods ps_method_set_bits(const ps_method_set *set);
/* Whether any needs N prepared (docs/physics.md section 4). */
bool ps_method_set_needs_normal(const ps_method_set *set);
/* Whether any goes through g again after the reduction. */
bool ps_method_set_wants_g(const ps_method_set *set);
/* What all of them ask of the plan; priors of methods that are not asked for are 1. */
void ps_method_set_plan(const ps_method_set *set, ps_plan_options *options);
/* Images of one frame: of all methods, strengths and parts. */
int64_t ps_method_set_images(const ps_method_set *set);

/* Host memory for the results of one frame, which serves one frame after another. */
typedef struct {
    const ps_method_set *set;                              /* borrowed */
    void *values[PS_MOST_METHODS][PS_MOST_METHOD_RESULTS]; /* of set->items[i], as ps_method_solve has them */
} ps_method_results;

/* On error *results is empty. Owned by the caller: ps_method_results_free. */
ps_code ps_method_results_create(const ps_method_set *set, int64_t image_pixels, ps_method_results *results, ps_error *error);
/* The same without the images, which go to a sink: their values are NULL. */
ps_code ps_method_results_create_numbers(const ps_method_set *set, ps_method_results *results, ps_error *error);
void ps_method_results_free(ps_method_results *results);

#endif
