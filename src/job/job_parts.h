/* The parts of a job, each read from its place in the JSON, for the parser and the kinds of jobs. All errors are PS_E_JOB with a JSON
 * pointer. */
#ifndef PS_JOB_JOB_PARTS_H
#define PS_JOB_JOB_PARTS_H

#include "core/json.h"
#include "job/job.h"

/* Applies "path.to.key=value" to the document; creates objects on the way. */
ps_code ps_job_apply_setting(cJSON *json, const char *setting, ps_error *error);

ps_code ps_job_read_series(const ps_json *place, const char *base_directory, ps_job_series *series, ps_error *error);
ps_code ps_job_read_optics(const ps_json *place, const char *base_directory, bool has_recordings, ps_job_optics *optics, ps_error *error);
ps_code ps_job_read_compute(const ps_json *place, ps_job *job, ps_error *error);

/* path: malloc'd, absolute; untouched when the place is absent. */
ps_code ps_job_read_path(const ps_json *place, const char *base_directory, char **path, ps_error *error);

#endif
