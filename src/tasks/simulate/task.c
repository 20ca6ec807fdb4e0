/* The simulate task's line of the table. */
#include "tasks/simulate/check.h"
#include "tasks/simulate/entry.h"
#include "tasks/simulate/run.h"
#include "tasks/task_list.h"

static const char *const entries[] = {"optics", "compute", "simulate"};

const ps_task ps_task_simulate = {
    .job = {.name = "simulate",
            .entries = entries,
            .n_entries = sizeof entries / sizeof *entries,
            .read = ps_simulate_read_entry,
            .free_own = ps_simulate_free_entry},
    .run = ps_simulate,
    .check = ps_simulate_check,
    .print = ps_simulate_print_check,
    .add_json = ps_simulate_add_check,
};
