#include "input/units.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

typedef struct {
    const char *name;
    double value;
} unit;

/* Without brackets, blanks and TeX's dollars around: "[nm]" is "nm". Whole words may begin with a capital; "m" and "M" are not the same. */
static bool is_called(const char *text, size_t n, const char *name) {
    enum { WORD = 4 };
    return strlen(name) == n && (n < WORD ? memcmp(text, name, n) == 0 : strncasecmp(text, name, n) == 0);
}

static double look_up(const char *text, const unit *units, size_t n_units) {
    text += strspn(text, " [($");
    size_t n = strcspn(text, " ])$");
    for (size_t i = 0; i < n_units; i++)
        if (is_called(text, n, units[i].name)) return units[i].value;
    return NAN;
}

#define LOOK_UP(text, units) look_up(text, units, sizeof(units) / sizeof *(units))

static const unit lengths[] = {{"A", 1},
                               {"Å", 1},
                               {"Å", 1},
                               {"Ang", 1},
                               {"\\AA", 1},
                               {"ang", 1},
                               {"angstrom", 1},
                               {"angstroms", 1},
                               {"Ångström", 1},
                               {"Ångstrom", 1},
                               {"nm", 10},
                               {"nanometer", 10},
                               {"nanometers", 10},
                               {"nanometre", 10},
                               {"nanometres", 10},
                               {"pm", 0.01},
                               {"picometer", 0.01},
                               {"picometers", 0.01},
                               {"um", 1e4},
                               {"µm", 1e4},
                               {"μm", 1e4},
                               {"micron", 1e4},
                               {"microns", 1e4},
                               {"micrometer", 1e4},
                               {"micrometers", 1e4},
                               {"mm", 1e7},
                               {"m", 1e10},
                               {"meter", 1e10},
                               {"meters", 1e10}};
static const unit angles[] = {{"mrad", 1},
                              {"rad", 1e3},
                              {"deg", 17.453292519943295},
                              {"degree", 17.453292519943295},
                              {"degrees", 17.453292519943295},
                              {"urad", 1e-3},
                              {"µrad", 1e-3},
                              {"milliradian", 1},
                              {"milliradians", 1},
                              {"radian", 1e3},
                              {"radians", 1e3}};

double ps_unit_length_A(const char *text) {
    return LOOK_UP(text, lengths);
}
double ps_unit_angle_mrad(const char *text) {
    return LOOK_UP(text, angles);
}

/* "1/x", "1 / x", "x^-1", "x^{-1}", "x-1", "x⁻¹" with x a length */
double ps_unit_reciprocal_inv_A(const char *text) {
    static const char *const powers[] = {"^-1", "^{-1}", "^(-1)", "**-1", "⁻¹", "-1"};
    char name[32];
    text += strspn(text, " [($");
    if (text[0] == '1' && text[1 + strspn(text + 1, " ")] == '/') return 1 / ps_unit_length_A(strchr(text, '/') + 1);
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++) {
        const char *power = strstr(text, powers[i]);
        if (!power || power == text || (size_t)(power - text) >= sizeof name) continue;
        memcpy(name, text, (size_t)(power - text));
        name[power - text] = '\0';
        return 1 / ps_unit_length_A(name);
    }
    return NAN;
}
