/* A recording's counts, as the fit and its pictures want them. Rank-local. */
#ifndef PS_TASKS_FIT_LOAD_H
#define PS_TASKS_FIT_LOAD_H

#include "fit/data.h"
#include "input/loader.h"
#include "plan/plan.h"

/* Where counts come from; borrowed. */
typedef struct {
    const ps_job *job;
    const ps_run_plan *run;
    ps_backend *backend;
    ps_loader *loader;
} ps_fit_source;

/* The system that a frame is loaded into, at U = 1. bad: [detector pixels]. methods: MF alone to take g of it, which goes through g again
 * after its reduction; PHASE for a picture, which does not. Owned by the caller. */
ps_code ps_fit_plan_build(const ps_job *job, const ps_run_plan *run, const ps_optics *optics, const uint8_t *bad, ps_methods methods,
                          ps_plan *plan, ps_error *error);

/* g of up to `most` frequencies of a frame, at the pixels inside the optics' aperture, made wider by margin_mrad where the detector reaches
 * beyond it. */
ps_code ps_fit_load_data(const ps_fit_source *source, int64_t frame, const ps_optics *optics, double margin_mrad, int64_t most,
                         ps_fit_data *data, ps_error *error);
/* The phase method's image of a frame at U = 1; image: [scan_rows, scan_columns] rad. */
ps_code ps_fit_load_phase(const ps_fit_source *source, int64_t frame, const ps_optics *optics, float *image, ps_error *error);

#endif
