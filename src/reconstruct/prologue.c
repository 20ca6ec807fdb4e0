#include "reconstruct/prologue.h"

#include <stdlib.h>
#include <string.h>

#include "reconstruct/prologue_parts.h"

static ps_code open_series(const ps_job *job, ps_run_plan *plan, ps_file_masks *masks, ps_error *error) {
    memset(plan, 0, sizeof *plan);
    PS_TRY(ps_prologue_list_series(job, plan, error));
    return ps_prologue_open_frames(job, plan, masks, error);
}

ps_code ps_run_plan_open(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    ps_file_masks masks = {0};
    ps_code code = open_series(job, plan, &masks, error);
    ps_prologue_free_masks(&masks);
    if (code != PS_OK) ps_run_plan_free(plan);
    return code;
}

ps_code ps_run_plan_build(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    ps_code code = PS_OK;
    ps_file_masks masks = {0};
    PS_GO(open_series(job, plan, &masks, error));
    PS_GO(ps_prologue_form_groups(job, &masks, plan, error));
    PS_GO(ps_prologue_complete_optics(job, plan, error));
    PS_GO(ps_prologue_plan_groups(job, plan, error));
    PS_GO(ps_prologue_warn(job, plan, error));
done:
    ps_prologue_free_masks(&masks);
    if (code != PS_OK) ps_run_plan_free(plan);
    return code;
}

void ps_run_plan_free(ps_run_plan *plan) {
    for (int64_t i = 0; plan->frames && i < plan->series.n_items; i++) free(plan->frames[i].unreadable);
    for (int64_t i = 0; i < plan->n_groups; i++) {
        ps_run_group *group = &plan->groups[i];
        free(group->source);
        free(group->given);
        free(group->used);
        free(group->origin);
        free(group->look.no_disc);
        free(group->bad);
        free(group->frames);
        ps_plan_free(&group->plan);
    }
    for (int64_t i = 0; i < plan->n_warnings; i++) free(plan->warnings[i]);
    free(plan->frames);
    free(plan->groups);
    free(plan->warnings);
    ps_series_free(&plan->series);
    memset(plan, 0, sizeof *plan);
}

/* The group with the most pixels decides: frequencies are alike in all groups, and aliases differ little. */
static int64_t largest_group(const ps_run_plan *plan) {
    int64_t largest = 0;
    for (int64_t i = 1; i < plan->n_groups; i++)
        if (plan->groups[i].plan.desc.n_active > plan->groups[largest].plan.desc.n_active) largest = i;
    return largest;
}

ps_code ps_run_plan_memory(const ps_job *job, ps_run_plan *plan, const ps_backend_ops *ops, ps_memory_plan *memory, ps_error *error) {
    int64_t at = largest_group(plan);
    bool was_open = plan->groups[at].plan.desc.frequencies != NULL;
    size_t budget = (size_t)(job->memory_budget_GiB * 1024.0 * 1024.0 * 1024.0);
    PS_TRY(ps_run_group_open(job, plan, at, error));
    ps_code code = ps_backend_memory_plan(ops, &plan->groups[at].plan.desc, ps_job_methods(job), plan->dtype, budget,
                                          PS_MOST_FRAMES_PER_BATCH, memory, error);
    if (!was_open) ps_run_group_close(plan, at);
    return code;
}

ps_reader_options ps_job_reader_options(const ps_job *job) {
    const ps_job_series *series = &job->series;
    return (ps_reader_options){.scan_rows = series->scan_rows,
                               .scan_columns = series->scan_columns,
                               .skip_leading = series->skip_leading,
                               .skip_trailing = series->skip_trailing,
                               .flyback = series->flyback,
                               .repeats = series->repeats,
                               .serpentine = series->serpentine,
                               .allow_partial = series->allow_partial,
                               .channel = series->channel,
                               .saturation = series->saturation,
                               .exclude_invalid = job->task == PS_TASK_RECONSTRUCT};
}

ps_methods ps_job_methods(const ps_job *job) {
    return (job->phase.enabled ? PS_METHOD_PHASE : 0u) | (job->complex_.enabled ? PS_METHOD_COMPLEX : 0u) |
           (job->ssb_enabled ? PS_METHOD_SSB : 0u);
}
