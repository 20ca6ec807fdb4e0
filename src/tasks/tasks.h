/* The table of tasks. */
#ifndef PS_TASKS_TASKS_H
#define PS_TASKS_TASKS_H

#include "tasks/task.h"

typedef struct {
    const ps_task *const *tasks; /* [n] */
    int n;
} ps_task_table;

const ps_task_table *ps_tasks(void); /* all that are built */
/* The same as the parser of jobs wants them. */
const ps_job_kinds *ps_task_job_kinds(void);

/* The task of a job that was read with ps_task_job_kinds. */
const ps_task *ps_task_of_job(const ps_job *job);
/* The task that wrote the file at path; NULL: it is no output of this program. */
const ps_task *ps_task_of_output(const char *path);

#endif
