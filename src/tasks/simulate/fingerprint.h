/* What decides a simulated frame's content, as text: kept in every master, and compared when a series is resumed. */
#ifndef PS_TASKS_SIMULATE_FINGERPRINT_H
#define PS_TASKS_SIMULATE_FINGERPRINT_H

#include "tasks/simulate/setup.h"

/* JSON, one entry a line; the number of frames and names of files are no part of it. malloc'd. */
ps_code ps_simulate_fingerprint_text(const ps_simulate_setup *setup, char **text, ps_error *error);

/* PS_E_JOB with the first difference when the master has another fingerprint, PS_E_INPUT when it is no simulated master. */
ps_code ps_simulate_fingerprint_compare(const char *master_path, const char *text, ps_error *error);

#endif
