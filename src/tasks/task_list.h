/* The one list of tasks. What stands here is built: it is named in messages, in the schema of jobs, and looked through for outputs. For
 * each NAME there is a ps_kind_NAME (its jobs: tasks/NAME/entry.c) and a ps_task_NAME (all of it: tasks/NAME/task.c). */
#ifndef PS_TASKS_TASK_LIST_H
#define PS_TASKS_TASK_LIST_H

#include "job/job.h"

#define PS_TASK_LIST(X) \
    X(reconstruct)      \
    X(histogram)        \
    X(simulate)

/* Names that jobs may not ask for yet, and what they are told. */
#define PS_PLANNED_TASKS {"fit", "fitting optics is not part of this version"},

#define X(name) extern const ps_job_kind ps_kind_##name;
PS_TASK_LIST(X)
#undef X

#endif
