/* What only simulate jobs have: their "simulate" entry. docs/jobs.md is its reference. */
#ifndef PS_TASKS_SIMULATE_ENTRY_H
#define PS_TASKS_SIMULATE_ENTRY_H

#include "job/job.h"

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

/* Of a simulate job, which ps_kind_simulate reads. */
const ps_job_simulate *ps_simulate_entry(const ps_job *job);

#endif
