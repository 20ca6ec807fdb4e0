/* What a fit takes of a backend's memory. Rank-local. */
#ifndef PS_TASKS_FIT_MEMORY_H
#define PS_TASKS_FIT_MEMORY_H

#include "plan/plan.h"
#include "tasks/fit/entry.h"

typedef struct {
    ps_memory_plan data, picture; /* one frame, from which g is taken; one frame, of which a picture is made */
    size_t band_bytes;            /* g of the bands, which stay beside the picture's */
    size_t peak_bytes;
    bool on_device;
} ps_fit_memory;

/* For the group with the most pixels. budget: of the backend; 0: no limit. PS_E_JOB, with what is needed, when it is too small. */
ps_code ps_fit_memory_plan(const ps_job *job, const ps_run_plan *run, const ps_job_fit *fit, const ps_backend_ops *ops, size_t budget,
                           ps_fit_memory *memory, ps_error *error);

#endif
