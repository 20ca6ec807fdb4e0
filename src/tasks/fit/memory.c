#include "tasks/fit/memory.h"

#include <math.h>

#include "core/text.h"
#include "fit/bands.h"
#include "tasks/fit/load.h"

static const ps_run_group *largest_group(const ps_run_plan *run) {
    const ps_run_group *largest = &run->groups[0];
    for (int64_t i = 1; i < run->n_groups; i++)
        if (run->groups[i].plan.desc.n_active > largest->plan.desc.n_active) largest = &run->groups[i];
    return largest;
}

/* One frame of the largest group, and what the plan is asked for. */
typedef struct {
    const ps_backend_ops *ops;
    const ps_plan *plan;
    ps_dtype dtype;
    size_t budget;
} question;

static ps_code ask(const question *q, ps_methods methods, size_t bytes, ps_memory_plan *planned, ps_error *error) {
    return ps_backend_memory_plan(q->ops, &q->plan->desc, methods, q->dtype, bytes, 1, planned, error);
}

/* The smallest budget that a frame fits into, to a part in a thousand. */
static ps_code find_least(const question *q, ps_methods methods, ps_memory_plan *one, size_t *least, ps_error *error) {
    ps_memory_plan ignored;
    PS_TRY(ask(q, methods, 0, one, error));
    size_t good = one->peak_bytes, bad = one->system_bytes + one->frame_bytes;
    while (good > bad && good - bad > good / 1000 + 4096) {
        size_t middle = bad + (good - bad) / 2;
        *(ask(q, methods, middle, &ignored, NULL) == PS_OK ? &good : &bad) = middle;
    }
    *least = good;
    return PS_OK;
}

static ps_code refuse(const question *q, ps_methods methods, size_t beside, ps_error *error) {
    char all[PS_BYTES_TEXT], frame[PS_BYTES_TEXT], bands[PS_BYTES_TEXT], budget[PS_BYTES_TEXT];
    ps_memory_plan one;
    size_t least;
    PS_TRY(find_least(q, methods, &one, &least, error));
    return PS_FAIL(
        error, PS_E_JOB,
        "this fit does not fit into memory: it needs at least %s%s (of that one frame %s, g of its bands %s), and its budget is %s. "
        "What helps: a larger budget (/compute/memory_budget_GiB), or fewer frequencies (/fit/frequencies)",
        ps_text_bytes((double)(least + beside), all), q->ops->device_count ? " of the device" : "",
        ps_text_bytes((double)one.frame_bytes, frame), ps_text_bytes((double)beside, bands), ps_text_bytes((double)q->budget, budget));
}

/* With `beside` bytes taken by others. */
static ps_code plan_frame(const question *q, ps_methods methods, size_t beside, ps_memory_plan *planned, ps_error *error) {
    ps_error reason = {0};
    ps_code code = PS_E_MEMORY;
    if (q->budget == 0 || q->budget > beside) code = ask(q, methods, q->budget ? q->budget - beside : 0, planned, &reason);
    if (code == PS_E_MEMORY) return refuse(q, methods, beside, error);
    return code == PS_OK ? PS_OK : PS_FAIL(error, code, "%s", reason.text);
}

ps_code ps_fit_memory_plan(const ps_run_plan *run, const ps_job_fit *fit, const ps_backend_ops *ops, size_t budget, ps_fit_memory *memory,
                           ps_error *error) {
    const ps_run_group *group = largest_group(run);
    ps_plan plan = {0};
    const question asked = {ops, &plan, run->dtype, budget};
    ps_code code = PS_OK;
    *memory = (ps_fit_memory){.on_device = ops->device_count != NULL};
    PS_GO(ps_fit_plan_build(run, &group->optics, group->bad, &plan, error));
    memory->band_bytes = ps_fit_bands_bytes(ops, plan.desc.n_active, fit->n_frequencies, fit->upsampling);
    PS_GO(plan_frame(&asked, PS_METHOD_MF, 0, &memory->data, error));
    PS_GO(plan_frame(&asked, PS_METHOD_PHASE, memory->band_bytes, &memory->picture, error));
    size_t with_bands = memory->picture.peak_bytes + memory->band_bytes;
    memory->peak_bytes = with_bands > memory->data.peak_bytes ? with_bands : memory->data.peak_bytes;
done:
    ps_plan_free(&plan);
    return code;
}
