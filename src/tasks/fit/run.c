#include "tasks/fit/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "plan/held_g.h"
#include "plan/memory.h"
#include "store/view.h"
#include "tasks/fit/choose.h"
#include "tasks/fit/file.h"
#include "tasks/fit/memory.h"
#include "tasks/fit/optics_file.h"
#include "tasks/series.h"

/* Everything a run holds; one cleanup for all. */
typedef struct {
    const ps_cluster *cluster;
    const ps_job *job;
    const ps_run_options *options;
    ps_run_plan run;
    ps_file_checks checks;
    const ps_backend_ops *ops;
    ps_backend *backend;
    ps_device_info device;
    ps_loader *loader;
    ps_notes notes;
    char *signature;
    char held_g[PS_HELD_G_TEXT]; /* how, of a frame */
    ps_new_file file;            /* rank 0's */
    int64_t n;                   /* fits */
    ps_fit_item *items;          /* [n]; of every rank, filled on rank 0 */
    ps_fit_pictures *pictures;   /* [n] */
    char **paths;                /* [n] of the optics files */
} session;

/* ---- before fitting ---- */

static ps_code open_backend(session *s, ps_error *error) {
    ps_backend_options options;
    ps_run_memory memory = {0};
    ps_fit_memory planned;
    PS_TRY(ps_series_backend(s->cluster, s->job, &s->ops, &options, error));
    PS_TRY(ps_run_memory_begin(s->job, &s->run, s->ops, NULL, 0, &memory, error));
    options.memory_budget_bytes = memory.backend_budget;
    PS_TRY(ps_backend_open(s->ops, &options, &s->backend, error));
    ps_backend_info(s->backend, &s->device);
    size_t budget = memory.backend_budget ? memory.backend_budget : s->device.budget_bytes;
    PS_TRY(ps_fit_memory_plan(s->job, &s->run, ps_fit_entry(s->job), s->ops, budget, &planned, error));
    ps_held_g_describe(s->job, &planned.data, s->held_g);
    const ps_loader_shape shape = ps_run_loader_shape(s->job, &s->run);
    return ps_loader_create(&shape, memory.ring_bytes, &s->loader, error);
}

static ps_code list_items(session *s, ps_error *error) {
    int64_t *frames = NULL;
    PS_TRY(ps_fit_list_frames(s->job, &s->run, &s->n, &frames, error));
    size_t n = (size_t)s->n;
    ps_code code = PS_OK;
    s->items = calloc(n, sizeof *s->items);
    s->pictures = calloc(n, sizeof *s->pictures);
    s->paths = calloc(n, sizeof *s->paths);
    if (!s->items || !s->pictures || !s->paths) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu fits", n);
    for (int64_t i = 0; code == PS_OK && i < s->n; i++) {
        s->items[i].frame = frames[i];
        s->items[i].group = s->run.frames[frames[i]].group;
        code = ps_fit_optics_path(s->job, &s->run, s->items[i].group, frames[i], &s->paths[i], error);
        for (int64_t before = 0; code == PS_OK && before < i; before++)
            if (strcmp(s->paths[before], s->paths[i]) == 0)
                code = PS_FAIL(error, PS_E_JOB, "/fit/optics_file: the optics of two fits would go to %s", s->paths[i]);
    }
    free(frames);
    return code;
}

static ps_code prepare(session *s, ps_error *error) {
    PS_TRY(ps_series_begin(s->cluster, s->job, error));
    PS_TRY(ps_series_agree(s->cluster, ps_run_plan_build(s->job, &s->run, error), &s->run, error));
    PS_TRY(ps_file_checks_make(s->cluster, s->job, &s->run, &s->checks, error));
    PS_TRY(ps_run_plan_survey(s->cluster, s->job, NULL, &s->run, 0, error));
    ps_code looked = s->cluster->rank == 0 ? ps_run_plan_inspect(s->job, &s->run, error) : PS_OK;
    PS_TRY(ps_cluster_agree(s->cluster, looked, error));
    ps_code code = open_backend(s, error);
    if (code == PS_OK) code = list_items(s, error);
    if (code == PS_OK) code = ps_fit_signature(s->job, &s->run, &s->checks, &s->signature, error);
    return ps_cluster_agree(s->cluster, code, error);
}

/* Rank 0. *complete: the output is there, whole, and of this job. */
static ps_code look_at_existing(const session *s, int *complete, ps_error *error) {
    ps_view view = {.file = H5I_INVALID_HID, .entry = H5I_INVALID_HID};
    *complete = 0;
    if (!s->options->resume || access(s->job->output_file, F_OK) != 0) return PS_OK;
    PS_TRY(ps_view_open(s->job->output_file, &view, error));
    char *signature = ps_view_text(&view, "signature");
    ps_code code = PS_OK;
    if (!signature)
        code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the fingerprint");
    else if (strcmp(signature, s->signature) != 0)
        code =
            PS_FAIL(error, PS_E_ARGUMENT, "%s was made by a job that differs from this one, or from other files; --overwrite replaces it",
                    s->job->output_file);
    *complete = code == PS_OK && (view.n_by_state[2] == 0 || !s->options->retry_failed);
    free(signature);
    ps_view_close(&view);
    return code;
}

/* Rank 0: nothing that is there is replaced without the user's word. A failed fit that is tried again replaces its output. */
static ps_code begin_output(session *s, ps_error *error) {
    enum { BYTES_PER_FIT = 1 << 18, OTHERS = 1 << 21 };
    bool overwrite = s->options->overwrite || s->options->retry_failed;
    int64_t pixels = 2 * s->run.scan_rows * s->run.scan_columns + s->run.detector_rows * s->run.detector_columns;
    for (int64_t g = 0; g < s->n; g++) PS_TRY(ps_fit_optics_check(s->paths[g], overwrite, error));
    return ps_new_file_begin(s->job->output_file, overwrite, OTHERS + s->n * (BYTES_PER_FIT + pixels * (int64_t)sizeof(float)), &s->file,
                             error);
}

/* ---- fitting ---- */

static void say_plan(const session *s) {
    if (s->cluster->rank != 0) return;
    for (int64_t i = 0; i < s->run.n_warnings; i++) ps_log(PS_LOG_WARNING, "%s", s->run.warnings[i]);
    ps_log(PS_LOG_INFO, "%" PRId64 " frames of %" PRId64 " x %" PRId64 " positions, %" PRId64 " fit%s; %d rank%s; %s on %s; %s",
           s->run.series.n_items, s->run.scan_rows, s->run.scan_columns, s->n, s->n == 1 ? "" : "s", s->cluster->n_ranks,
           s->cluster->n_ranks == 1 ? "" : "s", s->ops->name, s->device.name, s->held_g);
}

static void say_item(const session *s, const ps_fit_item *item) {
    const ps_fit_result *r = &item->result;
    if (s->cluster->rank != 0) return;
    if (item->code != PS_OK) {
        ps_series_log_failure(&s->run, item->frame, item->reason);
        return;
    }
    ps_log(PS_LOG_INFO, "frame %" PRId64 ": explained power %.4g before, %.4g after; %" PRId64 " trials, %.2f s", item->frame, r->before,
           r->after, r->n_evaluations, item->seconds);
    if (r->optics.detector_transpose) ps_log(PS_LOG_INFO, "frame %" PRId64 ": the detector is transposed", item->frame);
    for (int i = 0; i < r->parameters.n; i++)
        ps_log(PS_LOG_INFO, "frame %" PRId64 ": %-16s %12.6g +- %.3g", item->frame, r->parameters.items[i].name, r->values[i],
               r->curvature.error[i]);
    for (int i = 0; i < r->n_notes; i++) ps_log(PS_LOG_WARNING, "frame %" PRId64 ": %s", item->frame, r->notes[i]);
}

static ps_code fit_one(session *s, const ps_fit_source *source, const ps_fit_options *options, const ps_optics *start, int64_t i,
                       bool draws, ps_error *error) {
    PS_TRY(ps_fit_item_run(s->cluster, source, ps_fit_entry(s->job), options, start, &s->items[i], draws ? &s->pictures[i] : NULL, error));
    return PS_OK;
}

static ps_code fit_groups(session *s, const ps_fit_source *source, ps_error *error) {
    for (int64_t i = 0; i < s->n; i++) {
        const ps_run_group *group = &s->run.groups[s->items[i].group];
        ps_fit_options options = ps_fit_entry(s->job)->options;
        PS_TRY(ps_cluster_agree(s->cluster, ps_fit_find_given(group, &options, error), error));
        PS_TRY(fit_one(s, source, &options, &group->optics, i, true, error));
        say_item(s, &s->items[i]);
    }
    return PS_OK;
}

/* Rank 0's word to all. */
static ps_code tell(const session *s, void *values, size_t bytes, ps_error *error) {
    return PS_MPI(error, MPI_Bcast(values, (int)bytes, MPI_BYTE, 0, s->cluster->communicator));
}

/* Whether a fit that started from another explains so much less than that one that it may have lost its way. */
static bool is_lost(const ps_fit_item *item, const ps_fit_item *before) {
    static const double much_less = 0.7;
    return item->code != PS_OK || item->result.after - item->result.floor < much_less * (before->result.after - before->result.floor);
}

/* Frame i, from the last that was fitted; blindly once more where it is lost. free: what the first fit found worth fitting. */
static ps_code track(session *s, const ps_fit_source *source, const ps_fit_options *blind, const ps_fit_options *free_ones, int64_t last,
                     int64_t i, ps_error *error) {
    ps_fit_item *item = &s->items[i];
    ps_optics start = s->items[last].result.optics;
    PS_TRY(tell(s, &start, sizeof start, error));
    PS_TRY(fit_one(s, source, free_ones, &start, i, false, error));
    int lost = is_lost(item, &s->items[last]);
    PS_TRY(tell(s, &lost, sizeof lost, error));
    if (!lost) return PS_OK;
    const ps_fit_item tracked = *item;
    *item = (ps_fit_item){.group = tracked.group, .frame = tracked.frame};
    PS_TRY(fit_one(s, source, blind, &s->run.groups[item->group].optics, i, false, error));
    if (s->cluster->rank != 0) return PS_OK;
    if (item->code == PS_OK && fabs(remainder(item->result.optics.rotation_deg - start.rotation_deg, 360.0)) > 90.0)
        ps_fit_turn(&item->result, start.scan_step_A);
    if (tracked.code == PS_OK && (item->code != PS_OK || item->result.after < tracked.result.after)) *item = tracked;
    item->was_refitted = true;
    item->is_outlier = is_lost(item, &s->items[last]);
    if (item->is_outlier)
        ps_log(PS_LOG_WARNING, "frame %" PRId64 ": explains much less than the frame before, also when fitted blindly", item->frame);
    return PS_OK;
}

/* The first fit that succeeds is blind; every later frame starts from the one before. */
static ps_code fit_frames(session *s, const ps_fit_source *source, ps_error *error) {
    int64_t last = -1;
    ps_fit_options blind, tracking = {0};
    for (int64_t i = 0; i < s->n; i++) {
        const ps_run_group *group = &s->run.groups[s->items[i].group];
        blind = ps_fit_entry(s->job)->options;
        PS_TRY(ps_cluster_agree(s->cluster, ps_fit_find_given(group, &blind, error), error));
        if (last < 0) {
            PS_TRY(fit_one(s, source, &blind, &group->optics, i, true, error));
            tracking = blind;
            tracking.automatic = tracking.transpose = tracking.flips = false;
            for (int q = 0; q < PS_FIT_N_NAMES; q++)
                tracking.free[q] = ps_fit_has(&s->items[i].result.parameters, q), tracking.given[q] = true;
        } else
            PS_TRY(track(s, source, &blind, &tracking, last, i, error));
        say_item(s, &s->items[i]);
        int fitted = s->items[i].code == PS_OK && !s->items[i].is_outlier;
        PS_TRY(tell(s, &fitted, sizeof fitted, error));
        if (fitted) last = i;
    }
    return PS_OK;
}

static ps_code fit_all(session *s, ps_error *error) {
    const ps_fit_source source = {.job = s->job, .run = &s->run, .backend = s->backend, .loader = s->loader};
    return ps_fit_entry(s->job)->per_frame ? fit_frames(s, &source, error) : fit_groups(s, &source, error);
}

/* ---- results ---- */

/* Rank 0: optics files first, so that an output that is there says where they are. */
static ps_code write_results(session *s, ps_error *error) {
    const ps_fit_file_spec spec = {.job = s->job,
                                   .run = &s->run,
                                   .checks = &s->checks,
                                   .notes = &s->notes,
                                   .signature = s->signature,
                                   .n_items = s->n,
                                   .items = s->items,
                                   .pictures = s->pictures,
                                   .device = s->device.name};
    for (int64_t g = 0; g < s->n; g++) {
        if (s->items[g].code != PS_OK) continue;
        PS_TRY(ps_fit_optics_write(s->paths[g], s->job, &s->items[g], error));
        ps_log(PS_LOG_INFO, "optics are in %s", s->paths[g]);
    }
    return ps_fit_file_write(&s->file, &spec, error);
}

/* What the run comes to, rank 0's. */
static ps_code judge(const session *s, ps_error *error) {
    int64_t n_failed = 0;
    const ps_fit_item *first = NULL;
    for (int64_t g = 0; g < s->n; g++) {
        if (s->items[g].code == PS_OK) continue;
        n_failed++;
        if (!first) first = &s->items[g];
    }
    if (first && n_failed == s->n) return PS_FAIL(error, PS_E_INPUT, "%s: %s", s->run.series.items[first->frame].source, first->reason);
    return n_failed > 0 ? ps_series_fail(PS_E_PARTIAL, s->job, n_failed, s->n, "", error) : PS_OK;
}

static bool any_fitted(const session *s) {
    for (int64_t g = 0; g < s->n; g++)
        if (s->items[g].code == PS_OK) return true;
    return false;
}

static ps_code finish(session *s, ps_error *error) {
    ps_code code = PS_OK;
    if (s->cluster->rank == 0) {
        if (any_fitted(s)) code = write_results(s, error);
        if (code == PS_OK) code = judge(s, error);
    }
    return ps_cluster_agree(s->cluster, code, error);
}

static void free_session(session *s) {
    ps_new_file_end(&s->file);
    for (int64_t g = 0; s->pictures && g < s->n; g++) ps_fit_pictures_free(&s->pictures[g]);
    for (int64_t g = 0; s->paths && g < s->n; g++) free(s->paths[g]);
    free(s->pictures);
    free(s->paths);
    free(s->items);
    free(s->signature);
    ps_loader_destroy(s->loader);
    if (s->backend) ps_backend_close(s->backend);
    ps_notes_free(&s->notes);
    ps_file_checks_free(&s->checks);
    ps_run_plan_free(&s->run);
}

ps_code ps_fit_task_run(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error) {
    session s = {.cluster = cluster, .job = job, .options = options, .file = PS_NEW_FILE_NONE};
    int complete = 0;
    ps_code code = PS_OK;
    PS_GO(prepare(&s, error));
    PS_GO(ps_cluster_agree(cluster, cluster->rank == 0 ? look_at_existing(&s, &complete, error) : PS_OK, error));
    PS_GO(PS_MPI(error, MPI_Bcast(&complete, 1, MPI_INT, 0, cluster->communicator)));
    if (complete) {
        if (cluster->rank == 0) ps_log(PS_LOG_INFO, "%s is complete already", job->output_file);
        goto done;
    }
    PS_GO(ps_notes_gather(cluster, job, options->command_line, s.device.name, s.device.versions, &s.notes, error));
    ps_notes_add(&s.notes, "memory", strdup(s.held_g));
    PS_GO(ps_cluster_agree(cluster, cluster->rank == 0 ? begin_output(&s, error) : PS_OK, error));
    say_plan(&s);
    PS_GO(fit_all(&s, error));
    code = finish(&s, error);
done:
    free_session(&s);
    return code;
}
