#include "plan/held_g.h"

#include <stdio.h>

#include "core/text.h"

bool ps_held_g_is_required(const ps_job *job) {
    return job->g_storage == PS_JOB_G_EXACT || job->g_storage == PS_JOB_G_COMPACT;
}

ps_code ps_held_g_ask(const ps_job *job, const ps_backend_question *question, size_t budget, int64_t most, ps_memory_plan *plan,
                      ps_error *error) {
    PS_TRY(ps_backend_question_ask(question, budget, most, plan, error));
    if (!ps_held_g_is_required(job)) return PS_OK;
    for (int64_t n = plan->frames_per_batch - 1; !plan->holds_g && n >= 1; n--)
        PS_TRY(ps_backend_question_ask(question, budget, n, plan, error));
    if (plan->holds_g) return PS_OK;
    char bytes[PS_BYTES_TEXT];
    return PS_FAIL(error, PS_E_MEMORY, "there is no room for g of one frame, %s", ps_text_bytes((double)plan->g_bytes, bytes));
}

ps_code ps_held_g_least(const ps_job *job, const ps_backend_question *question, size_t *least, ps_error *error) {
    ps_memory_plan plan;
    if (!ps_held_g_is_required(job)) return ps_backend_question_least(question, least, error);
    PS_TRY(ps_held_g_ask(job, question, 0, 1, &plan, error));
    *least = plan.peak_bytes;
    return PS_OK;
}

const char *ps_held_g_help(const ps_job *job) {
    if (job->g_storage == PS_JOB_G_EXACT)
        return ", or /compute/g_storage \"auto\" (found \"exact\"), which holds g only where there is room";
    return job->g_storage == PS_JOB_G_COMPACT
               ? ", or /compute/g_storage \"auto\" (found \"compact\"), which holds g only where there is room"
               : "";
}

void ps_held_g_describe(const ps_job *job, const ps_memory_plan *plan, char text[PS_HELD_G_TEXT]) {
    char bytes[PS_BYTES_TEXT];
    const char *name = ps_job_g_name(job->g_storage);
    ps_text_bytes((double)plan->g_bytes, bytes);
    if (!plan->holds_g)
        snprintf(text, PS_HELD_G_TEXT, "g goes through in pieces and is not held, %s a frame if it were (g_storage %s)", bytes, name);
    else if (job->g_storage == PS_JOB_G_COMPACT)
        snprintf(
            text, PS_HELD_G_TEXT,
            "g of a frame is held whole and compact, %s (g_storage %s): phases differ from those of exact g by less than a thousandth of "
            "their span",
            bytes, name);
    else
        snprintf(text, PS_HELD_G_TEXT, "g of a frame is held whole and exact, %s (g_storage %s)", bytes, name);
}
