#include "tasks/fit/tries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "hdf5/write.h"
#include "store/publish.h"

void ps_fit_tries_free(ps_fit_tries *tries) {
    for (int64_t i = 0; i < tries->n; i++) free(tries->items[i].source);
    free(tries->items);
    free(tries->path);
    *tries = (ps_fit_tries){0};
}

static ps_code add(ps_fit_tries *tries, const char *source, int64_t count, ps_error *error) {
    struct ps_fit_try *items = realloc(tries->items, (size_t)(tries->n + 1) * sizeof *items);
    if (items) tries->items = items;
    char *copy = items ? strdup(source) : NULL;
    if (!copy) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a list of fits");
    items[tries->n++] = (struct ps_fit_try){copy, count};
    return PS_OK;
}

/* Lines "count source". */
static ps_code parse(ps_fit_tries *tries, char *text, ps_error *error) {
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *after = NULL;
        long long count = strtoll(line, &after, 10);
        if (after == line || *after != ' ' || count < 1)
            return PS_FAIL(error, PS_E_IO, "%s: found \"%s\", expected a count and a recording; remove the file", tries->path, line);
        PS_TRY(add(tries, after + 1, (int64_t)count, error));
    }
    return PS_OK;
}

ps_code ps_fit_tries_open(const char *output, bool forget, ps_fit_tries *tries, ps_error *error) {
    char *text = NULL;
    size_t bytes = 0;
    *tries = (ps_fit_tries){.path = ps_text_format("%s.fit-tries", output)};
    if (!tries->path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    if (forget) unlink(tries->path);
    if (access(tries->path, F_OK) != 0) return PS_OK;
    PS_TRY(ps_text_read_file(tries->path, &text, &bytes, error));
    ps_code code = parse(tries, text, error);
    free(text);
    return code;
}

static struct ps_fit_try *find(const ps_fit_tries *tries, const char *source) {
    for (int64_t i = 0; i < tries->n; i++)
        if (strcmp(tries->items[i].source, source) == 0) return &tries->items[i];
    return NULL;
}

int64_t ps_fit_tries_count(const ps_fit_tries *tries, const char *source) {
    const struct ps_fit_try *found = find(tries, source);
    return found ? found->count : 0;
}

static ps_code write_lines(const ps_fit_tries *tries, const char *path, ps_error *error) {
    FILE *out = fopen(path, "w");
    bool ok = out != NULL;
    for (int64_t i = 0; ok && i < tries->n; i++)
        if (tries->items[i].count > 0) ok = fprintf(out, "%lld %s\n", (long long)tries->items[i].count, tries->items[i].source) > 0;
    ok = ok && fflush(out) == 0 && fsync(fileno(out)) == 0;
    int problem = errno;
    if (out && fclose(out) != 0) ok = false;
    return ok ? PS_OK : ps_io_fail(error, problem, "%s: cannot be written", path);
}

static ps_code save(const ps_fit_tries *tries, ps_error *error) {
    char *temporary = NULL;
    bool any = false;
    for (int64_t i = 0; i < tries->n; i++) any = any || tries->items[i].count > 0;
    if (!any) {
        unlink(tries->path);
        return PS_OK;
    }
    PS_TRY(ps_publish_temporary(tries->path, &temporary, error));
    ps_code code = write_lines(tries, temporary, error);
    if (code == PS_OK) code = ps_publish_rename(temporary, tries->path, true, error);
    if (code != PS_OK) unlink(temporary);
    free(temporary);
    return code;
}

ps_code ps_fit_tries_begin(ps_fit_tries *tries, int64_t n, const char *const *sources, ps_error *error) {
    for (int64_t i = 0; i < n; i++) {
        struct ps_fit_try *found = find(tries, sources[i]);
        if (found)
            found->count++;
        else
            PS_TRY(add(tries, sources[i], 1, error));
    }
    return save(tries, error);
}

ps_code ps_fit_tries_end(ps_fit_tries *tries, int64_t n, const char *const *sources, bool settled, ps_error *error) {
    for (int64_t i = 0; i < n; i++) {
        struct ps_fit_try *found = find(tries, sources[i]);
        if (found && found->count > 0) found->count = settled ? 0 : found->count - 1;
    }
    return save(tries, error);
}

void ps_fit_tries_forget(ps_fit_tries *tries) {
    for (int64_t i = 0; i < tries->n; i++) tries->items[i].count = 0;
    if (tries->path) unlink(tries->path);
}
