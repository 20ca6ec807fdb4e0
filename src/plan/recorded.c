#include "plan/recorded.h"

#include <stdlib.h>

#include "input/adapters/bad_pixels.h"
#include "plan/parts.h"

/* NULL: the output does not say what was seen in the group's recordings. */
static const ps_measured_optics *known_of(const ps_measured *measured, const ps_run_plan *plan, const ps_run_group *group) {
    const ps_measured_optics *known = ps_measured_of_frame(measured, group->frames[0]);
    bool fits = known && measured->detector_rows == plan->detector_rows && measured->detector_columns == plan->detector_columns;
    return fits && measured->seen && known->first >= 0 && known->first < plan->series.n_items ? known : NULL;
}

void ps_recorded_firsts(const ps_measured *measured, ps_run_plan *plan) {
    for (int64_t g = 0; g < plan->n_groups; g++) {
        ps_run_group *group = &plan->groups[g];
        const ps_measured_optics *known = known_of(measured, plan, group);
        bool stands = known && plan->frames[known->first].group == g;
        group->first = stands ? known->first : ps_run_plan_first_readable(plan, group);
    }
}

void ps_recorded_seen(const ps_measured *measured, ps_run_plan *plan) {
    for (int64_t i = 0; measured && measured->seen && i < plan->series.n_items && i < measured->n_frames; i++) {
        const ps_frame_seen *before = &measured->seen[i];
        if (!plan->frames[i].unreadable) continue;
        plan->frames[i].seen = (ps_run_seen){.has_disc = before->disc_radius_px > 0.0,
                                             .center_px = {before->disc_center_px[0], before->disc_center_px[1]},
                                             .radius_px = before->disc_radius_px,
                                             .n_hot = before->n_hot,
                                             .n_dead = before->n_dead};
    }
}

ps_code ps_recorded_dead(const ps_job *job, const ps_measured *measured, ps_run_plan *plan, int64_t group, bool *recorded,
                         ps_error *error) {
    const ps_measured_optics *known = known_of(measured, plan, &plan->groups[group]);
    int32_t n = 0, n_pixels = (int32_t)(plan->detector_rows * plan->detector_columns);
    *recorded = known != NULL;
    if (!known) return PS_OK;
    int32_t *dead = malloc((size_t)(n_pixels + 1) * sizeof *dead);
    if (!dead) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a list of pixels");
    for (int32_t i = 0; i < n_pixels; i++)
        if (known->bad[i] & PS_BAD_DEAD) dead[n++] = i;
    ps_code code = n > 0 ? ps_run_group_set_dead(job, plan, group, dead, n, error) : PS_OK;
    free(dead);
    return code;
}
