/* A run plan, step by step. */
#include <string.h>

#include "plan/parts.h"

static ps_code open_series(const ps_job *job, const ps_measured *measured, ps_run_plan *plan, ps_file_masks *masks, ps_error *error) {
    memset(plan, 0, sizeof *plan);
    PS_TRY(ps_run_plan_list_series(job, measured, plan, error));
    return ps_run_plan_open_frames(job, plan, masks, error);
}

ps_code ps_run_plan_open(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    ps_file_masks masks = {0};
    ps_code code = open_series(job, NULL, plan, &masks, error);
    ps_run_plan_free_masks(&masks);
    if (code != PS_OK) ps_run_plan_free(plan);
    return code;
}

ps_code ps_run_plan_build(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    return ps_run_plan_build_like(job, NULL, plan, error);
}

ps_code ps_run_plan_build_like(const ps_job *job, const ps_measured *measured, ps_run_plan *plan, ps_error *error) {
    ps_code code = PS_OK;
    ps_file_masks masks = {0};
    PS_GO(open_series(job, measured, plan, &masks, error));
    PS_GO(ps_run_plan_form_groups(job, &masks, measured, plan, error));
    PS_GO(ps_run_plan_complete_optics(job, measured, plan, error));
    PS_GO(ps_run_plan_plan_groups(job, plan, error));
    PS_GO(ps_run_plan_warn(job, plan, error));
done:
    ps_run_plan_free_masks(&masks);
    if (code != PS_OK) ps_run_plan_free(plan);
    return code;
}
