/* The simulate task's line of the table. */
#include "tasks/simulate/check.h"
#include "tasks/simulate/run.h"

const ps_task ps_task_simulate = {
    .job = &ps_kind_simulate,
    .run = ps_simulate,
    .check = ps_simulate_check,
    .print = ps_simulate_print_check,
    .add_json = ps_simulate_add_check,
};
