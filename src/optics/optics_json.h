/* Optics files. The keys are those of docs/jobs.md; units are part of a key. */
#ifndef PS_OPTICS_OPTICS_JSON_H
#define PS_OPTICS_OPTICS_JSON_H

#include <cJSON.h>

#include "core/json.h"
#include "optics/optics.h"

/* where: what messages call the object (for example "configs/optics/mos2.json"). Unknown keys, wrong types and implausible values are
 * PS_E_JOB with a JSON pointer; both forms of one quantity at once are refused. What is not given and has no default is NAN
 * (ps_optics_missing). */
ps_code ps_optics_from_json(const cJSON *json, const char *where, ps_optics *optics, ps_error *error);
/* The same from a place inside a larger document. */
ps_code ps_optics_read(const ps_json *place, ps_optics *optics, ps_error *error);
/* text: malloc'd copy of the file, may be NULL when not wanted. */
ps_code ps_optics_load(const char *path, ps_optics *optics, char **text, ps_error *error);
/* The optics as used, canonical keys; owned by the caller. */
cJSON *ps_optics_to_json(const ps_optics *optics);

#endif
