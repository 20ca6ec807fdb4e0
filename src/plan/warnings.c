/* What a user should know before starting, though it does not stop the run. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "optics/warnings.h"
#include "plan/parts.h"

static const double worth_saying = 0.02; /* relative difference, and missing part of the disc */

typedef double (*said_value)(const ps_recording *info, double voltage_V); /* not above 0 or NAN: it does not say */

static bool differs(double found, double given) {
    return isfinite(found) && found > 0.0 && fabs(found / given - 1.0) > worth_saying;
}

/* What a ratio of two values of one quantity says about their units. */
static const char *unit_slip(double ratio) {
    static const struct {
        double ratio;
        const char *says;
    } slips[] = {{10.0, "they differ by 10, as nm and A do"},
                 {1000.0, "they differ by 1000, as rad and mrad or kV and V do"},
                 {2.0, "they differ by 2: was the detector or the scan binned?"},
                 {4.0, "they differ by 4: was the detector or the scan binned?"}};
    double larger = ratio > 1.0 ? ratio : 1.0 / ratio;
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++)
        if (fabs(larger / slips[i].ratio - 1.0) <= worth_saying) return slips[i].says;
    return NULL;
}

/* The group's recordings that say the same as `recorded`, from the k-th on: how many. */
static int64_t count_alike(const ps_run_plan *plan, const ps_run_group *group, said_value value, int64_t from, double recorded) {
    int64_t n = 0;
    for (int64_t k = from; k < group->n_frames; k++) {
        const ps_run_frame *frame = &plan->frames[group->frames[k]];
        n += !frame->unreadable && fabs(value(&frame->info, group->optics.voltage_V) / recorded - 1.0) <= 1e-6;
    }
    return n;
}

static ps_code compare_one(ps_run_plan *plan, const ps_run_group *group, const char *what, int64_t frame, int64_t n_more, double recorded,
                           double given, ps_error *error) {
    const char *slip = unit_slip(recorded / given), *stem = plan->series.items[frame].stem;
    char more[64] = "";
    if (n_more > 0) snprintf(more, sizeof more, " (and %" PRId64 " more)", n_more);
    return ps_run_plan_add_warning(plan, error, "%s: %s is %g, but the recording %s%s says %g; the optics are used%s%s",
                                   ps_run_plan_group_name(group), what, given, stem, more, recorded, slip ? "; " : "", slip ? slip : "");
}

/* Every recording against the optics; recordings that say the same are named once. */
static ps_code compare(ps_run_plan *plan, const ps_run_group *group, const char *what, said_value value, double given, ps_error *error) {
    enum { MOST_DIFFERENT = 4 };
    double known[MOST_DIFFERENT];
    int n_known = 0;
    for (int64_t k = 0; k < group->n_frames && n_known < MOST_DIFFERENT; k++) {
        const ps_run_frame *frame = &plan->frames[group->frames[k]];
        double recorded = frame->unreadable ? NAN : value(&frame->info, group->optics.voltage_V);
        bool is_new = differs(recorded, given);
        for (int i = 0; i < n_known; i++) is_new = is_new && fabs(recorded / known[i] - 1.0) > 1e-6;
        if (!is_new) continue;
        known[n_known++] = recorded;
        int64_t n_more = count_alike(plan, group, value, k + 1, recorded);
        PS_TRY(compare_one(plan, group, what, group->frames[k], n_more, recorded, given, error));
    }
    return PS_OK;
}

static double said_voltage(const ps_recording *info, double voltage_V) {
    (void)voltage_V;
    return ps_run_plan_plausible_voltage(info->voltage_V) ? info->voltage_V : NAN;
}
static double said_step_row(const ps_recording *info, double voltage_V) {
    (void)voltage_V;
    return info->scan_step_A[0];
}
static double said_step_column(const ps_recording *info, double voltage_V) {
    (void)voltage_V;
    return info->scan_step_A[1];
}
static double said_pitch_row(const ps_recording *info, double voltage_V) {
    double pitch_mrad[2];
    ps_recording_pitch(info, voltage_V, pitch_mrad);
    return pitch_mrad[0];
}
static double said_pitch_column(const ps_recording *info, double voltage_V) {
    double pitch_mrad[2];
    ps_recording_pitch(info, voltage_V, pitch_mrad);
    return pitch_mrad[1];
}

static ps_code compare_recordings(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    const ps_optics *optics = &group->optics;
    PS_TRY(compare(plan, group, "voltage_V", said_voltage, optics->voltage_V, error));
    PS_TRY(compare(plan, group, "scan_step_A", said_step_row, optics->scan_step_A[0], error));
    PS_TRY(compare(plan, group, "detector_pitch_mrad", said_pitch_row, optics->detector_pitch_mrad[0], error));
    PS_TRY(compare(plan, group, "scan_step_A", said_step_column, optics->scan_step_A[1], error));
    return compare(plan, group, "detector_pitch_mrad", said_pitch_column, optics->detector_pitch_mrad[1], error);
}

/* Groups that differ in what their recordings say of what the optics leave open. */
static ps_code warn_of_said(ps_run_plan *plan, ps_error *error) {
    ps_code code = PS_OK;
    char *list = NULL;
    size_t bytes = 0;
    bool differ = false;
    for (int64_t i = 1; i < plan->n_groups; i++) differ = differ || strcmp(plan->groups[i].said, plan->groups[0].said) != 0;
    if (!differ) return PS_OK;
    FILE *out = open_memstream(&list, &bytes);
    if (!out) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a warning");
    for (int64_t i = 0; i < plan->n_groups; i++) {
        const ps_run_group *group = &plan->groups[i];
        fprintf(out, "%s%sby %s", i ? "; " : "", group->said, plan->series.items[group->frames[0]].stem);
        if (group->n_frames > 1) fprintf(out, " and %" PRId64 " more", group->n_frames - 1);
    }
    if (fclose(out) == 0)
        code = ps_run_plan_add_warning(plan, error, "series: recordings give different values, and each is used with its own: %s", list);
    else
        code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a warning");
    free(list);
    return code;
}

/* Part of the bright-field disc that lies beyond the detector's edges. */
static double missing_fraction(const ps_run_plan *plan, const ps_optics *optics) {
    double radius_row = optics->semiangle_mrad / optics->detector_pitch_mrad[0];
    double radius_column = optics->semiangle_mrad / optics->detector_pitch_mrad[1];
    int64_t reach_row = (int64_t)ceil(radius_row), reach_column = (int64_t)ceil(radius_column), inside = 0, seen = 0;
    int64_t near_row = llround(optics->detector_center_px[0]), near_column = llround(optics->detector_center_px[1]);
    for (int64_t row = near_row - reach_row; row <= near_row + reach_row; row++)
        for (int64_t column = near_column - reach_column; column <= near_column + reach_column; column++) {
            double a = ((double)row - optics->detector_center_px[0]) / radius_row;
            double b = ((double)column - optics->detector_center_px[1]) / radius_column;
            if (a * a + b * b > 1.0) continue;
            inside++;
            seen += row >= 0 && row < plan->detector_rows && column >= 0 && column < plan->detector_columns;
        }
    return inside > 0 ? 1.0 - (double)seen / (double)inside : 0.0;
}

static ps_code check_disc(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    double missing = missing_fraction(plan, &group->optics);
    int64_t active = group->plan.desc.n_active, left_out = group->plan.n_left_out;
    if (missing > worth_saying)
        PS_TRY(ps_run_plan_add_warning(plan, error, "%s: %.0f %% of the bright-field disc lies beyond the detector's edge",
                                       ps_run_plan_group_name(group), 100.0 * missing));
    if ((double)left_out > worth_saying * (double)(active + left_out))
        PS_TRY(ps_run_plan_add_warning(plan, error, "%s: %" PRId64 " of the disc's %" PRId64 " pixels are masked",
                                       ps_run_plan_group_name(group), left_out, active + left_out));
    return PS_OK;
}

static ps_code check_upsampling(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    int64_t needed = ps_plan_auto_upsampling(&group->optics);
    if (plan->upsampling >= needed) return PS_OK;
    return ps_run_plan_add_warning(plan, error, "%s: upsampling %" PRId64 " is given, but these optics carry detail that needs %" PRId64,
                                   ps_run_plan_group_name(group), plan->upsampling, needed);
}

static ps_code check_plausible(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    enum { MOST_WARNINGS = 4 };
    char warnings[MOST_WARNINGS][PS_WARNING_TEXT];
    int n = ps_optics_warnings(&group->optics, MOST_WARNINGS, warnings);
    for (int i = 0; i < n; i++) PS_TRY(ps_run_plan_add_warning(plan, error, "%s: %s", ps_run_plan_group_name(group), warnings[i]));
    return PS_OK;
}

ps_code ps_run_plan_warn(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    if (job->mirrored_probe)
        PS_TRY(ps_run_plan_add_warning(plan, error,
                                       "probe_form \"published\" mirrors the probe: right for even aberrations only, for comparison"));
    PS_TRY(ps_run_plan_warn_of_times(job, plan, error));
    PS_TRY(warn_of_said(plan, error));
    for (int64_t i = 0; i < plan->n_groups; i++) {
        PS_TRY(compare_recordings(plan, &plan->groups[i], error));
        PS_TRY(check_plausible(plan, &plan->groups[i], error));
        PS_TRY(check_disc(plan, &plan->groups[i], error));
        PS_TRY(check_upsampling(plan, &plan->groups[i], error));
    }
    return PS_OK;
}
