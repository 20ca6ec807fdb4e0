/* What a histogram job will do and take, for `ptyseries check`: see ps_task. */
#ifndef PS_TASKS_HISTOGRAM_CHECK_H
#define PS_TASKS_HISTOGRAM_CHECK_H

#include "tasks/check.h"

ps_code ps_histogram_check(ps_check_report *report, const ps_check_options *options, ps_error *error);
void ps_histogram_print_check(const ps_check_report *report);
void ps_histogram_add_check(cJSON *root, const ps_check_report *report);

#endif
