#include "core/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/assert.h"
#include "core/regular.h"

char *ps_text_format(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int used = vasprintf(&text, format, arguments);
    va_end(arguments);
    return used < 0 ? NULL : text;
}

char *ps_text_replace(const char *text, const char *old, const char *replacement) {
    PS_ASSERT(*old);
    char *filled = strdup(text);
    size_t done = 0;
    for (char *at; filled && (at = strstr(filled + done, old)) != NULL;) {
        size_t before = (size_t)(at - filled);
        char *longer = ps_text_format("%.*s%s%s", (int)before, filled, replacement, at + strlen(old));
        free(filled);
        filled = longer;
        done = before + strlen(replacement);
    }
    return filled;
}

enum { LONGEST_COMPARED = 64 };

static size_t edit_distance(const char *a, const char *b) {
    size_t n = strnlen(a, LONGEST_COMPARED), m = strnlen(b, LONGEST_COMPARED);
    size_t row[LONGEST_COMPARED + 1];
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[m];
}

const char *ps_text_nearest(const char *text, const char *const *candidates, size_t n_candidates) {
    const char *best = NULL;
    size_t best_distance = strlen(text) / 3 + 2; /* farther than this is no slip */
    for (size_t i = 0; i < n_candidates; i++) {
        size_t distance = edit_distance(text, candidates[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best;
}

ps_code ps_text_read_file(const char *path, char **text, size_t *bytes, ps_error *error) {
    ps_code code = PS_OK;
    char *content = NULL;
    size_t used = 0, room = 0;
    *text = NULL;
    int descriptor = -1;
    PS_TRY(ps_regular_open(path, PS_E_IO, &descriptor, error));
    FILE *file = fdopen(descriptor, "rb");
    if (!file) {
        close(descriptor);
        return PS_FAIL(error, PS_E_IO, "%s: cannot open: %s", path, strerror(errno));
    }
    for (;;) {
        if (used + 1 >= room) {
            room = room ? 2 * room : 65536;
            char *larger = realloc(content, room);
            PS_GO_ALLOC(error, larger);
            content = larger;
        }
        size_t got = fread(content + used, 1, room - used - 1, file);
        used += got;
        if (got == 0) break;
    }
    if (ferror(file)) {
        code = PS_FAIL(error, PS_E_IO, "%s: cannot read: %s", path, strerror(errno));
        goto done;
    }
    content[used] = '\0';
    *text = content;
    if (bytes) *bytes = used;
    content = NULL;
done:
    free(content);
    fclose(file);
    return code;
}

char *ps_path_resolve(const char *directory, const char *path) {
    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0')) {
        const char *home = getenv("HOME");
        return ps_text_format("%s%s", home ? home : "", path + 1);
    }
    if (path[0] == '/') return strdup(path);
    if (directory[0] == '/') return ps_text_format("%s/%s", directory, path);
    char *here = getcwd(NULL, 0);
    if (!here) return NULL;
    char *resolved = strcmp(directory, ".") == 0 ? ps_text_format("%s/%s", here, path) : ps_text_format("%s/%s/%s", here, directory, path);
    free(here);
    return resolved;
}

char *ps_path_directory(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    if (slash == path) return strdup("/");
    return strndup(path, (size_t)(slash - path));
}

const char *ps_text_bytes(double bytes, char text[PS_BYTES_TEXT]) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (bytes >= 1024.0 && unit < 4) {
        bytes /= 1024.0;
        unit++;
    }
    snprintf(text, PS_BYTES_TEXT, unit == 0 || bytes >= 999.5 ? "%.0f %s" : "%.3g %s", bytes, units[unit]);
    return text;
}
