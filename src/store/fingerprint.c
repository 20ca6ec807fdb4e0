#include "store/fingerprint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/version.h"

/* One line for every number or text below json. */
static void print_json(FILE *out, const char *path, const cJSON *json) {
    if (!cJSON_IsObject(json) && !cJSON_IsArray(json)) {
        char *value = cJSON_PrintUnformatted(json);
        fprintf(out, "%s=%s\n", path, value ? value : "");
        cJSON_free(value);
        return;
    }
    int index = 0;
    const cJSON *child;
    cJSON_ArrayForEach(child, json) {
        char below[512];
        if (cJSON_IsArray(json))
            snprintf(below, sizeof below, "%s.%d", path, index++);
        else
            snprintf(below, sizeof below, "%s.%s", path, child->string);
        print_json(out, below, child);
    }
}

static void print_optics(FILE *out, int64_t index, const ps_output_optics *optics) {
    const ps_system_desc *desc = &optics->plan->desc;
    char path[64];
    snprintf(path, sizeof path, "optics.%lld", (long long)index);
    cJSON *json = cJSON_Parse(optics->used);
    if (json)
        print_json(out, path, json);
    else
        fprintf(out, "%s=%s\n", path, optics->used);
    cJSON_Delete(json);
    size_t n_pixels = (size_t)desc->detector_rows * (size_t)desc->detector_columns;
    fprintf(out, "%s.scan=%lld x %lld\n", path, (long long)desc->scan_rows, (long long)desc->scan_columns);
    fprintf(out, "%s.detector=%lld x %lld\n", path, (long long)desc->detector_rows, (long long)desc->detector_columns);
    fprintf(out, "%s.upsampling=%lld\n", path, (long long)desc->upsampling);
    fprintf(out, "%s.active pixels=%lld\n", path, (long long)desc->n_active);
    if (optics->bad) fprintf(out, "%s.bad pixels crc=%08lx\n", path, crc32_z(0, optics->bad, n_pixels));
}

static void print_frame(FILE *out, int64_t index, const ps_output_frame_source *frame) {
    const char *slash = strrchr(frame->source, '/');
    fprintf(out, "frame.%lld.file=%s\n", (long long)index, slash ? slash + 1 : frame->source);
}

static void print_reading(FILE *out, const ps_job_series *series) {
    fprintf(out, "series.skip_leading=%lld\n", (long long)series->skip_leading);
    fprintf(out, "series.skip_trailing=%lld\n", (long long)series->skip_trailing);
    fprintf(out, "series.flyback=%lld\n", (long long)series->flyback);
    fprintf(out, "series.repeats=%lld\n", (long long)(series->repeats > 1 ? series->repeats : 1));
    fprintf(out, "series.serpentine=%s\n", series->serpentine ? "true" : "false");
    fprintf(out, "series.allow_partial=%s\n", series->allow_partial ? "true" : "false");
    fprintf(out, "series.channel=%lld\n", (long long)series->channel);
    fprintf(out, "series.bad_pixels.hot_sigma=%.17g\n", series->hot_sigma);
    if (isinf(series->saturation))
        fprintf(out, "series.saturation=none\n");
    else if (series->saturation > 0)
        fprintf(out, "series.saturation=%.17g\n", series->saturation);
    else
        fprintf(out, "series.saturation=file\n");
}

ps_code ps_output_fingerprint(const ps_output_spec *spec, char **text, ps_error *error) {
    const ps_job *job = spec->job;
    size_t bytes = 0;
    *text = NULL;
    FILE *out = open_memstream(text, &bytes);
    if (!out) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the fingerprint");
    fprintf(out, "numerics version=%s\n", PS_NUMERICS_VERSION);
    fprintf(out, "weights=%s\n", job->weights == PS_WEIGHTS_POISSON ? "poisson" : "uniform");
    fprintf(out, "probe form=%s\n", job->mirrored_probe ? "published" : "derived");
    print_reading(out, &job->series);
    fprintf(out, "precision=%s\n", job->precision == PS_PRECISION_REFERENCE ? "reference" : "fast");
    if (job->g_storage == PS_JOB_G_COMPACT) fprintf(out, "g=compact\n"); /* the other ways of holding g give the same bits */
    for (int64_t i = 0; i < job->methods.n; i++) job->methods.items[i].method->fingerprint(&job->methods.items[i], out);
    fprintf(out, "image=%lld x %lld, step %.17g x %.17g A\n", (long long)spec->image_rows, (long long)spec->image_columns,
            spec->image_step_A[0], spec->image_step_A[1]);
    if (job->aligns) fprintf(out, "output.align=true\n");
    for (int64_t i = 0; i < spec->n_optics; i++) print_optics(out, i, &spec->optics[i]);
    fprintf(out, "frames=%lld\n", (long long)spec->n_frames);
    for (int64_t i = 0; i < spec->n_frames; i++) print_frame(out, i, &spec->frames[i]);
    if (fclose(out) == 0) return PS_OK;
    free(*text);
    *text = NULL;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the fingerprint");
}

/* ---- differences ---- */

typedef struct {
    const char *text;
    size_t key, length; /* of the key, of the whole line */
} line;

static line next_line(const char **cursor) {
    line found = {.text = *cursor, .length = strcspn(*cursor, "\n")};
    const char *equals = memchr(found.text, '=', found.length);
    found.key = equals ? (size_t)(equals - found.text) : found.length;
    *cursor += found.length + ((*cursor)[found.length] == '\n');
    return found;
}

/* The line with this key, looking from `start` on and round again; fingerprints mostly agree line by line. */
static bool find_line(const char *text, const char *start, const line *wanted, line *found) {
    const char *cursor = start;
    for (int round = 0; round < 2; round++) {
        while (*cursor && !(round == 1 && cursor == start)) {
            *found = next_line(&cursor);
            if (found->key == wanted->key && memcmp(found->text, wanted->text, wanted->key) == 0) return true;
        }
        cursor = text;
    }
    return false;
}

static int value_bytes(const line *l) {
    return l->length > l->key ? (int)(l->length - l->key - 1) : 0;
}

bool ps_fingerprint_drop(char *text, const char *key) {
    size_t length = strlen(key);
    for (const char *cursor = text; *cursor;) {
        line one = next_line(&cursor);
        if (one.key != length || memcmp(one.text, key, length) != 0) continue;
        memmove(text + (one.text - text), cursor, strlen(cursor) + 1);
        return true;
    }
    return false;
}

/* The frame of a line "frame.N.file=..."; -1: it is of another kind. */
static int64_t named_frame(const line *l) {
    static const char begin[] = "frame.", end[] = ".file";
    char *after = NULL;
    if (l->key < sizeof begin + sizeof end - 2 || memcmp(l->text, begin, sizeof begin - 1) != 0) return -1;
    long long frame = strtoll(l->text + sizeof begin - 1, &after, 10);
    bool is_name = (size_t)(after - l->text) + sizeof end - 1 == l->key && memcmp(after, end, sizeof end - 1) == 0;
    return is_name ? (int64_t)frame : -1;
}

void ps_fingerprint_drop_names(char *text, const bool *compared, int64_t n_frames) {
    char *to = text;
    for (const char *cursor = text; *cursor;) {
        line one = next_line(&cursor);
        int64_t frame = named_frame(&one);
        size_t length = (size_t)(cursor - one.text);
        if (frame >= 0 && frame < n_frames && compared[frame]) continue;
        memmove(to, one.text, length);
        to += length;
    }
    *to = '\0';
}

/* Prints what changed from `before`, or with `only_new` what `before` does not have at all; returns how many lines. */
static int64_t print_differences(FILE *out, const char *before, const char *after, bool only_new, int64_t printed, int64_t limit) {
    const char *cursor = only_new ? after : before, *other = only_new ? before : after, *start = other;
    while (*cursor) {
        line one = next_line(&cursor), two;
        bool known = find_line(other, start, &one, &two);
        if (known) start = two.text;
        if (known && (only_new || (one.length == two.length && memcmp(one.text, two.text, one.length) == 0))) continue;
        if (printed++ >= limit) continue;
        fprintf(out, "%.*s: ", (int)one.key, one.text);
        if (only_new)
            fprintf(out, "was not there, now %.*s\n", value_bytes(&one), one.text + one.key + 1);
        else if (known)
            fprintf(out, "was %.*s, now %.*s\n", value_bytes(&one), one.text + one.key + 1, value_bytes(&two), two.text + two.key + 1);
        else
            fprintf(out, "was %.*s, now is not there\n", value_bytes(&one), one.text + one.key + 1);
    }
    return printed;
}

ps_code ps_fingerprint_differences(const char *before, const char *after, int64_t limit, char **differences, ps_error *error) {
    size_t bytes = 0;
    *differences = NULL;
    FILE *out = open_memstream(differences, &bytes);
    if (!out) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the list of differences");
    int64_t printed = print_differences(out, before, after, false, 0, limit);
    printed = print_differences(out, before, after, true, printed, limit);
    if (printed > limit) fprintf(out, "and %lld more\n", (long long)(printed - limit));
    if (fclose(out) == 0) return PS_OK;
    free(*differences);
    *differences = NULL;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the list of differences");
}
