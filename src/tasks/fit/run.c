#include "tasks/fit/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "plan/memory.h"
#include "store/view.h"
#include "tasks/fit/choose.h"
#include "tasks/fit/file.h"
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
    ps_new_file file;          /* rank 0's */
    ps_fit_item *items;        /* [run.n_groups]; of every rank, filled on rank 0 */
    ps_fit_pictures *pictures; /* [run.n_groups] */
    char **paths;              /* [run.n_groups] of the optics files */
} session;

/* ---- before fitting ---- */

static ps_code open_backend(session *s, ps_error *error) {
    ps_backend_options options;
    ps_run_memory memory = {0};
    PS_TRY(ps_series_backend(s->cluster, s->job, &s->ops, &options, error));
    PS_TRY(ps_run_memory_begin(s->job, &s->run, s->ops, NULL, &memory, error));
    PS_TRY(ps_backend_open(s->ops, &options, &s->backend, error));
    ps_backend_info(s->backend, &s->device);
    const ps_loader_shape shape = ps_run_loader_shape(s->job, &s->run);
    return ps_loader_create(&shape, memory.ring_bytes, &s->loader, error);
}

static ps_code list_items(session *s, ps_error *error) {
    size_t n = (size_t)s->run.n_groups;
    s->items = calloc(n, sizeof *s->items);
    s->pictures = calloc(n, sizeof *s->pictures);
    s->paths = calloc(n, sizeof *s->paths);
    if (!s->items || !s->pictures || !s->paths) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu fits", n);
    for (int64_t g = 0; g < s->run.n_groups; g++) {
        s->items[g].group = g;
        PS_TRY(ps_fit_choose_frame(&s->run, g, ps_fit_entry(s->job)->frame, &s->items[g].frame, error));
        PS_TRY(ps_fit_optics_path(s->job, &s->run, g, s->items[g].frame, &s->paths[g], error));
        for (int64_t before = 0; before < g; before++)
            if (strcmp(s->paths[before], s->paths[g]) == 0)
                return PS_FAIL(error, PS_E_JOB, "/fit/optics_file: the optics of two groups would go to %s", s->paths[g]);
    }
    return PS_OK;
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
    for (int64_t g = 0; g < s->run.n_groups; g++) PS_TRY(ps_fit_optics_check(s->paths[g], overwrite, error));
    return ps_new_file_begin(s->job->output_file, overwrite, OTHERS + s->run.n_groups * (BYTES_PER_FIT + pixels * (int64_t)sizeof(float)),
                             &s->file, error);
}

/* ---- fitting ---- */

static void say_plan(const session *s) {
    if (s->cluster->rank != 0) return;
    for (int64_t i = 0; i < s->run.n_warnings; i++) ps_log(PS_LOG_WARNING, "%s", s->run.warnings[i]);
    ps_log(PS_LOG_INFO, "%" PRId64 " frames of %" PRId64 " x %" PRId64 " positions, %" PRId64 " fit%s; %d rank%s; %s on %s",
           s->run.series.n_items, s->run.scan_rows, s->run.scan_columns, s->run.n_groups, s->run.n_groups == 1 ? "" : "s",
           s->cluster->n_ranks, s->cluster->n_ranks == 1 ? "" : "s", s->ops->name, s->device.name);
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

static ps_code fit_all(session *s, ps_error *error) {
    const ps_fit_source source = {.job = s->job, .run = &s->run, .backend = s->backend, .loader = s->loader};
    const ps_job_fit *fit = ps_fit_entry(s->job);
    for (int64_t g = 0; g < s->run.n_groups; g++) {
        ps_fit_options options = fit->options;
        PS_TRY(ps_cluster_agree(s->cluster, ps_fit_find_given(&s->run.groups[g], &options, error), error));
        PS_TRY(ps_fit_item_run(s->cluster, &source, fit, &options, &s->run.groups[g].optics, &s->items[g], &s->pictures[g], error));
        say_item(s, &s->items[g]);
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
                                   .n_items = s->run.n_groups,
                                   .items = s->items,
                                   .pictures = s->pictures,
                                   .device = s->device.name};
    for (int64_t g = 0; g < s->run.n_groups; g++) {
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
    for (int64_t g = 0; g < s->run.n_groups; g++) {
        if (s->items[g].code == PS_OK) continue;
        n_failed++;
        if (!first) first = &s->items[g];
    }
    if (n_failed == s->run.n_groups) return PS_FAIL(error, PS_E_INPUT, "%s: %s", s->run.series.items[first->frame].source, first->reason);
    return n_failed > 0 ? ps_series_fail(PS_E_PARTIAL, s->job, n_failed, s->run.n_groups, "", error) : PS_OK;
}

static bool any_fitted(const session *s) {
    for (int64_t g = 0; g < s->run.n_groups; g++)
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
    for (int64_t g = 0; s->pictures && g < s->run.n_groups; g++) ps_fit_pictures_free(&s->pictures[g]);
    for (int64_t g = 0; s->paths && g < s->run.n_groups; g++) free(s->paths[g]);
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
    PS_GO(ps_cluster_agree(cluster, cluster->rank == 0 ? begin_output(&s, error) : PS_OK, error));
    say_plan(&s);
    PS_GO(fit_all(&s, error));
    code = finish(&s, error);
done:
    free_session(&s);
    return code;
}
