#include "tasks/histogram/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "hdf5/write.h"
#include "store/fingerprint.h"
#include "store/output.h"
#include "store/view.h"
#include "tasks/histogram/fingerprint.h"

enum { MOST_DIFFERENCES = 12 };

/* Takes the lines of frames out of both signatures that have nothing to compare: recordings that could not be read then, or cannot now. */
static void drop_unreadable(const ps_histogram_plan *plan, char *recorded, char *wanted) {
    for (int64_t i = 0; i < plan->run.series.n_items; i++) {
        char key[48], line[96];
        snprintf(key, sizeof key, "frame %lld", (long long)i);
        snprintf(line, sizeof line, "\n%s=%s\n", key, PS_HISTOGRAM_UNREADABLE);
        bool now = plan->run.frames[i].unreadable != NULL;
        if (!now && !strstr(recorded, line)) continue;
        if (now && !strstr(recorded, line))
            ps_log(PS_LOG_WARNING, "frame %lld (%s) was counted and stays; its recording cannot be read now and is not compared: %s",
                   (long long)i, plan->run.series.items[i].source, plan->run.frames[i].unreadable);
        ps_fingerprint_drop(recorded, key);
        ps_fingerprint_drop(wanted, key);
    }
}

/* *wanted: what this job would record, in the way in which the file has it. */
static ps_code sign(const ps_histogram_plan *plan, const char *recorded, char **wanted, ps_error *error) {
    const char *first = strstr(recorded, "\nframe 0=");
    size_t length = first ? strcspn(first + 1, "\n") + 1 : 0;
    bool of_names = length > 3 && memcmp(first + length - 3, " ns", 3) == 0;
    if (!of_names) return ps_histogram_fingerprint(plan, wanted, error);
    ps_log(PS_LOG_WARNING,
           "%s was made by an earlier version: of its recordings, only the places, sizes and times of the named files are compared",
           plan->job->output_file);
    return ps_histogram_fingerprint_of_names(plan, wanted, error);
}

/* Recordings are compared by what they hold. Where that differs, people want to know which they are: "frame 3=RECORDING: ..." in a copy of
 * text for the lines that `other` has not. sources: [n]. */
static char *name_sources(const char *text, const char *other, char *const *sources, int64_t n) {
    char *named = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&named, &bytes);
    for (const char *line = text; out && *line;) {
        int length = (int)strcspn(line, "\n"), value = 0;
        long long frame = -1;
        char *whole = ps_text_format("\n%.*s\n", length, line);
        bool is_frame = sscanf(line, "frame %lld=%n", &frame, &value) == 1 && value > 0 && value <= length && frame >= 0 && frame < n;
        if (is_frame && whole && !strstr(other, whole))
            fprintf(out, "frame %lld=%s: %.*s\n", frame, sources[frame], length - value, line + value);
        else
            fprintf(out, "%.*s\n", length, line);
        free(whole);
        line += length + (line[length] == '\n');
    }
    if (out) fclose(out);
    return named;
}

static ps_code refuse_differing(const ps_histogram_plan *plan, const ps_view *view, const char *recorded, const char *wanted,
                                ps_error *error) {
    ps_code code = PS_OK;
    const ps_series *series = &plan->run.series;
    char **then = NULL, **now = calloc((size_t)series->n_items, sizeof *now), *differences = NULL, *before = NULL, *after = NULL;
    PS_GO_ALLOC(error, now);
    for (int64_t i = 0; i < series->n_items; i++) now[i] = series->items[i].source;
    PS_GO(ps_view_texts(view, "frames/source", view->n_frames, &then, error));
    before = name_sources(recorded, wanted, then, view->n_frames);
    after = name_sources(wanted, recorded, now, series->n_items);
    PS_GO_ALLOC(error, before && after);
    PS_GO(ps_fingerprint_differences(before, after, MOST_DIFFERENCES, &differences, error));
    code =
        PS_FAIL(error, PS_E_ARGUMENT, "%s was made by a job that differs from this one, or from other files; --overwrite replaces it\n%s",
                plan->job->output_file, differences);
done:
    ps_view_free_texts(then, view->n_frames);
    free(now);
    free(differences);
    free(before);
    free(after);
    return code;
}

static void find_failed(const ps_view *view, ps_histogram_existing *found) {
    found->n_failed = view->n_by_state[PS_FRAME_FAILED];
    for (int64_t i = view->n_frames - 1; i >= 0; i--)
        if (view->states[i] == PS_FRAME_FAILED) found->first_failed = i;
}

ps_code ps_histogram_look_at_existing(const ps_histogram_plan *plan, const ps_run_options *options, ps_histogram_existing *found,
                                      ps_error *error) {
    ps_code code = PS_OK;
    ps_view view = {.file = H5I_INVALID_HID, .entry = H5I_INVALID_HID};
    char *wanted = NULL, *signature = NULL;
    if (!options->resume || access(plan->job->output_file, F_OK) != 0) return PS_OK;
    PS_GO(ps_view_open(plan->job->output_file, &view, error));
    PS_GO_ALLOC(error, signature = ps_view_text(&view, "signature"));
    PS_GO(sign(plan, signature, &wanted, error));
    drop_unreadable(plan, signature, wanted);
    find_failed(&view, found);
    found->complete = found->n_failed == 0 || !options->retry_failed;
    if (strcmp(wanted, signature) != 0) code = refuse_differing(plan, &view, signature, wanted, error);
done:
    ps_view_close(&view);
    free(wanted);
    free(signature);
    return code;
}
