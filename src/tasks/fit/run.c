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
#include "tasks/fit/session.h"
#include "tasks/series.h"

typedef ps_fit_session session;

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
    s->settled = calloc(n, sizeof *s->settled);
    s->n_tries = calloc(n, sizeof *s->n_tries);
    s->paths = calloc(n, sizeof *s->paths);
    if (!s->items || !s->pictures || !s->settled || !s->n_tries || !s->paths)
        code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu fits", n);
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

/* Rank 0. *complete: the output is there, whole, and of this job; PS_E_PARTIAL when it is, with fits that failed. */
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
    *complete = code == PS_OK && (view.n_by_state[PS_FRAME_FAILED] == 0 || !s->options->retry_failed);
    if (*complete) ps_log(PS_LOG_INFO, "%s is complete already", s->job->output_file);
    if (*complete && view.n_by_state[PS_FRAME_FAILED] > 0)
        code = ps_series_fail(PS_E_PARTIAL, s->job, view.n_by_state[PS_FRAME_FAILED], view.n_frames, "", error);
    free(signature);
    ps_view_close(&view);
    return code;
}

/* Rank 0, with the output's lock: fits that a run left, and those that it began and never ended. */
static ps_code recall(session *s, bool goes_on, ps_error *error) {
    const ps_fit_file_spec spec = {.job = s->job, .run = &s->run, .signature = s->signature, .n_items = s->n};
    bool again = s->options->retry_failed, forgets = again || s->options->overwrite;
    int64_t n_settled = 0;
    PS_TRY(ps_fit_journal_begin(&spec, goes_on, again, s->items, s->pictures, s->settled, &s->journal, error));
    PS_TRY(ps_fit_tries_open(s->job->output_file, forgets, &s->tries, error));
    for (int64_t i = 0; i < s->n; i++) {
        s->n_tries[i] = ps_fit_tries_count(&s->tries, s->run.series.items[s->items[i].frame].source);
        n_settled += s->settled[i];
    }
    if (goes_on) ps_log(PS_LOG_INFO, "going on: %" PRId64 " of %" PRId64 " fits are there", n_settled, s->n);
    return PS_OK;
}

/* Rank 0: nothing that is there is replaced without the user's word. A failed fit that is tried again replaces its output. */
static ps_code begin_output(session *s, ps_error *error) {
    enum { BYTES_PER_FIT = 1 << 18, OTHERS = 1 << 21 };
    const char *output = s->job->output_file;
    bool overwrite = s->options->overwrite || s->options->retry_failed, left = ps_fit_journal_is_there(output);
    bool goes_on = left && s->options->resume;
    int64_t pixels = 2 * s->run.scan_rows * s->run.scan_columns + s->run.detector_rows * s->run.detector_columns;
    if (left && !goes_on && !s->options->overwrite)
        return PS_FAIL(error, PS_E_ARGUMENT,
                       "%s.fit-journal: was left by a run that did not end; --resume goes on with it, --overwrite begins anew", output);
    for (int64_t g = 0; g < s->n; g++) PS_TRY(ps_fit_optics_check(s->paths[g], overwrite || goes_on, error));
    PS_TRY(ps_new_file_begin(output, overwrite, OTHERS + s->n * (BYTES_PER_FIT + pixels * (int64_t)sizeof(float)), &s->file, error));
    return recall(s, goes_on, error);
}

/* Rank 0's to all: what is settled, and what was begun. */
static ps_code tell_all(session *s, ps_error *error) {
    MPI_Comm all = s->cluster->communicator;
    PS_TRY(PS_MPI(error, MPI_Bcast(s->n_tries, (int)s->n, MPI_INT64_T, 0, all)));
    PS_TRY(PS_MPI(error, MPI_Bcast(s->settled, (int)s->n, MPI_C_BOOL, 0, all)));
    for (int64_t i = 0; i < s->n; i++)
        if (s->settled[i]) PS_TRY(PS_MPI(error, MPI_Bcast(&s->items[i], (int)sizeof s->items[i], MPI_BYTE, 0, all)));
    return PS_OK;
}

/* ---- fitting ---- */

static void say_plan(const session *s) {
    if (s->cluster->rank != 0) return;
    for (int64_t i = 0; i < s->run.n_warnings; i++) ps_log(PS_LOG_WARNING, "%s", s->run.warnings[i]);
    ps_log(PS_LOG_INFO, "%" PRId64 " frames of %" PRId64 " x %" PRId64 " positions, %" PRId64 " fit%s; %d rank%s; %s on %s; %s",
           s->run.series.n_items, s->run.scan_rows, s->run.scan_columns, s->n, s->n == 1 ? "" : "s", s->cluster->n_ranks,
           s->cluster->n_ranks == 1 ? "" : "s", s->ops->name, s->device.name, s->held_g);
}

/* One of each group, one after another. */
static ps_code fit_groups(session *s, ps_error *error) {
    for (int64_t i = 0; i < s->n; i++) {
        ps_fit_options options;
        if (s->settled[i]) continue;
        PS_TRY(ps_fit_item_options(s, i, &options, error));
        PS_TRY(ps_fit_step(s, &options, &s->run.groups[s->items[i].group].optics, i, true, error));
        PS_TRY(ps_fit_settle(s, i, error));
    }
    return PS_OK;
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
        bool leaves_output = any_fitted(s);
        if (leaves_output) code = write_results(s, error);
        if (code == PS_OK && leaves_output) ps_fit_tries_forget(&s->tries);
        if (code == PS_OK) ps_fit_journal_end(&s->journal, true);
        if (code == PS_OK) code = judge(s, error);
    }
    return ps_cluster_agree(s->cluster, code, error);
}

static void free_session(session *s) {
    ps_fit_journal_end(&s->journal, false);
    ps_fit_tries_free(&s->tries);
    ps_new_file_end(&s->file);
    for (int64_t g = 0; s->pictures && g < s->n; g++) ps_fit_pictures_free(&s->pictures[g]);
    for (int64_t g = 0; s->paths && g < s->n; g++) free(s->paths[g]);
    free(s->pictures);
    free(s->paths);
    free(s->items);
    free(s->settled);
    free(s->n_tries);
    free(s->signature);
    ps_loader_destroy(s->loader);
    if (s->backend) ps_backend_close(s->backend);
    ps_notes_free(&s->notes);
    ps_file_checks_free(&s->checks);
    ps_run_plan_free(&s->run);
}

ps_code ps_fit_task_run(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error) {
    session s = {.cluster = cluster, .job = job, .options = options, .file = PS_NEW_FILE_NONE, .journal = PS_FIT_JOURNAL_NONE};
    int complete = 0;
    ps_code code = PS_OK;
    PS_GO(prepare(&s, error));
    PS_GO(ps_cluster_agree(cluster, cluster->rank == 0 ? look_at_existing(&s, &complete, error) : PS_OK, error));
    PS_GO(PS_MPI(error, MPI_Bcast(&complete, 1, MPI_INT, 0, cluster->communicator)));
    if (complete) goto done;
    PS_GO(ps_notes_gather(cluster, job, options->command_line, s.device.name, s.device.versions, &s.notes, error));
    ps_notes_add(&s.notes, "memory", strdup(s.held_g));
    PS_GO(ps_cluster_agree(cluster, cluster->rank == 0 ? begin_output(&s, error) : PS_OK, error));
    PS_GO(tell_all(&s, error));
    say_plan(&s);
    PS_GO(ps_fit_entry(job)->per_frame ? ps_fit_follow(&s, error) : fit_groups(&s, error));
    code = finish(&s, error);
done:
    free_session(&s);
    return code;
}
