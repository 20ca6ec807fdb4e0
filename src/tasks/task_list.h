/* The one list of tasks. What stands here is built; it is listed in messages, in the schema of jobs, and looked through for outputs. */
#ifndef PS_TASKS_TASK_LIST_H
#define PS_TASKS_TASK_LIST_H

#include "tasks/task.h"

#define PS_TASK_LIST(X)    \
    X(ps_task_reconstruct) \
    X(ps_task_histogram)   \
    X(ps_task_simulate)

/* Names that jobs may not ask for yet, and what they are told. */
#define PS_PLANNED_TASKS {"fit", "fitting optics is not part of this version"},

#define X(task) extern const ps_task task;
PS_TASK_LIST(X)
#undef X

#endif
