/* The second step of the run plan: optics and masks make groups, groups make plans. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "input/adapters/mask.h"
#include "optics/optics_json.h"
#include "plan/parts.h"

/* --- optics --- */

/* A series' one optics is read for the first frame and copied for the others. */
static ps_code copy_optics(const ps_run_group *from, ps_run_group *group, ps_error *error) {
    group->optics = from->optics;
    group->look.frame = -1;
    group->source = from->source ? strdup(from->source) : NULL;
    group->given = strdup(from->given);
    group->used = strdup(from->used);
    if (group->given && group->used && (group->source || !from->source)) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics");
}

/* As the job rounds them; what is open stays open. */
static ps_code round_optics(const ps_job *job, ps_run_plan *plan, ps_run_group *group, ps_error *error) {
    ps_optics_rounding moved;
    if (!(job->optics.rounding.aberrations_rad > 0.0)) return PS_OK;
    const char *missing = isnan(group->optics.voltage_V) ? "voltage_V" : isnan(group->optics.semiangle_mrad) ? "semiangle_mrad" : NULL;
    if (missing)
        return PS_FAIL(error, PS_E_JOB, "%s: /%s: missing; /optics/round needs it, to know what an aberration's phase is", group->source,
                       missing);
    ps_optics_round(&job->optics.rounding, &group->optics, &moved);
    plan->moved.aberrations_rad = fmax(plan->moved.aberrations_rad, moved.aberrations_rad);
    plan->moved.rotation_deg = fmax(plan->moved.rotation_deg, moved.rotation_deg);
    return PS_OK;
}

/* Fills optics, source, given and used of the group; on error the caller frees what is there. */
static ps_code read_optics(const ps_job *job, ps_run_plan *plan, int64_t frame, ps_run_group *group, ps_error *error) {
    const ps_series_item *item = &plan->series.items[frame];
    group->look.frame = -1;
    if (job->optics.source == PS_OPTICS_INLINE) {
        PS_TRY(ps_optics_from_json(job->optics.json, "/optics", &group->optics, error));
        group->given = cJSON_PrintUnformatted(job->optics.json);
    } else {
        group->source =
            job->optics.source == PS_OPTICS_FILE ? strdup(job->optics.path) : ps_text_replace(job->optics.path, "{stem}", item->stem);
        if (!group->source) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for an optics file's name");
        PS_TRY(ps_optics_load(group->source, &group->optics, &group->given, error));
    }
    PS_TRY(round_optics(job, plan, group, error));
    cJSON *json = ps_optics_to_json(&group->optics);
    group->used = json ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    return group->given && group->used ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics");
}

/* --- grouping --- */

static size_t n_pixels(const ps_run_plan *plan) {
    return (size_t)(plan->detector_rows * plan->detector_columns);
}

static void count_bad(ps_run_group *group, size_t pixels) {
    group->n_bad_file = group->n_bad_mask = group->n_bad_hot = group->n_bad_dead = 0;
    for (size_t i = 0; i < pixels; i++) {
        if (group->bad[i] & PS_BAD_FILE)
            group->n_bad_file++;
        else if (group->bad[i] & PS_BAD_MASK)
            group->n_bad_mask++;
        else if (group->bad[i] & PS_BAD_DEAD)
            group->n_bad_dead++;
        else if (group->bad[i] & PS_BAD_HOT)
            group->n_bad_hot++;
    }
}

/* given_mask: the job's mask file, NULL: none. */
static ps_code combine_masks(const ps_run_plan *plan, const ps_file_masks *masks, const uint8_t *given_mask, int64_t frame,
                             ps_run_group *group, ps_error *error) {
    size_t pixels = n_pixels(plan);
    const uint8_t *own = masks->mask_of[frame] >= 0 ? masks->masks[masks->mask_of[frame]] : NULL;
    group->bad = calloc(pixels, 1);
    if (!group->bad) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a pixel mask");
    for (size_t i = 0; i < pixels; i++) group->bad[i] = own && own[i] ? PS_BAD_FILE : given_mask && given_mask[i] ? PS_BAD_MASK : 0;
    count_bad(group, pixels);
    return PS_OK;
}

static void free_group(ps_run_group *group) {
    free(group->source);
    free(group->given);
    free(group->used);
    free(group->said);
    free(group->bad);
    free(group->frames);
    memset(group, 0, sizeof *group);
}

static int64_t find_group(const ps_run_plan *plan, const ps_run_group *like) {
    for (int64_t i = 0; i < plan->n_groups; i++)
        if (strcmp(plan->groups[i].used, like->used) == 0 && strcmp(plan->groups[i].said, like->said) == 0 &&
            memcmp(plan->groups[i].bad, like->bad, n_pixels(plan)) == 0)
            return i;
    return -1;
}

static ps_code add_frame(ps_run_plan *plan, int64_t at, int64_t frame, ps_error *error) {
    ps_run_group *group = &plan->groups[at];
    int64_t *frames = realloc(group->frames, (size_t)(group->n_frames + 1) * sizeof *frames);
    if (!frames) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics groups");
    group->frames = frames;
    group->frames[group->n_frames++] = frame;
    plan->frames[frame].group = at;
    return PS_OK;
}

/* Moves candidate into the list when no group is like it; it is empty afterwards. */
static ps_code place_frame(ps_run_plan *plan, ps_run_group *candidate, int64_t frame, ps_error *error) {
    int64_t at = find_group(plan, candidate);
    if (at >= 0) {
        free_group(candidate);
        return add_frame(plan, at, frame, error);
    }
    ps_run_group *groups = realloc(plan->groups, (size_t)(plan->n_groups + 1) * sizeof *groups);
    if (!groups) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics groups");
    plan->groups = groups;
    plan->groups[plan->n_groups] = *candidate;
    memset(candidate, 0, sizeof *candidate);
    return add_frame(plan, plan->n_groups++, frame, error);
}

/* A recording that cannot be read now has the mask that the output says it had, but for hot and dead pixels: they are found later, and are
 * no part of what tells groups apart. */
static void restore_mask(const ps_run_plan *plan, const ps_measured *measured, int64_t frame, ps_run_group *group) {
    const ps_measured_optics *known = ps_measured_of_frame(measured, frame);
    bool fits = known && measured->detector_rows == plan->detector_rows && measured->detector_columns == plan->detector_columns;
    if (!plan->frames[frame].unreadable || !fits) return;
    for (size_t i = 0; i < n_pixels(plan); i++) group->bad[i] = known->bad[i] & (uint8_t) ~(PS_BAD_HOT | PS_BAD_DEAD);
    count_bad(group, n_pixels(plan));
}

ps_code ps_run_plan_form_groups(const ps_job *job, const ps_file_masks *masks, const ps_measured *measured, ps_run_plan *plan,
                                ps_error *error) {
    ps_code code = PS_OK;
    uint8_t *given_mask = NULL;
    ps_run_group candidate = {0};
    int64_t first = 0; /* a frame that cannot be opened is grouped as if it had this one's mask, so that its group is there once it can */
    while (plan->frames[first].unreadable) first++;
    if (job->series.mask_file) {
        given_mask = malloc(n_pixels(plan));
        PS_GO_ALLOC(error, given_mask);
        PS_GO(ps_mask_load(job->series.mask_file, plan->detector_rows, plan->detector_columns, given_mask, error));
    }
    for (int64_t i = 0; i < plan->series.n_items; i++) {
        bool copied = job->optics.source != PS_OPTICS_PER_FRAME && plan->n_groups > 0;
        PS_GO(copied ? copy_optics(&plan->groups[0], &candidate, error) : read_optics(job, plan, i, &candidate, error));
        PS_GO(combine_masks(plan, masks, given_mask, plan->frames[i].unreadable ? first : i, &candidate, error));
        restore_mask(plan, measured, i, &candidate);
        candidate.said = ps_run_plan_said(measured, plan, i, &candidate.optics);
        PS_GO_ALLOC(error, candidate.said);
        PS_GO(place_frame(plan, &candidate, i, error));
    }
done:
    free_group(&candidate);
    free(given_mask);
    return code;
}

/* --- plans --- */

static ps_code build_plan(const ps_job *job, const ps_run_plan *plan, const ps_run_group *group, ps_plan *built, ps_error *error) {
    ps_plan_options options = {.scan_rows = plan->scan_rows,
                               .scan_columns = plan->scan_columns,
                               .detector_rows = plan->detector_rows,
                               .detector_columns = plan->detector_columns,
                               .upsampling = plan->upsampling,
                               .bad = group->bad,
                               .mirrored_probe = job->mirrored_probe};
    ps_method_set_plan(&job->methods, &options);
    ps_job_plan_g(job, ps_method_set_wants_g(&job->methods), &options);
    ps_code code = ps_plan_build(&group->optics, &options, built, error);
    if (code != PS_OK) ps_error_prefix(error, "%s", ps_run_plan_group_name(group));
    return code;
}

static ps_code rebuild(const ps_job *job, ps_run_plan *plan, int64_t at, ps_error *error) {
    ps_plan built;
    PS_TRY(build_plan(job, plan, &plan->groups[at], &built, error));
    ps_plan_free(&plan->groups[at].plan);
    plan->groups[at].plan = built;
    return PS_OK;
}

/* Images of all frames lie in one array, so they share one grid. */
static ps_code choose_grid(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    const ps_optics *first = &plan->groups[0].optics;
    plan->upsampling = job->upsampling > 0 ? job->upsampling : 1;
    for (int64_t i = 0; i < plan->n_groups; i++) {
        const ps_optics *optics = &plan->groups[i].optics;
        int64_t needed = ps_plan_auto_upsampling(optics);
        if (job->upsampling == 0 && needed > plan->upsampling) plan->upsampling = needed;
        if (optics->scan_step_A[0] != first->scan_step_A[0] || optics->scan_step_A[1] != first->scan_step_A[1])
            return PS_FAIL(
                error, PS_E_JOB, "%s: /scan_step_A: found [%g, %g]%s%s, expected [%g, %g] as in %s: images of one series share one grid",
                ps_run_plan_group_name(&plan->groups[i]), optics->scan_step_A[0], optics->scan_step_A[1],
                plan->groups[i].said[0] ? " as the recording says: " : "",
                plan->groups[i].said[0] ? plan->series.items[plan->groups[i].frames[0]].stem : "", first->scan_step_A[0],
                first->scan_step_A[1],
                plan->groups[0].said[0] ? plan->series.items[plan->groups[0].frames[0]].stem : ps_run_plan_group_name(&plan->groups[0]));
    }
    plan->image_rows = plan->scan_rows * plan->upsampling;
    plan->image_columns = plan->scan_columns * plan->upsampling;
    for (int axis = 0; axis < 2; axis++) plan->image_step_A[axis] = first->scan_step_A[axis] / (double)plan->upsampling;
    return PS_OK;
}

ps_code ps_run_plan_plan_groups(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    PS_TRY(choose_grid(job, plan, error));
    for (int64_t i = 0; i < plan->n_groups; i++) {
        ps_code code = rebuild(job, plan, i, error);
        if (code == PS_E_JOB) ps_run_plan_explain(job, plan, &plan->groups[i], error);
        PS_TRY(code);
        ps_plan_drop_frequencies(&plan->groups[i].plan);
    }
    return PS_OK;
}

ps_code ps_run_group_open(const ps_job *job, ps_run_plan *plan, int64_t group, ps_error *error) {
    return plan->groups[group].plan.desc.frequencies ? PS_OK : rebuild(job, plan, group, error);
}

void ps_run_group_close(ps_run_plan *plan, int64_t group) {
    ps_plan_drop_frequencies(&plan->groups[group].plan);
}

ps_code ps_run_group_set_hot(const ps_job *job, ps_run_plan *plan, int64_t group, const uint8_t *hot, ps_error *error) {
    ps_run_group *changed = &plan->groups[group];
    size_t pixels = n_pixels(plan);
    for (size_t i = 0; i < pixels; i++) {
        changed->bad[i] &= (uint8_t)~PS_BAD_HOT;
        if (hot[i] && !changed->bad[i]) changed->bad[i] = PS_BAD_HOT;
    }
    count_bad(changed, pixels);
    PS_TRY(rebuild(job, plan, group, error));
    ps_plan_drop_frequencies(&changed->plan);
    return PS_OK;
}

ps_code ps_run_group_set_dead(const ps_job *job, ps_run_plan *plan, int64_t group, const int32_t *dead, int64_t n, ps_error *error) {
    ps_run_group *changed = &plan->groups[group];
    size_t pixels = n_pixels(plan);
    for (size_t i = 0; i < pixels; i++) changed->bad[i] &= (uint8_t)~PS_BAD_DEAD;
    for (int64_t i = 0; i < n; i++)
        if (!changed->bad[dead[i]]) changed->bad[dead[i]] = PS_BAD_DEAD;
    count_bad(changed, pixels);
    PS_TRY(rebuild(job, plan, group, error));
    ps_plan_drop_frequencies(&changed->plan);
    return PS_OK;
}
