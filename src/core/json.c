#include "core/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "core/text.h"
#include "core/utf8.h"

enum { POINTER_TEXT = 512, FOUND_TEXT = 96, MESSAGE_TEXT = 640 };
static const double largest_exact_integer = 9007199254740992.0; /* 2^53: beyond it a double skips integers */

/* --- parsing --- */

static void locate(const char *text, const char *at, int64_t *line, int64_t *column) {
    *line = *column = 1;
    for (const char *c = text; c < at; c++) {
        *column = *c == '\n' ? 1 : *column + 1;
        *line += *c == '\n';
    }
}

static ps_code fail_at(const char *text, const char *at, const char *what, const char *problem, ps_error *error) {
    int64_t line, column;
    locate(text, at, &line, &column);
    return PS_FAIL(error, PS_E_JOB, "%s: line %" PRId64 ", near column %" PRId64 ": %s", what, line, column, problem);
}

/* Where a comment begins when that is what stopped the parser, which stops at it, a little before, or behind its first character. */
static const char *find_comment(const char *text, const char *at, const char *end) {
    if (at > text && at[-1] == '/') at--;
    while (at < end && strchr(" \t\r\n,", *at)) at++;
    return at < end && (*at == '#' || (*at == '/' && at + 1 < end && (at[1] == '/' || at[1] == '*'))) ? at : NULL;
}

static ps_code fail_syntax(const char *text, const char *at, const char *end, const char *what, const char *problem, ps_error *error) {
    const char *comment = find_comment(text, at, end);
    if (comment) return fail_at(text, comment, what, "JSON has no comments; remove it", error);
    return fail_at(text, at, what, problem, error);
}

static ps_code check_values(const ps_json *place, ps_error *error);

static ps_code check_member(const ps_json *place, const cJSON *child, int64_t index, ps_error *error) {
    ps_json member = {.value = child, .parent = place, .key = child->string, .index = index};
    if (child->string)
        for (const cJSON *other = child->next; other; other = other->next)
            if (strcmp(child->string, other->string) == 0) return ps_json_refuse(&member, error, "the key is there twice");
    return check_values(&member, error);
}

/* What cJSON lets through: duplicate keys, numbers that overflow. */
static ps_code check_values(const ps_json *place, ps_error *error) {
    int64_t index = 0;
    if (cJSON_IsNumber(place->value) && !isfinite(place->value->valuedouble))
        return ps_json_refuse(place, error, "the number is too large");
    for (const cJSON *child = place->value->child; child; child = child->next) PS_TRY(check_member(place, child, index++, error));
    return PS_OK;
}

/* "\\u0000" whose backslash is not itself escaped; NULL: none. */
static const char *find_escaped_nul(const char *text) {
    for (const char *at = strstr(text, "\\u0000"); at; at = strstr(at + 1, "\\u0000")) {
        size_t n_before = 0;
        while (at - n_before > text && at[-1 - (ptrdiff_t)n_before] == '\\') n_before++;
        if (n_before % 2 == 0) return at;
    }
    return NULL;
}

/* JSON is UTF-8; other bytes would go as they are into file names and outputs. */
static ps_code check_encoding(const char *text, size_t bytes, const char *what, ps_error *error) {
    const char *other = ps_utf8_other_mark(text, bytes), *bad = ps_utf8_find_bad(text, bytes);
    char problem[128];
    if (other) return PS_FAIL(error, PS_E_JOB, "%s: begins with the byte order mark of %s; expected UTF-8: save it as UTF-8", what, other);
    if (!bad) return PS_OK;
    snprintf(problem, sizeof problem, "byte %zu of the text (0x%02X) is not UTF-8; save it as UTF-8", (size_t)(bad - text),
             (unsigned)(unsigned char)*bad);
    return fail_at(text, bad, what, problem, error);
}

ps_code ps_json_parse(const char *text, size_t bytes, const char *what, cJSON **json, ps_error *error) {
    const char *end = text + bytes, *at = NULL, *nul = memchr(text, 0, bytes);
    *json = NULL;
    PS_TRY(check_encoding(text, bytes, what, error));
    if (nul) return fail_at(text, nul, what, "a NUL character; expected JSON text in UTF-8", error);
    const char *escaped_nul = find_escaped_nul(text);
    if (escaped_nul) return fail_at(text, escaped_nul, what, "\\u0000 is not allowed", error);
    cJSON *parsed = cJSON_ParseWithLengthOpts(text, bytes, &at, false);
    if (!parsed) {
        if (!at || at > end) at = end;
        return fail_syntax(text, at, end, what, end - at <= 1 ? "this is not JSON, or it ends too early" : "this is not JSON", error);
    }
    ps_json root = ps_json_root(parsed, what);
    while (at < end && strchr(" \t\r\n", *at)) at++;
    ps_code code =
        at == end ? check_values(&root, error) : fail_syntax(text, at, end, what, "more text after the end of the JSON value", error);
    if (code != PS_OK)
        cJSON_Delete(parsed);
    else
        *json = parsed;
    return code;
}

/* --- places --- */

ps_json ps_json_root(const cJSON *value, const char *where) {
    return (ps_json){.value = value, .where = where};
}

ps_json ps_json_member(const ps_json *object, const char *key) {
    const cJSON *value = object->value ? cJSON_GetObjectItemCaseSensitive(object->value, key) : NULL;
    return (ps_json){.value = value, .parent = object, .key = key};
}

ps_json ps_json_element(const ps_json *array, int64_t index) {
    PS_ASSERT(index >= 0 && index <= INT32_MAX);
    return (ps_json){.value = cJSON_GetArrayItem(array->value, (int)index), .parent = array, .index = index};
}

ps_json ps_json_next(const ps_json *element) {
    PS_ASSERT(element->value);
    return (ps_json){.value = element->value->next, .parent = element->parent, .index = element->index + 1};
}

bool ps_json_is_null(const ps_json *place) {
    return place->value && cJSON_IsNull(place->value);
}

/* Appends the pointer of place (RFC 6901) to text and returns the document's name. */
static const char *write_pointer(const ps_json *place, char *text, size_t room) {
    if (!place->parent) {
        text[0] = '\0';
        return place->where;
    }
    const char *where = write_pointer(place->parent, text, room);
    size_t used = strlen(text);
    if (!place->key) {
        snprintf(text + used, room - used, "/%" PRId64, place->index);
        return where;
    }
    if (used + 1 < room) text[used++] = '/';
    for (const char *c = place->key; *c && used + 3 < room; c++) {
        if (*c == '~' || *c == '/') text[used++] = '~';
        text[used++] = *c == '~' ? '0' : *c == '/' ? '1' : *c;
    }
    text[used] = '\0';
    return where;
}

static void write_found(const cJSON *value, char *text, size_t room) {
    char *printed = value ? cJSON_PrintUnformatted(value) : NULL;
    size_t shown = room - 4;
    if (!value)
        snprintf(text, room, "nothing");
    else if (!printed)
        snprintf(text, room, "a value");
    else if (strlen(printed) < room)
        strcpy(text, printed);
    else {
        while (shown > 0 && ((unsigned char)printed[shown] & 0xC0) == 0x80) shown--; /* keep UTF-8 characters whole */
        snprintf(text, room, "%.*s...", (int)shown, printed);
    }
    cJSON_free(printed);
}

static ps_code report(const ps_json *place, ps_error *error, const char *message) {
    char pointer[POINTER_TEXT];
    const char *where = write_pointer(place, pointer, sizeof pointer);
    return PS_FAIL(error, PS_E_JOB, "%s%s%s: %s", where, *pointer ? ": " : "", pointer, message);
}

ps_code ps_json_fail(const ps_json *place, ps_error *error, const char *expected, ...) {
    char found[FOUND_TEXT], message[MESSAGE_TEXT], wanted[MESSAGE_TEXT - FOUND_TEXT - 32];
    va_list arguments;
    va_start(arguments, expected);
    vsnprintf(wanted, sizeof wanted, expected, arguments);
    va_end(arguments);
    write_found(place->value, found, sizeof found);
    snprintf(message, sizeof message, "found %s, expected %s", found, wanted);
    return report(place, error, message);
}

ps_code ps_json_refuse(const ps_json *place, ps_error *error, const char *message, ...) {
    char text[MESSAGE_TEXT];
    va_list arguments;
    va_start(arguments, message);
    vsnprintf(text, sizeof text, message, arguments);
    va_end(arguments);
    return report(place, error, text);
}

/* --- typed values --- */

ps_code ps_json_require(const ps_json *place, ps_error *error) {
    return place->value ? PS_OK : ps_json_refuse(place, error, "missing; it is required");
}

static void list_keys(const char *const *keys, size_t n_keys, char *text, size_t room) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n_keys && used < room; i++) used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "", keys[i]);
}

/* "rotation" for "rotation_deg": one begins with the other. */
static const char *begins_alike(const char *text, const char *const *keys, size_t n_keys) {
    for (size_t i = 0; i < n_keys; i++) {
        size_t n = strlen(text) < strlen(keys[i]) ? strlen(text) : strlen(keys[i]);
        if (n >= 3 && strncmp(text, keys[i], n) == 0) return keys[i];
    }
    return NULL;
}

static ps_code unknown_key(const ps_json *place, const char *const *keys, size_t n_keys, ps_error *error) {
    char known[MESSAGE_TEXT - 128];
    const char *nearest = ps_text_nearest(place->key, keys, n_keys);
    if (!nearest) nearest = begins_alike(place->key, keys, n_keys);
    if (n_keys == 0) return ps_json_refuse(place, error, "unknown key; none is known here");
    if (nearest) return ps_json_refuse(place, error, "unknown key; did you mean \"%s\"?", nearest);
    list_keys(keys, n_keys, known, sizeof known);
    return ps_json_refuse(place, error, "unknown key; known here: %s", known);
}

ps_code ps_json_object(const ps_json *place, const char *const *keys, size_t n_keys, ps_error *error) {
    if (!place->value) return PS_OK;
    if (!cJSON_IsObject(place->value)) return ps_json_fail(place, error, "an object");
    for (const cJSON *child = place->value->child; child; child = child->next) {
        size_t i = 0;
        while (i < n_keys && strcmp(keys[i], child->string) != 0) i++;
        ps_json member = {.value = child, .parent = place, .key = child->string};
        if (i == n_keys) return unknown_key(&member, keys, n_keys, error);
    }
    return PS_OK;
}

ps_code ps_json_number(const ps_json *place, double minimum, double maximum, double *number, ps_error *error) {
    PS_ASSERT(minimum <= maximum);
    if (!place->value) return PS_OK;
    double value = place->value->valuedouble;
    if (!cJSON_IsNumber(place->value)) return ps_json_fail(place, error, "a number");
    if (!(value >= minimum && value <= maximum)) {
        if (isinf(maximum)) return ps_json_fail(place, error, "a number of at least %g", minimum);
        return ps_json_fail(place, error, "a number from %g to %g", minimum, maximum);
    }
    *number = value;
    return PS_OK;
}

ps_code ps_json_integer(const ps_json *place, int64_t minimum, int64_t maximum, int64_t *integer, ps_error *error) {
    PS_ASSERT(minimum <= maximum);
    if (!place->value) return PS_OK;
    double value = place->value->valuedouble;
    if (!cJSON_IsNumber(place->value) || value != floor(value) || !(fabs(value) <= largest_exact_integer) || (int64_t)value < minimum ||
        (int64_t)value > maximum) {
        if (maximum == INT64_MAX) return ps_json_fail(place, error, "a whole number of at least %" PRId64, minimum);
        return ps_json_fail(place, error, "a whole number from %" PRId64 " to %" PRId64, minimum, maximum);
    }
    *integer = (int64_t)value;
    return PS_OK;
}

ps_code ps_json_bool(const ps_json *place, bool *flag, ps_error *error) {
    if (!place->value) return PS_OK;
    if (!cJSON_IsBool(place->value)) return ps_json_fail(place, error, "true or false");
    *flag = cJSON_IsTrue(place->value);
    return PS_OK;
}

ps_code ps_json_text(const ps_json *place, const char **text, ps_error *error) {
    if (!place->value) return PS_OK;
    if (!cJSON_IsString(place->value) || !place->value->valuestring[0]) return ps_json_fail(place, error, "a text that is not empty");
    *text = place->value->valuestring;
    return PS_OK;
}

ps_code ps_json_choice(const ps_json *place, const char *const *names, size_t n_names, int *choice, ps_error *error) {
    char known[MESSAGE_TEXT / 2];
    if (!place->value) return PS_OK;
    list_keys(names, n_names, known, sizeof known);
    if (!cJSON_IsString(place->value)) return ps_json_fail(place, error, "one of: %s", known);
    for (size_t i = 0; i < n_names; i++)
        if (strcmp(place->value->valuestring, names[i]) == 0) {
            *choice = (int)i;
            return PS_OK;
        }
    const char *nearest = ps_text_nearest(place->value->valuestring, names, n_names);
    if (nearest) return ps_json_fail(place, error, "one of: %s; did you mean \"%s\"?", known, nearest);
    return ps_json_fail(place, error, "one of: %s", known);
}

static bool is_pair(const ps_json *place) {
    return cJSON_IsArray(place->value) && cJSON_GetArraySize(place->value) == 2;
}

ps_code ps_json_pair(const ps_json *place, double minimum, double maximum, double pair[2], ps_error *error) {
    if (!place->value) return PS_OK;
    if (!is_pair(place)) return ps_json_fail(place, error, "two numbers [row, column]");
    for (int i = 0; i < 2; i++) {
        ps_json element = ps_json_element(place, i);
        PS_TRY(ps_json_number(&element, minimum, maximum, &pair[i], error));
    }
    return PS_OK;
}

ps_code ps_json_integer_pair(const ps_json *place, int64_t minimum, int64_t maximum, int64_t *first, int64_t *second, ps_error *error) {
    if (!place->value) return PS_OK;
    if (!is_pair(place)) return ps_json_fail(place, error, "two whole numbers [rows, columns]");
    ps_json row = ps_json_element(place, 0), column = ps_json_element(place, 1);
    PS_TRY(ps_json_integer(&row, minimum, maximum, first, error));
    return ps_json_integer(&column, minimum, maximum, second, error);
}
