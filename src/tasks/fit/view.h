/* A fit's output, looked at. */
#ifndef PS_TASKS_FIT_VIEW_H
#define PS_TASKS_FIT_VIEW_H

#include "core/error.h"

/* Prints what the file at path holds, for `ptyseries info`. */
ps_code ps_fit_print_info(const char *path, ps_error *error);

#endif
