/* Small problems that every law of tests/contract is tried on: optics, a plan, made-up counts, and a run through a backend. */
#ifndef PS_TESTS_CONTRACT_PROBLEM_H
#define PS_TESTS_CONTRACT_PROBLEM_H

#include "contract/backends.h"
#include "optics/plan.h"

#define REQUIRE_OK(expression)                                                  \
    do {                                                                        \
        ps_error error = {0};                                                   \
        if ((expression) != PS_OK) fail_msg("%s: %s", #expression, error.text); \
    } while (0)

enum { PROBLEM_ALL = PS_METHODS_ALL, PROBLEM_STRENGTHS = 5 };

/* Scan and detector sizes and upsampling of one problem. */
typedef struct {
    const char *name;
    int64_t rows, columns, detector_rows, detector_columns, upsampling;
} problem_size;

/* One of each kind: even, prime, one row, one column, no upsampling, two positions, many pixels, few, large primes, and lengths that
 * transforms of their own take. */
enum { PROBLEM_SIZES = 16, PROBLEM_USUAL = 1, PROBLEM_NO_UPSAMPLING = 4, PROBLEM_MANY_PIXELS = 6 };
extern const problem_size problem_sizes[PROBLEM_SIZES];

typedef struct {
    ps_optics optics;
    ps_plan plan;
    int64_t n_positions, n_pixels; /* of the scan, of the detector */
    uint16_t *counts;              /* [n_positions, n_pixels] */
} problem;

/* Aberrations up to third order, rectangular pixels, rotated; counts around 100 a pixel with weak structure, from the seed: they fit every
 * element type. */
void problem_create(const problem_size *size, unsigned seed, problem *p);
void problem_free(problem *p);
void problem_counts(const problem *p, unsigned seed, uint16_t *counts); /* other counts for the same optics */
extern const ps_strength problem_strengths[PROBLEM_STRENGTHS];          /* of several ratios */

/* Everything a reduced frame gives, in one array of doubles, so that two runs are compared at once: part after part, each compared relative
 * to its own largest entry. */
enum { PROBLEM_PARTS = 15 };
typedef struct {
    int64_t n, n_parts;
    double *values;
    int64_t end[PROBLEM_PARTS];
    const char *name[PROBLEM_PARTS];
} problem_answer;

/* Backend and system of a problem, prepared with weights (NULL: uniform). */
typedef struct {
    const ps_backend_ops *ops;
    ps_backend *backend;
    ps_system *system;
    const problem *problem;
} problem_run;

void problem_open(const contract_backend *under_test, const problem *p, const ps_backend_options *options, const double *weights,
                  problem_run *run);
void problem_close(problem_run *run);
/* A problem and its run on the backend that is a test's state: how most tests begin and end. */
typedef struct {
    const contract_backend *b;
    problem p;
    problem_run run;
} trial;

void trial_begin(void **state, const problem_size *size, unsigned seed, trial *t);
void trial_end(trial *t);

/* A frame with all counts put at once; destroyed by the caller. */
ps_frame *problem_frame(const problem_run *run, ps_dtype dtype, const void *counts);
double problem_dose(const problem_run *run, ps_frame *frame);
/* Reduces a frame at its dose, which is returned. */
double problem_reduce(const problem_run *run, ps_frame *frame);
int64_t problem_fine(const problem *p); /* values of an image */
/* Solves, images and right sides of a reduced frame. */
void problem_ask(const problem_run *run, ps_frame *frame, problem_answer *answer);
/* All of the above for one frame. */
void problem_answer_of(const contract_backend *under_test, const problem *p, const ps_backend_options *options, problem_answer *answer);
/* Fails the test unless found is expected to the last bit (exact), or within the tolerance of images. */
void problem_require_same(const contract_backend *b, const char *where, const problem_answer *found, const problem_answer *expected,
                          bool exact);
/* The same of what a reduced frame answers, to the last bit. */
void trial_require(const trial *t, ps_frame *frame, const char *where, const problem_answer *expected);
/* Fails the test unless a call ended with `code` and a message that says `text`; clears error. */
void problem_require_refused(ps_code found, ps_error *error, ps_code code, const char *text);
void problem_answer_free(problem_answer *answer);

#endif
