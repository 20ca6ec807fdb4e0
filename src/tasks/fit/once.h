/* One fit for another task: the optics of a job whose optics are to be fitted before they are used. */
#ifndef PS_TASKS_FIT_ONCE_H
#define PS_TASKS_FIT_ONCE_H

#include "tasks/fit/item.h"

/* Collective. Fits the optics that the job's recordings and entries make of what is given, on the first usable recording (or the one that
 * fit->frame says), or on the next one where the fit of that was begun PS_FIT_MOST_TRIES times and never ended (tries.h); forget: those
 * counts start anew. On every rank: optics, all values given, canonical JSON (cJSON_Delete). text: what was found, with errors, for the
 * record; malloc'd, on rank 0, NULL elsewhere. PS_E_INPUT when the data do not tell the optics. */
ps_code ps_fit_once(const ps_cluster *cluster, const ps_job *job, const ps_job_fit *fit, bool forget, cJSON **optics, char **text,
                    ps_error *error);

#endif
