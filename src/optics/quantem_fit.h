/* Fit files of quantem.gpu (ssb-*.json) as optics, with their unit traps. docs/jobs.md lists what is read. */
#ifndef PS_OPTICS_QUANTEM_FIT_H
#define PS_OPTICS_QUANTEM_FIT_H

#include "core/json.h"
#include "optics/optics.h"

bool ps_quantem_fit_recognise(const ps_json *root);
/* PS_E_JOB names the entry that is missing or wrong. */
ps_code ps_quantem_fit_read(const ps_json *root, ps_optics *optics, ps_error *error);

#endif
