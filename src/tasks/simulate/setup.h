/* What a simulate job comes to, before any work: optics, grids, the scale of counts, and how memory is divided. */
#ifndef PS_TASKS_SIMULATE_SETUP_H
#define PS_TASKS_SIMULATE_SETUP_H

#include <stdbool.h>

#include "job/job.h"
#include "optics/optics.h"
#include "tasks/simulate/specimen.h"

/* How counts are turned from pixel order into position order (turning.h). */
typedef struct {
    int64_t pixels_per_group;    /* scattered together */
    int64_t positions_per_block; /* written together */
    bool in_memory;              /* all counts of a frame are held; otherwise in a temporary file */
    int64_t bytes;               /* at peak, everything included */
} ps_simulate_memory;

typedef struct {
    const ps_job_simulate *job; /* borrowed */
    const char *job_text;       /* borrowed; kept in every master */
    const char *science;        /* the same; what ps_simulate_fingerprint_text gives, NULL before that */
    ps_optics optics;           /* of frame 0 */
    int64_t n_positions, n_pixels;
    int64_t upsampling;
    ps_fine_grid grid;
    ps_lattice lattice;     /* crystal, else zeros */
    double band_inv_A;      /* of a random object */
    double counts_per_unit; /* counts for intensity 1, the vacuum's where A = 1 */
    int n_threads;
    ps_simulate_memory memory;
} ps_simulate_setup;

/* Called now and then with the fraction of a step that is done; an error that tell returns ends the step. */
typedef struct {
    ps_code (*tell)(void *context, double fraction, ps_error *error);
    void *context;
} ps_simulate_watch;

/* Rank-local. Everything impossible is PS_E_JOB. available_bytes: what this rank may take; a budget beyond it, given or not, is lowered to
 * it. job must outlive setup. */
ps_code ps_simulate_setup_build(const ps_job *job, uint64_t available_bytes, ps_simulate_setup *setup, ps_error *error);

/* Positions that are encoded together before they are written. */
int64_t ps_simulate_slots(const ps_simulate_setup *setup);

/* The optics of one frame: defocus changes by defocus_step_A. */
ps_optics ps_simulate_frame_optics(const ps_simulate_setup *setup, int64_t frame);

/* Sum of A^2 over the detector's pixel lattice, continued past its edges: vacuum intensity of the whole beam. */
ps_code ps_simulate_vacuum_sum(const ps_optics *optics, double *sum, ps_error *error);

/* What a simulate job will do, for `ptyseries check`. */
typedef struct {
    int64_t upsampling; /* object grid relative to the scan grid */
    int64_t object_rows, object_columns;
    double object_step_A[2];
    double lattice_A[2][2];  /* crystal: the two cell vectors (row, column) used, fitted to the scan area; else 0 */
    int64_t n_atoms;         /* crystal, without defects */
    int64_t bytes_per_frame; /* of raw counts, before compression */
    int64_t memory_bytes;    /* at peak per rank, inside the budget */
    int64_t scratch_bytes;   /* temporary file beside the output per rank; 0: counts fit in memory */
} ps_simulate_plan;

/* Rank-local. PS_E_JOB says what cannot be simulated and why. */
ps_code ps_simulate_plan_build(const ps_job *job, uint64_t available_bytes, ps_simulate_plan *plan, ps_error *error);

#endif
