#include "input/series.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/regular.h"
#include "core/text.h"
#include "input/name_list.h"
#include "input/preflight.h"
#include "input/series_gaps.h"
#include "input/series_order.h"
#include "input/source.h"

/* Natural order; names that differ only in leading zeros by bytes, so that the order never depends on the file system. */
static int compare_paths(const char *a, const char *b) {
    int order = ps_natural_compare(a, b);
    return order ? order : strcmp(a, b);
}

/* Adds the files that a path or glob matches, in natural order. */
static ps_code expand(const char *path, ps_name_list *files, ps_error *error) {
    struct stat status;
    PS_TRY(ps_preflight_reach(path, error));
    if (stat(path, &status) == 0)
        return ps_name_list_add(files, path) == PS_OK ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate file names");
    glob_t found = {0};
    int result = glob(path, GLOB_BRACE, NULL, &found);
    ps_code code = PS_OK;
    if (result == GLOB_NOMATCH)
        code = PS_FAIL(error, PS_E_INPUT, "series.files: nothing matches %s", path);
    else if (result != 0)
        code = PS_FAIL(error, PS_E_INPUT, "series.files: cannot look for %s: %s", path, strerror(errno));
    for (size_t i = 0; code == PS_OK && i < found.gl_pathc; i++)
        if (ps_name_list_add(files, found.gl_pathv[i]) != PS_OK) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate file names");
    globfree(&found);
    ps_name_list_sort(files, compare_paths);
    return code;
}

static char *make_stem(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    size_t length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    static const char master[] = "_master";
    size_t tail = sizeof master - 1;
    if (length > tail && strncmp(name + length - tail, master, tail) == 0) length -= tail;
    return strndup(name, length);
}

static ps_code make_item(const char *path, const char *dataset, ps_series_item *item, ps_error *error) {
    struct stat status;
    if (stat(path, &status) != 0) return PS_FAIL(error, PS_E_INPUT, "%s: cannot open: %s", path, strerror(errno));
    const char *special = ps_special_file(path);
    if (special) return PS_FAIL(error, PS_E_INPUT, "%s: not a file but %s", path, special);
    item->source = dataset ? ps_text_format("%s:%s", path, dataset) : strdup(path);
    item->stem = make_stem(path);
    if (!item->source || !item->stem) {
        free(item->source);
        free(item->stem);
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the series");
    }
    item->bytes = status.st_size;
    item->mtime_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
    return PS_OK;
}

static ps_code append_pattern(const char *base_directory, const char *pattern, ps_series *series, ps_error *error) {
    ps_code code = PS_OK;
    ps_source parts = {0};
    ps_name_list files = {0};
    char *resolved = ps_path_resolve(base_directory, pattern);
    PS_GO_ALLOC(error, resolved);
    PS_GO(ps_source_split(resolved, &parts, error));
    PS_GO(expand(parts.path, &files, error));
    ps_series_item *larger = realloc(series->items, (size_t)(series->n_items + files.n) * sizeof *larger);
    PS_GO_ALLOC(error, larger);
    series->items = larger;
    for (int64_t i = 0; i < files.n; i++) {
        PS_GO(make_item(files.names[i], parts.dataset, &series->items[series->n_items], error));
        series->n_items++;
    }
done:
    ps_name_list_free(&files);
    ps_source_free(&parts);
    free(resolved);
    return code;
}

static int compare_identities(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Two items are the same when their files are (symbolic links followed) and their datasets are. */
static ps_code refuse_duplicates(const ps_series *series, ps_error *error) {
    ps_code code = PS_OK;
    char **identities = calloc((size_t)series->n_items + 1, sizeof *identities);
    PS_GO_ALLOC(error, identities);
    for (int64_t i = 0; i < series->n_items; i++) {
        ps_source parts = {0};
        PS_GO(ps_source_split(series->items[i].source, &parts, error));
        char *real = realpath(parts.path, NULL);
        identities[i] = ps_text_format("%s:%s", real ? real : parts.path, parts.dataset ? parts.dataset : "");
        free(real);
        ps_source_free(&parts);
        PS_GO_ALLOC(error, identities[i]);
    }
    qsort(identities, (size_t)series->n_items, sizeof *identities, compare_identities);
    for (int64_t i = 1; i < series->n_items && code == PS_OK; i++)
        if (strcmp(identities[i - 1], identities[i]) == 0)
            code = PS_FAIL(error, PS_E_INPUT, "series.files: the same recording comes twice: %.*s",
                           (int)(strlen(identities[i]) - (identities[i][strlen(identities[i]) - 1] == ':')), identities[i]);
done:
    for (int64_t i = 0; identities && i < series->n_items; i++) free(identities[i]);
    free(identities);
    return code;
}

static void free_item(ps_series_item *item) {
    free(item->source);
    free(item->stem);
}

static ps_code select_items(ps_series *series, int64_t first, int64_t count, int64_t stride, ps_error *error) {
    int64_t all = series->n_items, kept = 0;
    if (first < 0 || stride < 1)
        return PS_FAIL(error, PS_E_INPUT, "series: first %" PRId64 " and stride %" PRId64 ", expected 0 or more and 1 or more", first,
                       stride);
    if (first >= all)
        return PS_FAIL(error, PS_E_INPUT, "series.first: found %" PRId64 ", but series.files names %" PRId64 " recordings", first, all);
    int64_t available = (all - first + stride - 1) / stride;
    if (count == 0 || count > available)
        return PS_FAIL(error, PS_E_INPUT,
                       "series.count: found %" PRId64 ", but there are %" PRId64 " recordings from first %" PRId64
                       " on with stride %" PRId64,
                       count, available, first, stride);
    int64_t wanted = count < 0 ? available : count;
    for (int64_t i = 0; i < all; i++) {
        if (i >= first && (i - first) % stride == 0 && kept < wanted)
            series->items[kept++] = series->items[i];
        else
            free_item(&series->items[i]);
    }
    series->n_items = kept;
    return PS_OK;
}

ps_code ps_series_build_ordered(const char *base_directory, const char *const *patterns, int64_t n_patterns, ps_series_order order,
                                const ps_reader_options *options, int64_t first, int64_t count, int64_t stride, ps_series *series,
                                ps_error *error) {
    ps_code code = PS_OK;
    *series = (ps_series){0};
    for (int64_t i = 0; i < n_patterns; i++) PS_GO(append_pattern(base_directory, patterns[i], series, error));
    if (series->n_items == 0) {
        code = PS_FAIL(error, PS_E_INPUT, "series.files: names no recordings");
        goto done;
    }
    PS_GO(refuse_duplicates(series, error));
    series->gaps = ps_series_find_gaps(series);
    if (order == PS_SERIES_BY_TIME) PS_GO(ps_series_sort_by_time(series, options, error));
    PS_GO(select_items(series, first, count, stride, error));
done:
    if (code != PS_OK) ps_series_free(series);
    return code;
}

ps_code ps_series_build(const char *base_directory, const char *const *patterns, int64_t n_patterns, int64_t first, int64_t count,
                        int64_t stride, ps_series *series, ps_error *error) {
    return ps_series_build_ordered(base_directory, patterns, n_patterns, PS_SERIES_BY_NAME, NULL, first, count, stride, series, error);
}

void ps_series_free(ps_series *series) {
    for (int64_t i = 0; i < series->n_items; i++) free_item(&series->items[i]);
    free(series->items);
    free(series->gaps);
    *series = (ps_series){0};
}
