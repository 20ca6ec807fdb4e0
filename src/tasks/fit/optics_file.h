/* The optics that a fit found, as a file that jobs read. Rank-local. */
#ifndef PS_TASKS_FIT_OPTICS_FILE_H
#define PS_TASKS_FIT_OPTICS_FILE_H

#include "tasks/fit/item.h"

/* Where the optics of a fit go; malloc'd. n_groups > 1: without {stem} in the job's name the group's number is put into it. */
ps_code ps_fit_optics_path(const ps_job *job, const ps_run_plan *run, int64_t group, int64_t frame, char **path, ps_error *error);
/* PS_E_ARGUMENT when something stands there that is no optics file of an earlier fit, or when it is and overwrite is false. */
ps_code ps_fit_optics_check(const char *path, bool overwrite, ps_error *error);
/* Complete and on disk under its name, or not there. */
ps_code ps_fit_optics_write(const char *path, const ps_job *job, const ps_fit_item *item, ps_error *error);
/* The text that goes into it; malloc'd. */
ps_code ps_fit_optics_text(const ps_job *job, const ps_fit_item *item, char **text, ps_error *error);

#endif
