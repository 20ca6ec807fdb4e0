/* What a simulate job will do and take, for `ptyseries check`: see ps_task. */
#ifndef PS_TASKS_SIMULATE_CHECK_H
#define PS_TASKS_SIMULATE_CHECK_H

#include "tasks/check.h"

ps_code ps_simulate_check(ps_check_report *report, const ps_check_options *options, ps_error *error);
void ps_simulate_print_check(const ps_check_report *report);
void ps_simulate_add_check(cJSON *root, const ps_check_report *report);

#endif
