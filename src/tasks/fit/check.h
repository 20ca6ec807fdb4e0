/* What a fit job will do and take, for `ptyseries check`: see ps_task. */
#ifndef PS_TASKS_FIT_CHECK_H
#define PS_TASKS_FIT_CHECK_H

#include "tasks/check.h"

ps_code ps_fit_check(ps_check_report *report, const ps_check_options *options, ps_error *error);
void ps_fit_print_check(const ps_check_report *report);
void ps_fit_add_check(cJSON *root, const ps_check_report *report);

#endif
