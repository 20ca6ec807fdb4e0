#include "tasks/fit/memory.h"

#include <math.h>

#include "core/text.h"
#include "fit/bands.h"
#include "plan/held_g.h"
#include "plan/memory.h"
#include "tasks/fit/load.h"

static ps_code refuse(const ps_job *job, const ps_backend_question *q, size_t limit, size_t beside, ps_error *error) {
    char all[PS_BYTES_TEXT], frame[PS_BYTES_TEXT], bands[PS_BYTES_TEXT], budget[PS_BYTES_TEXT];
    ps_memory_plan one;
    size_t least;
    PS_TRY(ps_backend_question_ask(q, 0, 1, &one, error));
    PS_TRY(ps_held_g_least(job, q, &least, error));
    return PS_FAIL(
        error, PS_E_JOB,
        "this fit does not fit into memory: it needs at least %s%s (of that one frame %s, g of its bands %s), and its budget is %s. "
        "What helps: a larger budget (/compute/memory_budget_GiB), or fewer frequencies (/fit/frequencies)%s",
        ps_text_bytes((double)(least + beside), all), q->ops->device_count ? " of the device" : "",
        ps_text_bytes((double)one.frame_bytes, frame), ps_text_bytes((double)beside, bands), ps_text_bytes((double)limit, budget),
        ps_held_g_help(job));
}

/* With `beside` bytes taken by others. */
static ps_code plan_frame(const ps_job *job, const ps_backend_question *q, size_t budget, size_t beside, ps_memory_plan *planned,
                          ps_error *error) {
    ps_error reason = {0};
    ps_code code = PS_E_MEMORY;
    if (budget == 0 || budget > beside) code = ps_held_g_ask(job, q, budget ? budget - beside : 0, 1, planned, &reason);
    if (code == PS_E_MEMORY) return refuse(job, q, budget, beside, error);
    return code == PS_OK ? PS_OK : PS_FAIL(error, code, "%s", reason.text);
}

ps_code ps_fit_memory_plan(const ps_job *job, const ps_run_plan *run, const ps_job_fit *fit, const ps_backend_ops *ops, size_t budget,
                           ps_fit_memory *memory, ps_error *error) {
    const ps_run_group *group = &run->groups[ps_run_largest_group(run)];
    ps_plan plans[2] = {0};
    const ps_backend_question data = {ops, &plans[0].desc, PS_METHOD_MF, run->dtype},
                              picture = {ops, &plans[1].desc, PS_METHOD_PHASE, run->dtype};
    ps_code code = PS_OK;
    *memory = (ps_fit_memory){.on_device = ops->device_count != NULL};
    PS_GO(ps_fit_plan_build(job, run, &group->optics, group->bad, data.methods, &plans[0], error));
    PS_GO(ps_fit_plan_build(job, run, &group->optics, group->bad, picture.methods, &plans[1], error));
    memory->band_bytes = ps_fit_bands_bytes(ops, plans[0].desc.n_active, fit->n_frequencies, fit->upsampling);
    PS_GO(plan_frame(job, &data, budget, 0, &memory->data, error));
    PS_GO(plan_frame(job, &picture, budget, memory->band_bytes, &memory->picture, error));
    size_t with_bands = memory->picture.peak_bytes + memory->band_bytes;
    memory->peak_bytes = with_bands > memory->data.peak_bytes ? with_bands : memory->data.peak_bytes;
done:
    for (int i = 0; i < 2; i++) ps_plan_free(&plans[i]);
    return code;
}
