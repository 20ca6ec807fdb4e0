#include "reconstruct/prologue.h"

#include <stdlib.h>
#include <string.h>

#include "reconstruct/prologue_parts.h"

ps_code ps_run_plan_build(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    ps_code code = PS_OK;
    ps_file_masks masks = {0};
    const ps_job_series *series = &job->series;
    memset(plan, 0, sizeof *plan);
    PS_GO(ps_series_build(job->base_directory, (const char *const *)series->files, series->n_files, series->first, series->count,
                          series->stride, &plan->series, error));
    PS_GO(ps_prologue_open_frames(job, plan, &masks, error));
    PS_GO(ps_prologue_form_groups(job, &masks, plan, error));
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

ps_methods ps_job_methods(const ps_job *job) {
    return (job->phase.enabled ? PS_METHOD_PHASE : 0u) | (job->complex_.enabled ? PS_METHOD_COMPLEX : 0u) |
           (job->ssb_enabled ? PS_METHOD_SSB : 0u);
}
