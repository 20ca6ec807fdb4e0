/* The third step of the run plan: what optics leave open is taken from what recordings say of themselves, else from the bright-field disc
 * in their mean pattern. Groups with the same optics get the same values, from the first of them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "optics/optics_json.h"
#include "plan/parts.h"

/* Places of a measured centre that are worth writing down, and digits of a measured angle. */
static const double center_steps = 1000.0;
enum { ANGLE_DIGITS = 5 };

static double round_digits(double value, int digits) {
    double step = pow(10.0, floor(log10(value)) - digits + 1);
    return round(value / step) * step;
}

static void note_origin(cJSON *origin, const char *key, const char *text) {
    cJSON_AddStringToObject(origin, key, text);
}

/* place: where the recording says it. */
static void note_place(cJSON *origin, const char *key, const char *place) {
    char text[128];
    snprintf(text, sizeof text, "recording%s%s", place[0] ? ", " : "", place);
    note_origin(origin, key, text);
}

/* Takes value into *target when that is open and the value says something. */
static void take(double value, double *target) {
    if (isnan(*target) && isfinite(value) && value > 0.0) *target = value;
}

/* Both or none. */
static void take_pair(const double pair[2], double target[2]) {
    if (!(pair[0] > 0.0) || !(pair[1] > 0.0) || !isfinite(pair[0] + pair[1])) return;
    take(pair[0], &target[0]);
    take(pair[1], &target[1]);
}

/* origin: gets an entry for every value that was open and is not any more. */
static void take_from_recording(const ps_recording *info, ps_optics *optics, cJSON *origin) {
    bool open[3] = {isnan(optics->voltage_V), isnan(optics->scan_step_A[0]), isnan(optics->detector_pitch_mrad[0])};
    if (ps_run_plan_plausible_voltage(info->voltage_V)) take(info->voltage_V, &optics->voltage_V);
    take_pair(info->scan_step_A, optics->scan_step_A);
    double pitch_mrad[2];
    ps_recording_pitch(info, optics->voltage_V, pitch_mrad);
    take_pair(pitch_mrad, optics->detector_pitch_mrad);
    if (open[0] && !isnan(optics->voltage_V)) note_place(origin, "voltage_V", info->voltage_place);
    if (open[1] && !isnan(optics->scan_step_A[0])) note_place(origin, "scan_step_A", info->step_place);
    if (open[2] && !isnan(optics->detector_pitch_mrad[0])) note_place(origin, "detector_pitch_mrad", info->pitch_place);
}

/* The optics that the frame has in the output; -1: there is none, or it is of other frames. */
static int64_t recorded_optics(const ps_measured *measured, const ps_run_plan *plan, int64_t frame) {
    return measured && measured->n_frames == plan->series.n_items ? measured->optics_of[frame] : -1;
}

/* What the frame's recording says of one quantity; where it says nothing, what the first that does says; "": none does. In an output that
 * is gone on with only those count that it has in the same group: one that said something then may not be there now. */
static void print_said(const ps_measured *measured, const ps_run_plan *plan, int64_t frame, double (*value)(const ps_recording *info),
                       const char *name, FILE *out) {
    int64_t recorded = recorded_optics(measured, plan, frame);
    double said = plan->frames[frame].unreadable ? NAN : value(&plan->frames[frame].info);
    for (int64_t i = 0; i < plan->series.n_items && !(said > 0.0); i++)
        if (!plan->frames[i].unreadable && recorded_optics(measured, plan, i) == recorded) said = value(&plan->frames[i].info);
    if (said > 0.0)
        fprintf(out, "%s %.4g ", name, said);
    else if (recorded >= 0)
        fprintf(out, "%s as optics_%" PRId64 " ", name, recorded);
}

static double said_voltage(const ps_recording *info) {
    return ps_run_plan_plausible_voltage(info->voltage_V) ? info->voltage_V : NAN;
}
static double said_step_row(const ps_recording *info) {
    return info->scan_step_A[0];
}
static double said_step_column(const ps_recording *info) {
    return info->scan_step_A[1];
}
static double said_pitch_row(const ps_recording *info) {
    return info->detector_pitch_mrad[0];
}
static double said_pitch_column(const ps_recording *info) {
    return info->detector_pitch_mrad[1];
}

char *ps_run_plan_said(const ps_measured *measured, const ps_run_plan *plan, int64_t frame, const ps_optics *optics) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    if (isnan(optics->voltage_V)) print_said(measured, plan, frame, said_voltage, "voltage_V", out);
    if (isnan(optics->scan_step_A[0])) {
        print_said(measured, plan, frame, said_step_row, "scan_step_A", out);
        print_said(measured, plan, frame, said_step_column, "x", out);
    }
    if (isnan(optics->detector_pitch_mrad[0])) {
        print_said(measured, plan, frame, said_pitch_row, "detector_pitch_mrad", out);
        print_said(measured, plan, frame, said_pitch_column, "x", out);
    }
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}

/* A group whose first readable recording does not say a value gets it from the first of the series that does, as ps_run_plan_said has it.
 */
static void take_from_others(const ps_run_plan *plan, ps_optics *optics, cJSON *origin) {
    for (int64_t i = 0; i < plan->series.n_items; i++)
        if (!plan->frames[i].unreadable) take_from_recording(&plan->frames[i].info, optics, origin);
}

static bool disc_is_needed(const ps_optics *optics) {
    return isnan(optics->detector_center_px[0]) || isnan(optics->semiangle_mrad) != isnan(optics->detector_pitch_mrad[0]);
}

/* The inspection's radius is in pixels while the pitch is open; it is in mrad afterwards. */
static void take_from_disc(ps_run_inspection *look, ps_optics *optics, cJSON *origin) {
    char text[96];
    snprintf(text, sizeof text, "mean of %" PRId64 " patterns of frame %" PRId64, look->n_positions, look->frame);
    if (isnan(optics->detector_center_px[0])) {
        for (int axis = 0; axis < 2; axis++)
            optics->detector_center_px[axis] = round(look->disc.center_px[axis] * center_steps) / center_steps;
        note_origin(origin, "detector_center_px", text);
    }
    bool has_pitch = !isnan(optics->detector_pitch_mrad[0]);
    if (isnan(optics->semiangle_mrad) && has_pitch) {
        optics->semiangle_mrad = round_digits(look->disc.radius, ANGLE_DIGITS);
        note_origin(origin, "semiangle_mrad", text);
    } else if (!isnan(optics->semiangle_mrad) && !has_pitch) {
        double pitch = round_digits(optics->semiangle_mrad / look->disc.radius, ANGLE_DIGITS);
        optics->detector_pitch_mrad[0] = optics->detector_pitch_mrad[1] = pitch;
        look->disc.radius *= pitch;
        note_origin(origin, "detector_pitch_mrad", text);
    }
}

static ps_code require_complete(const ps_run_plan *plan, const ps_run_group *group, int64_t frame, ps_error *error) {
    const char *missing = ps_optics_missing(&group->optics);
    if (!missing) return PS_OK;
    const char *hint = isnan(group->optics.semiangle_mrad) && isnan(group->optics.detector_pitch_mrad[0])
                           ? "; one of semiangle_mrad and detector_pitch_mrad must be known to measure the other"
                           : "";
    return PS_FAIL(error, PS_E_JOB, "%s: /%s: missing, and the recording %s does not tell it%s", ps_run_plan_group_name(group), missing,
                   plan->series.items[frame].stem, hint);
}

/* Fills what is open with another optics' values. */
static void take_open(const ps_optics *other, ps_optics *optics) {
    take(other->voltage_V, &optics->voltage_V);
    take(other->semiangle_mrad, &optics->semiangle_mrad);
    take_pair(other->scan_step_A, optics->scan_step_A);
    take_pair(other->detector_pitch_mrad, optics->detector_pitch_mrad);
    if (isnan(optics->detector_center_px[0]))
        memcpy(optics->detector_center_px, other->detector_center_px, sizeof other->detector_center_px);
}

/* What was taken from recordings when the output was made is taken from the output now. */
static ps_code take_recorded(const ps_measured *measured, ps_run_group *group, ps_error *error) {
    const ps_measured_optics *known = ps_measured_of_frame(measured, group->frames[0]);
    ps_optics before;
    if (!known || !known->was_readable || !ps_optics_missing(&group->optics)) return PS_OK;
    cJSON *used = cJSON_Parse(known->used);
    ps_code code = used ? ps_optics_from_json(used, "/used", &before, error)
                        : PS_FAIL(error, PS_E_HDF5, "the optics that the output was made with cannot be read");
    cJSON_Delete(used);
    if (code != PS_OK) {
        ps_error_prefix(error, "%s", measured->path);
        return code;
    }
    take_open(&before, &group->optics);
    return PS_OK;
}

static ps_code complete(const ps_job *job, const ps_run_plan *plan, ps_run_group *group, cJSON *origin, ps_error *error) {
    int64_t frame = ps_run_plan_first_readable(plan, group);
    take_from_recording(&plan->frames[frame].info, &group->optics, origin);
    take_from_others(plan, &group->optics, origin);
    if (disc_is_needed(&group->optics)) {
        PS_TRY(ps_run_plan_inspect_group(job, plan, group, error));
        if (!group->look.has_disc)
            return PS_FAIL(error, PS_E_JOB,
                           "%s: the centre or the size of the bright-field disc is not given, and cannot be measured in %s: %s",
                           ps_run_plan_group_name(group), plan->series.items[frame].stem, group->look.no_disc);
        take_from_disc(&group->look, &group->optics, origin);
    }
    return require_complete(plan, group, frame, error);
}

static ps_code write_down(ps_run_group *group, const cJSON *origin, ps_error *error) {
    cJSON *json = ps_optics_to_json(&group->optics);
    char *used = json ? cJSON_PrintUnformatted(json) : NULL, *text = cJSON_PrintUnformatted(origin);
    cJSON_Delete(json);
    if (!used || !text) {
        free(used);
        free(text);
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics");
    }
    free(group->used);
    free(group->origin);
    group->used = used;
    group->origin = text;
    return PS_OK;
}

static void note_rounding(const ps_optics_rounding *rounding, cJSON *origin) {
    char text[96];
    if (!(rounding->aberrations_rad > 0.0)) return;
    snprintf(text, sizeof text, "rounded, by at most %g degrees", rounding->rotation_deg);
    note_origin(origin, "rotation_deg", text);
    snprintf(text, sizeof text, "rounded, each by at most %g rad of phase at the aperture's rim", rounding->aberrations_rad);
    note_origin(origin, "aberrations", text);
}

static ps_code complete_group(const ps_job *job, const ps_run_plan *plan, ps_run_group *group, ps_error *error) {
    cJSON *origin = cJSON_CreateObject();
    if (!origin) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics");
    ps_code code = ps_optics_missing(&group->optics) ? complete(job, plan, group, origin, error) : PS_OK;
    note_rounding(&job->optics.rounding, origin);
    if (code == PS_OK) code = write_down(group, origin, error);
    cJSON_Delete(origin);
    return code;
}

/* Another group's values; the masks of the two may differ, the optics do not. */
static ps_code copy_values(const ps_run_group *from, ps_run_group *group, ps_error *error) {
    cJSON *origin = cJSON_Parse(from->origin);
    group->optics = from->optics;
    ps_code code = origin ? write_down(group, origin, error) : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics");
    cJSON_Delete(origin);
    return code;
}

/* Frames of a group that has no readable one fail one by one; until then its optics need some values: those of the first group that has. */
static void borrow_values(const ps_run_plan *plan, ps_run_group *group) {
    const ps_optics *other = NULL;
    for (int64_t i = 0; i < plan->n_groups && !other; i++)
        if (ps_run_plan_first_readable(plan, &plan->groups[i]) >= 0) other = &plan->groups[i].optics;
    if (!other) return;
    take_open(other, &group->optics);
}

ps_code ps_run_plan_complete_optics(const ps_job *job, const ps_measured *measured, ps_run_plan *plan, ps_error *error) {
    ps_code code = PS_OK;
    char **asked = calloc((size_t)plan->n_groups, sizeof *asked); /* what each group's optics were before */
    PS_GO_ALLOC(error, asked);
    for (int64_t i = 0; i < plan->n_groups; i++) {
        ps_run_group *group = &plan->groups[i];
        int64_t like = 0;
        asked[i] = strdup(group->used);
        PS_GO_ALLOC(error, asked[i]);
        PS_GO(take_recorded(measured, group, error));
        if (ps_run_plan_first_readable(plan, group) < 0) continue;
        while (like < i &&
               (strcmp(asked[like], asked[i]) != 0 || strcmp(plan->groups[like].said, group->said) != 0 || !plan->groups[like].origin))
            like++;
        PS_GO(like < i ? copy_values(&plan->groups[like], group, error) : complete_group(job, plan, group, error));
    }
    for (int64_t i = 0; i < plan->n_groups; i++) {
        if (plan->groups[i].origin) continue;
        borrow_values(plan, &plan->groups[i]);
        PS_GO(complete_group(job, plan, &plan->groups[i], error));
    }
done:
    for (int64_t i = 0; asked && i < plan->n_groups; i++) free(asked[i]);
    free(asked);
    return code;
}
