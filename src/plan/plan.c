#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "plan/parts.h"

void ps_run_plan_free(ps_run_plan *plan) {
    for (int64_t i = 0; plan->frames && i < plan->series.n_items; i++) {
        free(plan->frames[i].unreadable);
        ps_name_list_free(&plan->frames[i].files);
        free(plan->frames[i].refused);
        free(plan->frames[i].own);
    }
    for (int64_t i = 0; i < plan->n_groups; i++) {
        ps_run_group *group = &plan->groups[i];
        free(group->source);
        free(group->given);
        free(group->used);
        free(group->origin);
        free(group->said);
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

ps_reader_options ps_job_reader_options(const ps_job *job) {
    const ps_job_series *series = &job->series;
    return (ps_reader_options){.scan_rows = series->scan_rows,
                               .scan_columns = series->scan_columns,
                               .shape_override = series->scan_shape_override,
                               .skip_leading = series->skip_leading,
                               .skip_trailing = series->skip_trailing,
                               .flyback = series->flyback,
                               .repeats = series->repeats,
                               .serpentine = series->serpentine,
                               .allow_partial = series->allow_partial,
                               .channel = series->channel,
                               .saturation = series->saturation,
                               .exclude_invalid = !job->keeps_invalid};
}
