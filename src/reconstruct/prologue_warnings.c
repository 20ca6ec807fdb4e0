/* What a user should know before starting, though it does not stop the run. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "reconstruct/prologue_parts.h"

static const double worth_saying = 0.02; /* relative difference, and missing part of the disc */

static ps_code warn(ps_run_plan *plan, ps_error *error, const char *format, ...) __attribute__((format(printf, 3, 4)));
static ps_code warn(ps_run_plan *plan, ps_error *error, const char *format, ...) {
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

static const char *name_of(const ps_run_group *group) {
    return group->source ? group->source : "/optics";
}

static bool differs(double found, double given) {
    return isfinite(found) && found > 0.0 && fabs(found / given - 1.0) > worth_saying;
}

static ps_code compare(ps_run_plan *plan, const ps_run_group *group, const char *what, double recorded, double given, ps_error *error) {
    if (!differs(recorded, given)) return PS_OK;
    return warn(plan, error, "%s: %s is %g, but the recording %s says %g; the optics are used", name_of(group), what, given,
                plan->series.items[group->frames[0]].stem, recorded);
}

static ps_code compare_recording(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    const ps_recording *info = &plan->frames[group->frames[0]].info;
    const ps_optics *optics = &group->optics;
    PS_TRY(compare(plan, group, "voltage_V", info->voltage_V, optics->voltage_V, error));
    for (int axis = 0; axis < 2; axis++) {
        PS_TRY(compare(plan, group, "scan_step_A", info->scan_step_A[axis], optics->scan_step_A[axis], error));
        PS_TRY(compare(plan, group, "detector_pitch_mrad", info->detector_pitch_mrad[axis], optics->detector_pitch_mrad[axis], error));
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
        PS_TRY(warn(plan, error, "%s: %.0f %% of the bright-field disc lies beyond the detector's edge", name_of(group), 100.0 * missing));
    if ((double)left_out > worth_saying * (double)(active + left_out))
        PS_TRY(
            warn(plan, error, "%s: %" PRId64 " of the disc's %" PRId64 " pixels are masked", name_of(group), left_out, active + left_out));
    return PS_OK;
}

static ps_code check_upsampling(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    int64_t needed = ps_plan_auto_upsampling(&group->optics);
    if (plan->upsampling >= needed) return PS_OK;
    return warn(plan, error, "%s: upsampling %" PRId64 " is given, but these optics carry detail that needs %" PRId64, name_of(group),
                plan->upsampling, needed);
}

ps_code ps_prologue_warn(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    if (job->mirrored_probe)
        PS_TRY(warn(plan, error, "probe_form \"published\" mirrors the probe: right for even aberrations only, for comparison"));
    for (int64_t i = 0; i < plan->n_groups; i++) {
        PS_TRY(compare_recording(plan, &plan->groups[i], error));
        PS_TRY(check_disc(plan, &plan->groups[i], error));
        PS_TRY(check_upsampling(plan, &plan->groups[i], error));
    }
    return PS_OK;
}
