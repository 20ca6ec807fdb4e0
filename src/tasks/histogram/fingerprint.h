/* What makes two histogram jobs the same. */
#ifndef PS_TASKS_HISTOGRAM_FINGERPRINT_H
#define PS_TASKS_HISTOGRAM_FINGERPRINT_H

#include "tasks/histogram/plan.h"

/* Rank-local: lines "key=value"; malloc'd. */
ps_code ps_histogram_fingerprint(const ps_histogram_plan *plan, char **text, ps_error *error);
/* As earlier versions wrote it, with the named files' places and times in the place of everybody's content. */
ps_code ps_histogram_fingerprint_of_names(const ps_histogram_plan *plan, char **text, ps_error *error);
/* The line of a frame whose recording cannot be read is PS_HISTOGRAM_UNREADABLE behind the "=". */
#define PS_HISTOGRAM_UNREADABLE "unreadable"

#endif
