/* What a backend's memory plan is asked again and again for one system. Rank-local. */
#ifndef PS_PLAN_BACKEND_QUESTION_H
#define PS_PLAN_BACKEND_QUESTION_H

#include "kernels/backend.h"

typedef struct {
    const ps_backend_ops *ops;
    const ps_system_desc *desc;
    ps_methods methods;
    ps_dtype dtype;
} ps_backend_question;

/* budget: bytes; 0: no limit. most: frames at once. */
ps_code ps_backend_question_ask(const ps_backend_question *question, size_t budget, int64_t most, ps_memory_plan *plan, ps_error *error);
/* The smallest budget that one frame fits into, to a part in a thousand. */
ps_code ps_backend_question_least(const ps_backend_question *question, size_t *least, ps_error *error);

#endif
