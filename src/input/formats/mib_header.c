#include "input/formats/mib_header.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_BYTES = 64 };
enum {
    FIELD_NUMBER = 1,
    FIELD_HEADER_BYTES = 2,
    FIELD_CHIPS = 3,
    FIELD_COLUMNS = 4,
    FIELD_ROWS = 5,
    FIELD_TYPE = 6,
    FIELD_LAYOUT = 7,
    FIELD_TIME = 9
};

/* Copies field number `index` of a comma-separated text without blanks around it; false: not there or too long. */
static bool get_field(const char *text, size_t n_bytes, int index, char field[FIELD_BYTES]) {
    const char *at = text, *end = text + n_bytes;
    for (; index > 0; index--) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        if (!comma) return false;
        at = comma + 1;
    }
    const char *stop = memchr(at, ',', (size_t)(end - at));
    if (!stop) return false;
    while (at < stop && isspace((unsigned char)*at)) at++;
    while (stop > at && isspace((unsigned char)stop[-1])) stop--;
    if (stop - at >= FIELD_BYTES) return false;
    memcpy(field, at, (size_t)(stop - at));
    field[stop - at] = '\0';
    return true;
}

static bool get_number(const char *text, size_t n_bytes, int index, int64_t low, int64_t high, int64_t *value) {
    char field[FIELD_BYTES], *end = NULL;
    if (!get_field(text, n_bytes, index, field) || !isdigit((unsigned char)field[0])) return false;
    errno = 0;
    *value = strtoll(field, &end, 10);
    return !errno && *end == '\0' && *value >= low && *value <= high;
}

static ps_code parse_type(const char *name, const char *text, size_t n_bytes, ps_mib_header *header, ps_error *error) {
    static const struct {
        const char *name;
        ps_dtype dtype;
        int bits;
    } types[] = {{"U08", PS_U8, 6}, {"U16", PS_U16, 12}, {"U32", PS_U32, 24}};
    char field[FIELD_BYTES] = "";
    bool there = get_field(text, n_bytes, FIELD_TYPE, field);
    for (size_t i = 0; there && i < sizeof types / sizeof *types; i++)
        if (strcmp(field, types[i].name) == 0) {
            header->dtype = types[i].dtype;
            header->counter_bits = types[i].bits;
            return PS_OK;
        }
    if (strcmp(field, "R64") == 0)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: a MIB file in raw mode (R64), which is not read; save or convert it in binary mode (U08, U16, U32)", name);
    return PS_FAIL(error, PS_E_INPUT, "%s: the MIB header says pixels of type '%s', expected U08, U16 or U32", name, field);
}

/* Bits of the counter, the field behind the exposure in the header's extension "MQ1A,time,exposure,bits,". */
static void parse_extension(const char *text, size_t n_bytes, ps_mib_header *header) {
    const char *extension = memmem(text, n_bytes, ",MQ1A,", 6);
    int64_t bits = 0;
    if (!extension) return;
    const char *fields = extension + 1;
    if (get_number(fields, n_bytes - (size_t)(fields - text), 3, 1, 24, &bits) && bits <= 8 * (int64_t)ps_dtype_bytes(header->dtype))
        header->counter_bits = (int)bits;
}

/* "2021-05-07 18:51:10.905800" becomes ISO 8601 by its T. */
static void parse_time(const char *text, size_t n_bytes, ps_mib_header *header) {
    if (!get_field(text, n_bytes, FIELD_TIME, header->time)) return;
    char *blank = strchr(header->time, ' ');
    if (blank) *blank = 'T';
}

ps_code ps_mib_parse(const char *name, const char *text, size_t n_bytes, ps_mib_header *header, ps_error *error) {
    enum { MOST_PIXELS = 1 << 16, LEAST_HEADER = 64 };
    int64_t chips = 0;
    *header = (ps_mib_header){0};
    if (n_bytes < 4 || memcmp(text, "MQ1,", 4) != 0)
        return PS_FAIL(error, PS_E_INPUT, "%s: no MIB header (MQ1) where one should begin", name);
    if (!get_number(text, n_bytes, FIELD_HEADER_BYTES, LEAST_HEADER, PS_MIB_MAX_HEADER, &header->header_bytes))
        return PS_FAIL(error, PS_E_INPUT, "%s: the MIB header does not say its length (%d to %d bytes)", name, LEAST_HEADER,
                       PS_MIB_MAX_HEADER);
    if ((size_t)header->header_bytes < n_bytes)
        n_bytes = (size_t)header->header_bytes;
    else if ((size_t)header->header_bytes > n_bytes)
        return PS_FAIL(error, PS_E_INPUT, "%s: ends inside the MIB header, which says that it has %" PRId64 " bytes: there are %zu", name,
                       header->header_bytes, n_bytes);
    if (!get_number(text, n_bytes, FIELD_CHIPS, 1, 64, &chips) ||
        !get_number(text, n_bytes, FIELD_COLUMNS, 1, MOST_PIXELS, &header->columns) ||
        !get_number(text, n_bytes, FIELD_ROWS, 1, MOST_PIXELS, &header->rows))
        return PS_FAIL(error, PS_E_INPUT, "%s: the MIB header does not say how many chips, columns and rows there are (1 to %d)", name,
                       MOST_PIXELS);
    header->n_chips = (int)chips;
    if (!get_number(text, n_bytes, FIELD_NUMBER, 0, INT64_MAX / 2, &header->number)) header->number = -1;
    PS_TRY(parse_type(name, text, n_bytes, header, error));
    char layout[FIELD_BYTES] = "";
    if (get_field(text, n_bytes, FIELD_LAYOUT, layout)) snprintf(header->layout, sizeof header->layout, "%.15s", layout);
    size_t length = strlen(header->layout);
    header->has_gap = length > 0 && header->layout[length - 1] == 'G';
    parse_time(text, n_bytes, header);
    parse_extension(text, n_bytes, header);
    return PS_OK;
}

/* Letters and digits of a key in lower case: without blanks, signs and what is in brackets. */
static void reduce_key(const char *key, size_t n_bytes, char reduced[FIELD_BYTES]) {
    size_t n = 0;
    for (size_t i = 0; i < n_bytes && key[i] != '(' && n + 1 < FIELD_BYTES; i++)
        if (isalnum((unsigned char)key[i])) reduced[n++] = (char)tolower((unsigned char)key[i]);
    reduced[n] = '\0';
}

static int64_t parse_positive(const char *text) {
    char *end = NULL;
    text += strspn(text, " \t");
    errno = 0;
    long long value = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : 0;
    return !errno && end && strchr(" \t\r\n", *end) && value <= INT32_MAX ? value : 0;
}

static void take_line(const char *key, const char *value, ps_mib_companion *c) {
    static const char *const rows[] = {"scany", "scansizey", "scanrows", "scanheight", "scanpixelsy", "nscany", "scanlines"};
    static const char *const columns[] = {"scanx", "scansizex", "scancolumns", "scanwidth", "scanpixelsx", "nscanx", "pointsperline"};
    int64_t number = parse_positive(value);
    if (strcmp(key, "framesinacquisition") == 0) c->n_frames = number;
    if (strcmp(key, "framespertrigger") == 0) c->frames_per_trigger = number;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(key, rows[i]) == 0) c->scan_rows = number;
        if (strcmp(key, columns[i]) == 0) c->scan_columns = number;
    }
}

void ps_mib_parse_companion(const char *text, ps_mib_companion *companion) {
    *companion = (ps_mib_companion){0};
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n"), key_bytes = strcspn(line, ":=,\t\n");
        const char *open = memchr(line, '(', key_bytes);
        if (open) { /* explanations in brackets hold commas */
            const char *close = memchr(open, ')', n - (size_t)(open - line));
            if (close) key_bytes = (size_t)(close - line) + strcspn(close, ":=\t\n");
        }
        char key[FIELD_BYTES];
        reduce_key(line, key_bytes, key);
        if (key_bytes < n) take_line(key, line + key_bytes + 1 + strspn(line + key_bytes + 1, ":= \t"), companion);
        line += n + (line[n] == '\n');
    }
    if (companion->scan_rows <= 0 || companion->scan_columns <= 0) companion->scan_rows = companion->scan_columns = 0;
}
