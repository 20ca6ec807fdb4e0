#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/assert.h"

const char *ps_code_name(ps_code code) {
    switch (code) {
#define X(c, status, name) \
    case c: return name;
        PS_CODES(X)
#undef X
    }
    return "unknown error";
}

int ps_code_exit_status(ps_code code) {
    switch (code) {
#define X(c, status, name) \
    case c: return status;
        PS_CODES(X)
#undef X
    }
    return 1;
}

ps_code ps_error_set(ps_error *error, ps_code code, const char *file, int line, const char *format, ...) {
    PS_ASSERT(code != PS_OK);
    if (!error || error->code != PS_OK) return code;
    error->code = code;
    error->file = file;
    error->line = line;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return code;
}

void ps_error_prefix(ps_error *error, const char *format, ...) {
    if (!error || error->code == PS_OK) return;
    char text[PS_ERROR_TEXT];
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (used < 0 || (size_t)used >= sizeof text - 3) return;
    snprintf(text + used, sizeof text - (size_t)used, ": %.*s", (int)(sizeof text - (size_t)used - 3), error->text);
    memcpy(error->text, text, sizeof text);
}

void ps_error_clear(ps_error *error) {
    if (error) *error = (ps_error){0};
}
