#include "input/formats/calibration.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "input/units.h"
#include "optics/optics.h"

/* What programs write where nothing was calibrated. */
static bool says_no_unit(const char *unit) {
    static const char *const names[] = {"",   "pixel",       "pixels", "[pixels]", "px",        "[pix]",      "pix",
                                        "[]", "<undefined>", "none",   "unknown",  "undefined", "t.Undefined"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(unit, names[i]) == 0) return true;
    return false;
}

static void note_unused(ps_reader *reader, const ps_quantity *q, const char *expected) {
    if (!(q->value > 0) || (says_no_unit(q->unit) && q->value == 1)) return;
    bool none = says_no_unit(q->unit);
    ps_reader_note(reader, "%s%s says %g %s%s%s, which is no unit of %s: not used", none ? "" : "warning: ", q->place, q->value,
                   none ? "without a unit" : "'", none ? "" : q->unit, none ? "" : "'", expected);
}

static double in_A(const ps_quantity *q) {
    return q->value > 0 ? q->value * ps_unit_length_A(q->unit) : NAN;
}

static double in_mrad(const ps_quantity *q) {
    return q->value > 0 ? q->value * ps_unit_angle_mrad(q->unit) : NAN;
}

static double in_inv_A(const ps_quantity *q) {
    return q->value > 0 ? q->value * ps_unit_reciprocal_inv_A(q->unit) : NAN;
}

/* Some programs write Angstrom under the name nm. */
static void check_nm(ps_reader *reader, const ps_quantity *q, double step_A) {
    enum { LONGEST_STEP_A = 50 };
    if (ps_unit_length_A(q->unit) == 10 && step_A > LONGEST_STEP_A)
        ps_reader_note(reader, "warning: %s says a scan step of %g nm; was %g Angstrom meant? Give the scan step in the optics if so",
                       q->place, q->value, q->value);
}

void ps_calibration_take_step(ps_reader *reader, const ps_quantity rows_columns[2]) {
    ps_recording *info = &reader->info;
    double step[2] = {in_A(&rows_columns[0]), in_A(&rows_columns[1])};
    if (isnan(step[0]) || isnan(step[1])) {
        note_unused(reader, &rows_columns[isnan(step[0]) ? 0 : 1], "length");
        return;
    }
    if (!isnan(info->scan_step_A[0])) return;
    memcpy(info->scan_step_A, step, sizeof step);
    snprintf(info->step_place, sizeof info->step_place, "%.79s", rows_columns[0].place);
    check_nm(reader, &rows_columns[0], step[0]);
}

static void take_frequency(ps_recording *info, const double frequency[2]) {
    memcpy(info->detector_pitch_inv_A, frequency, sizeof info->detector_pitch_inv_A);
    for (int axis = 0; axis < 2 && info->voltage_V > 0; axis++)
        info->detector_pitch_mrad[axis] = frequency[axis] * ps_wavelength_A(info->voltage_V) * 1e3;
}

void ps_calibration_take_pitch(ps_reader *reader, const ps_quantity rows_columns[2]) {
    ps_recording *info = &reader->info;
    double angle[2] = {in_mrad(&rows_columns[0]), in_mrad(&rows_columns[1])};
    double frequency[2] = {in_inv_A(&rows_columns[0]), in_inv_A(&rows_columns[1])};
    bool is_angle = !isnan(angle[0]) && !isnan(angle[1]), is_frequency = !isnan(frequency[0]) && !isnan(frequency[1]);
    if (!is_angle && !is_frequency) {
        note_unused(reader, &rows_columns[isnan(angle[0]) && isnan(frequency[0]) ? 0 : 1], "angle or reciprocal length");
        return;
    }
    if (!isnan(info->detector_pitch_mrad[0]) || !isnan(info->detector_pitch_inv_A[0])) return;
    if (is_angle)
        memcpy(info->detector_pitch_mrad, angle, sizeof angle);
    else
        take_frequency(info, frequency);
    snprintf(info->pitch_place, sizeof info->pitch_place, "%.79s", rows_columns[0].place);
}
