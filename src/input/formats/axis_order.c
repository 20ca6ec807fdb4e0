#include "input/formats/axis_order.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "input/units.h"

enum { NAME_BYTES = 64, MOST_AXES = 4 };

void ps_axis_clear(ps_axis *axis) {
    *axis = (ps_axis){.step = {.value = NAN}};
}

/* Letters and digits alone, in lower case. */
static void reduce(const char *name, char reduced[NAME_BYTES]) {
    size_t n = 0;
    for (; *name && n + 1 < NAME_BYTES; name++)
        if (isalnum((unsigned char)*name)) reduced[n++] = (char)tolower((unsigned char)*name);
    reduced[n] = '\0';
}

static bool contains_one(const char *text, const char *const *words, size_t n_words) {
    for (size_t i = 0; i < n_words; i++)
        if (strstr(text, words[i])) return true;
    return false;
}

/* "qx", "Q_Nx", "q0", "krow": the letter of a space and then what names an axis of it. */
static bool is_axis_of(const char *text, char space) {
    static const char *const axes[] = {"x",    "y",   "nx",   "ny",     "0",       "1",   "2",    "row",
                                       "rows", "col", "cols", "column", "columns", "dim", "pixel"};
    if (text[0] != space) return false;
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        if (strcmp(text + 1, axes[i]) == 0) return true;
    return false;
}

ps_axis_kind ps_axis_name_kind(const char *name) {
    static const char *const of_detector[] = {"detector", "det",   "signal", "sig",    "diffraction", "recip",
                                              "scatter",  "angle", "freq",   "camera", "sensor",      "momentum"};
    static const char *const of_scan[] = {"scan", "nav", "probe", "position", "realspace", "sample", "stage", "raster"};
    char text[NAME_BYTES];
    reduce(name, text);
    bool detector =
        is_axis_of(text, 'q') || is_axis_of(text, 'k') || contains_one(text, of_detector, sizeof of_detector / sizeof *of_detector);
    bool scan = is_axis_of(text, 'r') || contains_one(text, of_scan, sizeof of_scan / sizeof *of_scan);
    return detector == scan ? PS_AXIS_UNKNOWN : detector ? PS_AXIS_DETECTOR : PS_AXIS_SCAN;
}

static ps_axis_kind kind_of(const ps_axis *axis) {
    if (axis->kind != PS_AXIS_UNKNOWN) return axis->kind;
    bool reciprocal = !isnan(ps_unit_reciprocal_inv_A(axis->step.unit)) || !isnan(ps_unit_angle_mrad(axis->step.unit));
    ps_axis_kind by_name = ps_axis_name_kind(axis->name);
    return by_name == PS_AXIS_UNKNOWN && reciprocal ? PS_AXIS_DETECTOR : by_name;
}

/* "Qx [A^-1], Qy [A^-1], Rx [nm], Ry (a scan axis)" */
static void list_axes(const ps_axis *axes, int rank, char *text, size_t room) {
    static const char *const marks[] = {"", " (marked scan)", " (marked detector)"};
    size_t used = 0;
    for (int i = 0; i < rank && used < room; i++) {
        const ps_axis *a = &axes[i];
        used += (size_t)snprintf(text + used, room - used, "%s%s%s%s%s%s", i ? ", " : "", a->name[0] ? a->name : "?",
                                 a->step.unit[0] ? " [" : "", a->step.unit, a->step.unit[0] ? "]" : "", marks[a->kind]);
    }
}

ps_code ps_axis_order_check(ps_reader *reader, const ps_axis *axes, int rank, const char *where, ps_error *error) {
    int n_detector = 0, n_scan = 0;
    bool wrong = false;
    for (int i = 0; i < rank && i < MOST_AXES; i++) {
        ps_axis_kind kind = kind_of(&axes[i]), there = i < rank - 2 ? PS_AXIS_SCAN : PS_AXIS_DETECTOR;
        n_detector += kind == PS_AXIS_DETECTOR;
        n_scan += kind == PS_AXIS_SCAN;
        wrong |= kind != PS_AXIS_UNKNOWN && kind != there;
    }
    if (!wrong) return PS_OK;
    char list[400];
    list_axes(axes, rank, list, sizeof list);
    if (n_detector == rank || n_scan == rank) { /* all of one kind tell no order */
        ps_reader_note(reader,
                       "warning: the axes of %s, %s, are all said to be the %s's: taken as scan axes first, then detector row and column",
                       where, list, n_scan ? "scan" : "detector");
        return PS_OK;
    }
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: the axes of %s are %s; expected the scan's axes first, then detector row and detector column: save it transposed",
                   reader->path, where, list);
}

void ps_axis_take_steps(ps_reader *reader, const ps_axis *axes, int rank) {
    if (rank == 4) ps_calibration_take_step(reader, (ps_quantity[2]){axes[0].step, axes[1].step});
    ps_calibration_take_pitch(reader, (ps_quantity[2]){axes[rank - 2].step, axes[rank - 1].step});
}
