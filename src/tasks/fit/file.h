/* The output file of a fit: /entry/fit and what every output has. Written by rank 0 when all is known; it is either whole or not there.
 * docs/fit.md is its reference. */
#ifndef PS_TASKS_FIT_FILE_H
#define PS_TASKS_FIT_FILE_H

#include "plan/file_checks.h"
#include "store/new_file.h"
#include "store/provenance.h"
#include "tasks/fit/item.h"

typedef struct {
    const ps_job *job;
    const ps_run_plan *run;
    const ps_file_checks *checks;
    const ps_notes *notes;
    const char *signature; /* what the job and its recordings are: ps_fit_signature */
    int64_t n_items;
    const ps_fit_item *items;        /* [n_items] */
    const ps_fit_pictures *pictures; /* [n_items] */
    const char *device;
} ps_fit_file_spec;

/* Lines "key=value"; malloc'd. */
ps_code ps_fit_signature(const ps_job *job, const ps_run_plan *run, const ps_file_checks *checks, char **text, ps_error *error);
/* Into a file that ps_new_file_begin began; publishes it. */
ps_code ps_fit_file_write(ps_new_file *file, const ps_fit_file_spec *spec, ps_error *error);

#endif
