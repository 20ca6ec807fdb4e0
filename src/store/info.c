#include "store/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/regular.h"
#include "hdf5/write.h"
#include "store/layout.h"
#include "store/usage.h"
#include "store/view.h"

enum { FAILURES_SHOWN = 20 };

static bool made_by_us(hid_t file) {
    char *creator = NULL;
    hid_t attribute = H5Aopen_by_name(file, "/", "creator", H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = attribute < 0 ? H5I_INVALID_HID : H5Aget_type(attribute);
    bool ours = type >= 0 && H5Tis_variable_str(type) > 0 && H5Aread(attribute, type, &creator) >= 0 && creator &&
                strcmp(creator, "ptyseries") == 0;
    if (creator) H5free_memory(creator);
    ps_h5_close(&type);
    ps_h5_close(&attribute);
    return ours;
}

bool ps_output_is_output(const char *path) {
    hid_t file = H5I_INVALID_HID;
    ps_h5_quiet();
    if (access(path, R_OK) != 0 || ps_special_file(path) || H5Fis_hdf5(path) <= 0 || ps_h5_open_read(path, &file, NULL) != PS_OK)
        return false;
    bool ours = made_by_us(file);
    H5Fclose(file);
    return ours;
}

static void print_images(const ps_view *view) {
    double height_nm = 0.1 * view->step_A[0] * (double)view->rows, width_nm = 0.1 * view->step_A[1] * (double)view->columns;
    printf("images    %lld x %lld pixels of %.4g x %.4g A: %.4g x %.4g nm\n", (long long)view->rows, (long long)view->columns,
           view->step_A[0], view->step_A[1], height_nm, width_nm);
}

static void print_method(const ps_view_method *method) {
    if (!method->present) return;
    printf("method    %s", method->method->name);
    if (method->automatic) printf(", automatic strength");
    for (int64_t i = 0; method->strengths && !method->automatic && i < method->n_strengths; i++) {
        printf("%s%g", i ? ", " : method->n_strengths > 1 ? ", strengths " : ", strength ", method->strengths[i]);
        if (method->amplitudes && method->amplitudes[i] != method->strengths[i]) printf(" (amplitude %g)", method->amplitudes[i]);
    }
    printf("\n");
}

static double number_of(const ps_view *view, const char *group, int64_t index, const char *name) {
    char path[96];
    double value = 0;
    snprintf(path, sizeof path, "%s_%lld/%s", group, (long long)index, name);
    ps_view_numbers(view, path, 1, &value, NULL);
    return value;
}

static char *text_of(const ps_view *view, const char *group, int64_t index, const char *name) {
    char path[96];
    snprintf(path, sizeof path, "%s_%lld/%s", group, (long long)index, name);
    return ps_view_text(view, path);
}

static void print_optics(const ps_view *view) {
    for (int64_t i = 0; i < view->n_optics && i < FAILURES_SHOWN; i++)
        printf("optics %-2lld %g x %g positions, %g active pixels, upsampling %g, %g frequencies, %g bad pixels in the file's mask\n",
               (long long)i, number_of(view, "optics", i, "scan_rows"), number_of(view, "optics", i, "scan_columns"),
               number_of(view, "optics", i, "n_active"), number_of(view, "optics", i, "upsampling"),
               number_of(view, "optics", i, "n_frequencies"), number_of(view, "optics", i, "n_bad_file"));
    if (view->n_optics > FAILURES_SHOWN) printf("          and %lld more\n", (long long)(view->n_optics - FAILURES_SHOWN));
    for (int64_t i = 0; i < view->n_optics; i++) {
        char *doubt = text_of(view, "optics", i, "doubt");
        if (doubt && *doubt) printf("warning   optics %lld: %s\n", (long long)i, doubt);
        free(doubt);
    }
}

static void print_usage(const ps_view *view, int64_t run) {
    char text[PS_USAGE_TEXT];
    ps_usage usage;
    bool present = false;
    if (ps_usage_read(view, run, &usage, &present, NULL) != PS_OK || !present) return;
    ps_usage_describe(&usage, text);
    printf("          %s\n", text);
    ps_usage_describe_stages(&usage, text);
    printf("          seconds over all ranks: %s\n", text);
}

static void print_processes(const ps_view *view) {
    for (int64_t i = 1; i <= view->n_processes; i++) {
        char *state = text_of(view, "process", i, "state"), *start = text_of(view, "process", i, "start_time");
        char *end = text_of(view, "process", i, "end_time"), *version = text_of(view, "process", i, "version");
        char *memory = text_of(view, "process", i, "memory");
        bool used = state && start && end && version && strcmp(state, "unused") != 0;
        if (used)
            printf("run %-5lld ptyseries %s, %s to %s, %s\n", (long long)i, version, start, *end ? end : "?",
                   strcmp(state, "running") == 0 ? "running, or killed" : state);
        if (used && memory && *memory) printf("          %s\n", memory);
        if (used) print_usage(view, i);
        free(state);
        free(start);
        free(end);
        free(version);
        free(memory);
    }
}

/* Mean over done frames of each stage. */
static ps_code print_seconds(const ps_view *view, ps_error *error) {
    double mean[PS_N_STAGES] = {0};
    int64_t n_done = view->n_by_state[PS_FRAME_DONE];
    if (n_done == 0) return PS_OK;
    double *seconds = malloc((size_t)view->n_frames * sizeof mean);
    if (!seconds) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for timings");
    ps_code code = ps_view_numbers(view, "frames/seconds", view->n_frames * PS_N_STAGES, seconds, error);
    for (int64_t frame = 0; code == PS_OK && frame < view->n_frames; frame++)
        for (int stage = 0; stage < PS_N_STAGES && view->states[frame] == PS_FRAME_DONE; stage++)
            mean[stage] += seconds[frame * PS_N_STAGES + stage] / (double)n_done;
    free(seconds);
    PS_TRY(code);
    printf("seconds   per frame:");
    for (int stage = 0; stage < PS_N_STAGES; stage++)
        printf(" %s %.3g%s", ps_stage_name((ps_stage)stage), mean[stage], stage + 1 < PS_N_STAGES ? "," : "\n");
    return PS_OK;
}

static ps_code print_failures(const ps_view *view, ps_error *error) {
    char **sources = NULL, **errors = NULL;
    int64_t n = view->n_frames, shown = 0, n_failed = view->n_by_state[PS_FRAME_FAILED];
    if (n_failed == 0) return PS_OK;
    ps_code code = ps_view_texts(view, "frames/source", n, &sources, error);
    if (code == PS_OK) code = ps_view_texts(view, "frames/error", n, &errors, error);
    for (int64_t i = 0; code == PS_OK && i < n && shown < FAILURES_SHOWN; i++)
        if (view->states[i] == PS_FRAME_FAILED) {
            printf("failed    frame %lld, %s: %s\n", (long long)i, sources[i], errors[i]);
            shown++;
        }
    if (code == PS_OK && n_failed > shown) printf("          and %lld more\n", (long long)(n_failed - shown));
    ps_view_free_texts(sources, n);
    ps_view_free_texts(errors, n);
    return code;
}

static ps_code print_drift(const ps_view *view, ps_error *error) {
    int64_t n = view->n_frames, last = -1;
    double complete = 0.0, least = 1.0, *shift = NULL, *known = NULL, *trust = NULL;
    ps_code code = PS_OK;
    if (!ps_view_has(view, "drift")) return PS_OK;
    PS_TRY(ps_view_numbers(view, "drift/complete", 1, &complete, error));
    if (complete != 1.0) {
        printf("drift     not measured yet\n");
        return PS_OK;
    }
    shift = malloc(2 * (size_t)n * sizeof *shift);
    known = malloc((size_t)n * sizeof *known);
    trust = malloc((size_t)n * sizeof *trust);
    PS_GO_ALLOC(error, shift);
    PS_GO_ALLOC(error, known);
    PS_GO_ALLOC(error, trust);
    PS_GO(ps_view_numbers(view, "drift/shift", 2 * n, shift, error));
    PS_GO(ps_view_numbers(view, "drift/known", n, known, error));
    PS_GO(ps_view_numbers(view, "drift/trust", n, trust, error));
    for (int64_t i = 0; i < n; i++)
        if (known[i] == 1.0) last = i, least = trust[i] < least ? trust[i] : least;
    if (last >= 0)
        printf("drift     %.4g, %.4g A (row, column) up to frame %lld; least trust in a step %.2f\n", shift[2 * last], shift[2 * last + 1],
               (long long)last, least);
done:
    free(shift);
    free(known);
    free(trust);
    return code;
}

ps_code ps_output_print_info(const char *path, ps_error *error) {
    ps_code code = PS_OK;
    ps_view view;
    PS_TRY(ps_view_open(path, &view, error));
    printf("%s: output of ptyseries\n", path);
    printf("frames    %lld: %lld done, %lld failed, %lld pending\n", (long long)view.n_frames, (long long)view.n_by_state[PS_FRAME_DONE],
           (long long)view.n_by_state[PS_FRAME_FAILED], (long long)view.n_by_state[PS_FRAME_PENDING]);
    print_images(&view);
    for (int i = 0; i < ps_n_methods; i++) print_method(&view.methods[i]);
    PS_GO(print_drift(&view, error));
    print_optics(&view);
    print_processes(&view);
    PS_GO(print_seconds(&view, error));
    PS_GO(print_failures(&view, error));
done:
    ps_view_close(&view);
    return code;
}
