#include "tasks/fit/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/held_g.h"
#include "tasks/fit/choose.h"
#include "tasks/fit/item.h"
#include "tasks/fit/memory.h"
#include "tasks/fit/optics_file.h"

/* The report's own part. */
typedef struct {
    int64_t n;
    int64_t *frames; /* [n] which is fitted */
    ps_fit_memory memory;
} fit_check;

ps_code ps_fit_check(ps_check_report *report, const ps_check_options *options, ps_error *error) {
    enum { MOST_LOOKED_AT = 32, BYTES_PER_FIT = 1 << 16 };
    PS_TRY(ps_check_output(report, error));
    PS_TRY(ps_check_backend(report, error));
    PS_TRY(ps_run_plan_build(&report->job, &report->run, error));
    PS_TRY(ps_run_plan_survey(NULL, &report->job, NULL, &report->run, options->every_recording ? 0 : MOST_LOOKED_AT, error));
    PS_TRY(ps_run_plan_inspect(&report->job, &report->run, error));
    ps_check_look_at_machine(report);
    fit_check *own = calloc(1, sizeof *own);
    if (!own) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the report");
    report->own = own;
    int64_t *frames = NULL;
    PS_TRY(ps_fit_list_frames(&report->job, &report->run, &own->n, &frames, error));
    fit_check *whole = realloc(own, sizeof *own + (size_t)own->n * sizeof *frames);
    if (whole) {
        report->own = own = whole;
        own->frames = memcpy(own + 1, frames, (size_t)own->n * sizeof *frames);
    }
    free(frames);
    if (!whole) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the report");
    size_t budget = (size_t)(report->job.memory_budget_GiB * 1024.0 * 1024.0 * 1024.0);
    PS_TRY(ps_fit_memory_plan(&report->job, &report->run, ps_fit_entry(&report->job), report->ops, budget, &own->memory, error));
    int64_t n = own->n;
    report->output_bytes = n * (BYTES_PER_FIT + (2 * report->run.scan_rows * report->run.scan_columns) * (int64_t)sizeof(float));
    return PS_OK;
}

/* ---- text ---- */

static void print_free(const ps_fit_options *options) {
    ps_check_print_label("free");
    if (options->automatic) printf("auto: rotation, transposition, C10, C12; then third and fourth order as the data allow\n");
    if (options->automatic) return;
    for (int i = 0; i < PS_FIT_N_NAMES; i++)
        if (options->free[i]) printf("%s ", ps_fit_name(i));
    printf("%s%s\n", options->transpose ? "detector_transpose " : "", options->flips ? "detector_flip" : "");
}

static void print_fits(const ps_check_report *report) {
    const fit_check *own = report->own;
    for (int64_t g = 0; g < own->n && g < PS_CHECK_MOST_LISTED; g++) {
        char *path = NULL;
        ps_error ignored = {0};
        ps_check_print_label(g ? "" : "fits");
        printf("%s", report->run.series.items[own->frames[g]].stem);
        if (ps_fit_optics_path(&report->job, &report->run, report->run.frames[own->frames[g]].group, own->frames[g], &path, &ignored) ==
            PS_OK)
            printf(" to %s", path);
        printf("\n");
        free(path);
    }
    if (own->n > PS_CHECK_MOST_LISTED) printf("%*s... %" PRId64 " more\n", PS_CHECK_LABEL_WIDTH, "", own->n - PS_CHECK_MOST_LISTED);
}

static void print_memory(const ps_check_report *report) {
    const ps_fit_memory *memory = &((const fit_check *)report->own)->memory;
    char g[PS_HELD_G_TEXT];
    ps_check_print_label("memory");
    ps_check_print_bytes((double)memory->peak_bytes);
    printf("%s: one frame ", memory->on_device ? " of the device" : "");
    ps_check_print_bytes((double)memory->data.frame_bytes);
    printf(", g of the bands that are fitted ");
    ps_check_print_bytes((double)memory->band_bytes);
    printf("; ");
    ps_check_print_budget(&report->job);
    ps_held_g_describe(&report->job, &memory->data, g);
    ps_check_print_label("  g");
    printf("%s\n", g);
}

void ps_fit_print_check(const ps_check_report *report) {
    ps_check_print_frames(&report->run, &report->job.series);
    print_free(&ps_fit_entry(&report->job)->options);
    print_fits(report);
    ps_check_print_backend(report);
    print_memory(report);
    ps_check_print_looked(&report->run);
    ps_check_print_output(report);
    ps_check_print_machine(report);
    ps_check_print_warnings(&report->run);
}

/* ---- JSON ---- */

void ps_fit_add_check(cJSON *root, const ps_check_report *report) {
    const fit_check *own = report->own;
    const ps_job_fit *fit = ps_fit_entry(&report->job);
    ps_check_add_frames(root, &report->run);
    ps_check_add_output(root, report);
    ps_check_add_machine(root, report);
    ps_check_add_backend(root, report);
    cJSON *memory = cJSON_AddObjectToObject(root, "memory_per_rank");
    ps_check_add_number(memory, "peak_bytes", (double)own->memory.peak_bytes);
    ps_check_add_number(memory, "frame_bytes", (double)own->memory.data.frame_bytes);
    ps_check_add_number(memory, "band_bytes", (double)own->memory.band_bytes);
    ps_check_add_g(memory, &report->job, &own->memory.data);
    cJSON_AddBoolToObject(memory, "on_device", own->memory.on_device);
    ps_check_add_budget(memory, &report->job);
    cJSON *fits = cJSON_AddArrayToObject(root, "fits");
    for (int64_t g = 0; g < own->n; g++) cJSON_AddItemToArray(fits, cJSON_CreateNumber((double)own->frames[g]));
    cJSON *names = cJSON_AddArrayToObject(root, "free");
    for (int i = 0; i < PS_FIT_N_NAMES; i++)
        if (fit->options.free[i]) cJSON_AddItemToArray(names, cJSON_CreateString(ps_fit_name(i)));
    cJSON_AddBoolToObject(root, "free_auto", fit->options.automatic);
    ps_check_add_number(root, "frequencies", (double)fit->n_frequencies);
}
