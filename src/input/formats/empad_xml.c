#include "input/formats/empad_xml.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/formats/xml.h"

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

/* Paths were those of the instrument's computer: what is behind the last "/" or "\". */
static void take_raw_file(ps_empad_metadata *m, const char *path) {
    const char *slash = strrchr(path, '/'), *back = strrchr(path, '\\'), *last = slash > back ? slash : back;
    snprintf(m->raw_file, sizeof m->raw_file, "%s", last ? last + 1 : path);
}

/* Adds a scan that is there as a whole; the one that was acquired goes in front. */
static void add_scan(ps_empad_metadata *m, const ps_empad_scan *scan, bool acquired) {
    if (scan->rows <= 0 || scan->columns <= 0 || m->n_scans == PS_EMPAD_MAX_SCANS) return;
    for (int i = 0; i < m->n_scans; i++)
        if (m->scans[i].rows == scan->rows && m->scans[i].columns == scan->columns) {
            if (acquired && i > 0) m->scans[i] = m->scans[0], m->scans[0] = *scan;
            return;
        }
    m->scans[m->n_scans] = *scan;
    if (acquired && m->n_scans > 0) m->scans[m->n_scans] = m->scans[0], m->scans[0] = *scan;
    m->n_scans++;
}

/* Sizes are in pieces: a scan is whole when the element around it ends. */
typedef struct {
    ps_empad_metadata *metadata;
    ps_empad_scan parameters, pixels; /* of scan_parameters, of root/pix_x and pix_y */
} parser;

static void take_parameters(const ps_xml_element *e, const char *text, parser *p) {
    char mode[32] = "";
    if (ps_xml_is(e, "scan_parameters/scan_resolution_x")) p->parameters.columns = parse_count(text);
    if (ps_xml_is(e, "scan_parameters/scan_resolution_y")) p->parameters.rows = parse_count(text);
    if (ps_xml_is(e, "scan_parameters/series_count") && ps_xml_attribute(e, 1, "mode", mode, sizeof mode) && strcmp(mode, "acquire") == 0)
        p->metadata->n_series = parse_count(text);
    if (!ps_xml_is(e, "scan_parameters")) return;
    bool said = ps_xml_attribute(e, 0, "mode", mode, sizeof mode);
    snprintf(p->parameters.place, sizeof p->parameters.place, "scan_parameters%s%s", said ? " mode " : "", mode);
    add_scan(p->metadata, &p->parameters, strcmp(mode, "acquire") == 0);
    p->parameters = (ps_empad_scan){0};
}

static void take_scan(const ps_xml_element *e, const char *text, parser *p) {
    double shape[2];
    take_parameters(e, text, p);
    if (ps_xml_is(e, "root/pix_x")) p->pixels.columns = parse_count(text);
    if (ps_xml_is(e, "root/pix_y")) p->pixels.rows = parse_count(text);
    if (ps_xml_is(e, "root/series_count")) p->metadata->n_series = parse_count(text);
    if (ps_xml_is(e, "root/scan/shape") && parse_pair(text, shape) && shape[0] < INT32_MAX && shape[1] < INT32_MAX)
        add_scan(p->metadata, &(ps_empad_scan){(int64_t)shape[0], (int64_t)shape[1], "scan/shape"}, true);
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
    parser *p = context;
    ps_empad_metadata *m = p->metadata;
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
    take_scan(e, text, p);
    take_instrument(e, text, m);
}

/* Marks of UTF-8 and blanks in front of a document are passed over. */
static size_t leading_bytes(const char *text, size_t n_bytes) {
    size_t n = n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (n < n_bytes && strchr(" \t\r\n", text[n]) && text[n]) n++;
    return n;
}

ps_code ps_empad_parse(const char *name, const char *text, size_t n_bytes, ps_empad_metadata *metadata, ps_error *error) {
    parser p = {.metadata = metadata, .pixels = {.place = "pix_y and pix_x"}};
    size_t leading = leading_bytes(text, n_bytes);
    *metadata = (ps_empad_metadata){.voltage_V = NAN, .pitch_mrad = NAN, .field_m = {NAN, NAN}, .scale_factor = NAN};
    PS_TRY(ps_xml_walk(name, text + leading, n_bytes - leading, take_element, &p, error));
    add_scan(metadata, &p.pixels, false);
    if (!metadata->raw_file[0]) return PS_FAIL(error, PS_E_INPUT, "%s: an XML file that names no EMPAD raw file (root/raw_file)", name);
    return PS_OK;
}

/* The number behind a letter that begins a word, such as the 128 of "_x128_"; end: behind it. 0: none there. */
static int64_t number_behind(const char *at, char letter, const char **end) {
    if (tolower((unsigned char)*at) != letter || !isdigit((unsigned char)at[1])) return 0;
    size_t digits = strspn(at + 1, "0123456789");
    *end = at + 1 + digits;
    return digits <= 9 ? strtoll(at + 1, NULL, 10) : 0;
}

bool ps_empad_name_scan(const char *name, int64_t *rows, int64_t *columns) {
    for (const char *at = name; *at; at++) {
        const char *end = NULL;
        if (at > name && isalnum((unsigned char)at[-1])) continue;
        int64_t x = number_behind(at, 'x', &end), y = 0;
        if (x > 0 && (*end == '_' || *end == '-')) y = number_behind(end + 1, 'y', &end);
        if (y <= 0 || isalnum((unsigned char)*end)) continue;
        *rows = y;
        *columns = x;
        return true;
    }
    return false;
}
