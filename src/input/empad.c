#include "input/empad.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/xml.h"

static double parse_positive(const char *text) {
    char *end = NULL;
    double value = strtod(text, &end);
    return end != text && isfinite(value) && value > 0 ? value : NAN;
}

static int64_t parse_count(const char *text) {
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && !errno && value > 0 && value <= INT32_MAX ? value : 0;
}

/* "(rows, columns)" or "[a, b]" */
static bool parse_pair(const char *text, double pair[2]) {
    char *end = NULL;
    if (*text != '(' && *text != '[') return false;
    pair[0] = strtod(text + 1, &end);
    end += strspn(end, " ");
    if (*end != ',') return false;
    pair[1] = parse_positive(end + 1);
    return pair[0] > 0 && pair[1] > 0;
}

/* Paths were those of the instrument's computer: what stands behind the last "/" or "\". */
static void take_raw_file(ps_empad_metadata *m, const char *path) {
    const char *slash = strrchr(path, '/'), *back = strrchr(path, '\\'), *last = slash > back ? slash : back;
    snprintf(m->raw_file, sizeof m->raw_file, "%s", last ? last + 1 : path);
}

static void take_scan(const ps_xml_element *e, const char *text, ps_empad_metadata *m) {
    char mode[32];
    double shape[2];
    bool acquired = ps_xml_attribute(e, 1, "mode", mode, sizeof mode) && strcmp(mode, "acquire") == 0;
    if (ps_xml_is(e, "root/pix_x") || (acquired && ps_xml_is(e, "scan_parameters/scan_resolution_x"))) m->scan_columns = parse_count(text);
    if (ps_xml_is(e, "root/pix_y") || (acquired && ps_xml_is(e, "scan_parameters/scan_resolution_y"))) m->scan_rows = parse_count(text);
    if (ps_xml_is(e, "root/series_count") || (acquired && ps_xml_is(e, "scan_parameters/series_count"))) m->n_series = parse_count(text);
    if (ps_xml_is(e, "root/scan/shape") && parse_pair(text, shape) && shape[0] < INT32_MAX && shape[1] < INT32_MAX) {
        m->scan_rows = (int64_t)shape[0];
        m->scan_columns = (int64_t)shape[1];
    }
}

static void take_instrument(const ps_xml_element *e, const char *text, ps_empad_metadata *m) {
    static const char *const voltages[] = {"high_voltage", "source.get_voltage", "ColumnSourceHighVoltage"};
    char path[64];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "iom_measurements/%s", voltages[i]);
        if (ps_xml_is(e, path)) m->voltage_V = parse_positive(text);
    }
    if (ps_xml_is(e, "iom_measurements/calibrated_diffraction_angle")) m->pitch_mrad = 1e3 * parse_positive(text);
    if (ps_xml_is(e, "iom_measurements/optics.get_full_scan_field_of_view")) parse_pair(text, m->field_m);
    if (ps_xml_is(e, "full_scan_field_of_view/y")) m->field_m[0] = parse_positive(text);
    if (ps_xml_is(e, "full_scan_field_of_view/x")) m->field_m[1] = parse_positive(text);
    if (ps_xml_is(e, "full_scan_field_of_view/scale_factor") || ps_xml_is(e, "scan_parameters/scan_size"))
        m->scale_factor = parse_positive(text);
}

static void take_element(const ps_xml_element *e, void *context) {
    ps_empad_metadata *m = context;
    char text[512];
    if (!ps_xml_text(e, text, sizeof text)) return;
    if (ps_xml_is(e, "root/raw_file") && ps_xml_attribute(e, 0, "filename", text, sizeof text))
        take_raw_file(m, text);
    else if (ps_xml_is(e, "root/rawfile/filename"))
        take_raw_file(m, text);
    else if (ps_xml_is(e, "root/timestamp"))
        ps_xml_attribute(e, 0, "isoformat", m->time, sizeof m->time);
    else if (ps_xml_is(e, "sensor/type"))
        m->second_generation = strcmp(text, "EMPAD2") == 0;
    take_scan(e, text, m);
    take_instrument(e, text, m);
}

ps_code ps_empad_parse(const char *name, const char *text, size_t n_bytes, ps_empad_metadata *metadata, ps_error *error) {
    *metadata = (ps_empad_metadata){.voltage_V = NAN, .pitch_mrad = NAN, .field_m = {NAN, NAN}, .scale_factor = NAN};
    PS_TRY(ps_xml_walk(name, text, n_bytes, take_element, metadata, error));
    if (!metadata->raw_file[0]) return PS_FAIL(error, PS_E_INPUT, "%s: an XML file that names no EMPAD raw file (root/raw_file)", name);
    return PS_OK;
}
