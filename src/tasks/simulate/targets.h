/* The files of a simulated series: their names, and that none of them is read. */
#ifndef PS_TASKS_SIMULATE_TARGETS_H
#define PS_TASKS_SIMULATE_TARGETS_H

#include "tasks/simulate/entry.h"
#include "tasks/task.h"

/* Where one frame goes; owned. Data files lie beside the master (master_writer.h). */
typedef struct {
    char *master, *truth, *optics, *directory;
    int64_t n_data; /* data files */
} ps_simulate_paths;

ps_code ps_simulate_paths_of(const ps_job_simulate *job, int64_t frame, ps_simulate_paths *paths, ps_error *error);
void ps_simulate_paths_free(ps_simulate_paths *paths);

/* Rank-local. PS_E_JOB when a file that the run would write, replace or remove is the job or its optics file. */
ps_code ps_simulate_guard(const ps_job *job, ps_error *error);

#endif
