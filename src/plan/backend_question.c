#include "plan/backend_question.h"

ps_code ps_backend_question_ask(const ps_backend_question *question, size_t budget, int64_t most, ps_memory_plan *plan, ps_error *error) {
    return ps_backend_memory_plan(question->ops, question->desc, question->methods, question->dtype, budget, most, plan, error);
}

ps_code ps_backend_question_least(const ps_backend_question *question, size_t *least, ps_error *error) {
    ps_memory_plan plan;
    PS_TRY(ps_backend_question_ask(question, 0, 1, &plan, error));
    size_t good = plan.peak_bytes, bad = plan.system_bytes + plan.frame_bytes;
    while (good > bad && good - bad > good / 1000 + 4096) {
        size_t middle = bad + (good - bad) / 2;
        *(ps_backend_question_ask(question, middle, 1, &plan, NULL) == PS_OK ? &good : &bad) = middle;
    }
    *least = good;
    return PS_OK;
}
