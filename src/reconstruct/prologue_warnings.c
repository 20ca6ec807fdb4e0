/* What a user should know before starting, though it does not stop the run. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "optics/doubts.h"
#include "reconstruct/prologue_parts.h"

static const double worth_saying = 0.02; /* relative difference, and missing part of the disc */

ps_code ps_prologue_add_warning(ps_run_plan *plan, ps_error *error, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int used = vasprintf(&text, format, arguments);
    va_end(arguments);
    char **more = used < 0 ? NULL : realloc(plan->warnings, (size_t)(plan->n_warnings + 1) * sizeof *more);
    if (!more) {
        if (used >= 0) free(text);
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a warning");
    }
    plan->warnings = more;
    plan->warnings[plan->n_warnings++] = text;
    return PS_OK;
}

const char *ps_prologue_group_name(const ps_run_group *group) {
    return group->source ? group->source : "/optics";
}

bool ps_prologue_plausible_voltage(double voltage_V) {
    return voltage_V >= 1e4 && voltage_V <= 3e6;
}

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

static ps_code compare(ps_run_plan *plan, const ps_run_group *group, const char *what, double recorded, double given, ps_error *error) {
    if (!differs(recorded, given)) return PS_OK;
    const char *slip = unit_slip(recorded / given), *stem = plan->series.items[ps_prologue_first_readable(plan, group)].stem;
    return ps_prologue_add_warning(plan, error, "%s: %s is %g, but the recording %s says %g; the optics are used%s%s",
                                   ps_prologue_group_name(group), what, given, stem, recorded, slip ? "; " : "", slip ? slip : "");
}

static ps_code compare_recording(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    int64_t frame = ps_prologue_first_readable(plan, group);
    if (frame < 0) return PS_OK;
    const ps_recording *info = &plan->frames[frame].info;
    const ps_optics *optics = &group->optics;
    if (ps_prologue_plausible_voltage(info->voltage_V))
        PS_TRY(compare(plan, group, "voltage_V", info->voltage_V, optics->voltage_V, error));
    double pitch_mrad[2];
    ps_recording_pitch(info, optics->voltage_V, pitch_mrad);
    for (int axis = 0; axis < 2; axis++) {
        PS_TRY(compare(plan, group, "scan_step_A", info->scan_step_A[axis], optics->scan_step_A[axis], error));
        PS_TRY(compare(plan, group, "detector_pitch_mrad", pitch_mrad[axis], optics->detector_pitch_mrad[axis], error));
    }
    return PS_OK;
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
        PS_TRY(ps_prologue_add_warning(plan, error, "%s: %.0f %% of the bright-field disc lies beyond the detector's edge",
                                       ps_prologue_group_name(group), 100.0 * missing));
    if ((double)left_out > worth_saying * (double)(active + left_out))
        PS_TRY(ps_prologue_add_warning(plan, error, "%s: %" PRId64 " of the disc's %" PRId64 " pixels are masked",
                                       ps_prologue_group_name(group), left_out, active + left_out));
    return PS_OK;
}

static ps_code check_upsampling(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    int64_t needed = ps_plan_auto_upsampling(&group->optics);
    if (plan->upsampling >= needed) return PS_OK;
    return ps_prologue_add_warning(plan, error, "%s: upsampling %" PRId64 " is given, but these optics carry detail that needs %" PRId64,
                                   ps_prologue_group_name(group), plan->upsampling, needed);
}

static ps_code check_plausible(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    enum { MOST_DOUBTS = 4 };
    char doubts[MOST_DOUBTS][PS_DOUBT_TEXT];
    int n = ps_optics_doubts(&group->optics, MOST_DOUBTS, doubts);
    for (int i = 0; i < n; i++) PS_TRY(ps_prologue_add_warning(plan, error, "%s: %s", ps_prologue_group_name(group), doubts[i]));
    return PS_OK;
}

ps_code ps_prologue_warn(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    if (job->mirrored_probe)
        PS_TRY(ps_prologue_add_warning(plan, error,
                                       "probe_form \"published\" mirrors the probe: right for even aberrations only, for comparison"));
    PS_TRY(ps_prologue_warn_of_times(job, plan, error));
    for (int64_t i = 0; i < plan->n_groups; i++) {
        PS_TRY(compare_recording(plan, &plan->groups[i], error));
        PS_TRY(check_plausible(plan, &plan->groups[i], error));
        PS_TRY(check_disc(plan, &plan->groups[i], error));
        PS_TRY(check_upsampling(plan, &plan->groups[i], error));
    }
    return PS_OK;
}
