#include "input/units.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct {
    const char *name;
    double value;
} unit;

/* Without brackets and blanks around: "[nm]" is "nm". */
static bool is_called(const char *text, size_t n, const char *name) {
    return strlen(name) == n && memcmp(text, name, n) == 0;
}

static double look_up(const char *text, const unit *units, size_t n_units) {
    text += strspn(text, " [(");
    size_t n = strcspn(text, " ])");
    for (size_t i = 0; i < n_units; i++)
        if (is_called(text, n, units[i].name)) return units[i].value;
    return NAN;
}

#define LOOK_UP(text, units) look_up(text, units, sizeof(units) / sizeof *(units))

static const unit lengths[] = {{"A", 1},   {"Å", 1},     {"Å", 1},    {"Angstrom", 1}, {"angstrom", 1}, {"Angstroms", 1}, {"angstroms", 1},
                               {"nm", 10}, {"pm", 0.01}, {"um", 1e4}, {"µm", 1e4},     {"μm", 1e4},     {"m", 1e10}};
static const unit angles[] = {{"mrad", 1}, {"rad", 1e3}, {"deg", 17.453292519943295}, {"degrees", 17.453292519943295}};

double ps_unit_length_A(const char *text) {
    return LOOK_UP(text, lengths);
}
double ps_unit_angle_mrad(const char *text) {
    return LOOK_UP(text, angles);
}

/* "1/x", "x^-1", "x^{-1}", "x-1", "x⁻¹" with x a length */
double ps_unit_reciprocal_inv_A(const char *text) {
    static const char *const powers[] = {"^-1", "^{-1}", "^(-1)", "**-1", "⁻¹", "-1"};
    char name[32];
    text += strspn(text, " [(");
    if (strncmp(text, "1/", 2) == 0) return 1 / ps_unit_length_A(text + 2);
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++) {
        const char *power = strstr(text, powers[i]);
        if (!power || power == text || (size_t)(power - text) >= sizeof name) continue;
        memcpy(name, text, (size_t)(power - text));
        name[power - text] = '\0';
        return 1 / ps_unit_length_A(name);
    }
    return NAN;
}
