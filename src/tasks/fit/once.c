#include "tasks/fit/once.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "optics/optics_json.h"
#include "plan/memory.h"
#include "tasks/fit/choose.h"
#include "tasks/fit/memory.h"
#include "tasks/fit/tries.h"
#include "tasks/series.h"

typedef struct {
    ps_run_plan run;
    ps_backend *backend;
    ps_loader *loader;
    ps_fit_item item;
    ps_fit_pictures pictures;
    ps_fit_tries tries; /* rank 0's */
} session;

static ps_code open_backend(const ps_cluster *cluster, const ps_job *job, const ps_job_fit *fit, session *s, ps_error *error) {
    const ps_backend_ops *ops;
    ps_backend_options options;
    ps_run_memory memory = {0};
    ps_device_info info;
    ps_fit_memory planned;
    PS_TRY(ps_series_backend(cluster, job, &ops, &options, error));
    PS_TRY(ps_run_memory_begin(job, &s->run, ops, NULL, 0, &memory, error));
    options.memory_budget_bytes = memory.backend_budget;
    PS_TRY(ps_backend_open(ops, &options, &s->backend, error));
    ps_backend_info(s->backend, &info);
    size_t budget = memory.backend_budget ? memory.backend_budget : info.budget_bytes;
    PS_TRY(ps_fit_memory_plan(job, &s->run, fit, ops, budget, &planned, error));
    const ps_loader_shape shape = ps_run_loader_shape(job, &s->run);
    return ps_loader_create(&shape, memory.ring_bytes, &s->loader, error);
}

/* Rank 0. */
static ps_code choose(const ps_job *job, const ps_job_fit *fit, bool forget, session *s, ps_error *error) {
    if (s->run.n_groups > 1)
        ps_log(PS_LOG_INFO, "one fit serves recordings whose masks differ: it is made with those of %s",
               s->run.series.items[s->run.groups[0].frames[0]].stem);
    PS_TRY(ps_fit_tries_open(job->output_file, forget, &s->tries, error));
    return ps_fit_choose_untried(&s->run, 0, fit->frame, &s->tries, &s->item.frame, error);
}

static ps_code do_fit(const ps_cluster *cluster, const ps_job *job, const ps_job_fit *fit, session *s, ps_error *error) {
    const ps_fit_source source = {.job = job, .run = &s->run, .backend = s->backend, .loader = s->loader};
    ps_fit_options options = fit->options;
    PS_TRY(ps_cluster_agree(cluster, ps_fit_find_given(&s->run.groups[0], &options, error), error));
    const char *recording = s->run.series.items[s->item.frame].source;
    ps_code begun = cluster->rank == 0 ? ps_fit_tries_begin(&s->tries, 1, &recording, error) : PS_OK;
    PS_TRY(ps_cluster_agree(cluster, begun, error));
    ps_code ran = ps_fit_item_run(cluster, &source, fit, &options, &s->run.groups[0].optics, &s->item, &s->pictures, error);
    if (cluster->rank == 0 && ran != PS_E_DEVICE && ran != PS_E_BACKEND) ps_fit_tries_end(&s->tries, 1, &recording, ran == PS_OK, NULL);
    PS_TRY(ran);
    ps_code code = s->item.code;
    if (cluster->rank == 0 && code != PS_OK)
        PS_FAIL(error, code, "/optics/fit: %s: %s", s->run.series.items[s->item.frame].source, s->item.reason);
    if (cluster->rank != 0) code = PS_OK;
    return ps_cluster_agree(cluster, code, error);
}

/* malloc'd; NULL: no memory. */
static char *describe(const session *s) {
    const ps_fit_result *r = &s->item.result;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    fprintf(out, "optics fitted on frame %lld: explained power %.5g before, %.5g after, %lld trials, %.2f s", (long long)s->item.frame,
            r->before, r->after, (long long)r->n_evaluations, s->item.seconds);
    for (int i = 0; i < r->parameters.n; i++)
        fprintf(out, "; %s %.6g +- %.3g", r->parameters.items[i].name, r->values[i], r->curvature.error[i]);
    for (int i = 0; i < r->n_notes; i++) fprintf(out, "; %s", r->notes[i]);
    return fclose(out) == 0 ? text : NULL;
}

/* Rank 0's optics to all. */
static ps_code share(const ps_cluster *cluster, const session *s, cJSON **optics, ps_error *error) {
    ps_optics fitted = s->item.result.optics;
    PS_TRY(PS_MPI(error, MPI_Bcast(&fitted, (int)sizeof fitted, MPI_BYTE, 0, cluster->communicator)));
    *optics = ps_optics_to_json(&fitted);
    ps_code code = *optics ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics");
    return ps_cluster_agree(cluster, code, error);
}

static void free_session(session *s) {
    ps_fit_tries_free(&s->tries);
    ps_fit_pictures_free(&s->pictures);
    ps_loader_destroy(s->loader);
    if (s->backend) ps_backend_close(s->backend);
    ps_run_plan_free(&s->run);
    free(s);
}

ps_code ps_fit_once(const ps_cluster *cluster, const ps_job *job, const ps_job_fit *fit, bool forget, cJSON **optics, char **text,
                    ps_error *error) {
    session *s = calloc(1, sizeof *s);
    *optics = NULL;
    *text = NULL;
    ps_code code = s ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a fit");
    PS_TRY(ps_cluster_agree(cluster, code, error));
    PS_GO(ps_series_agree(cluster, ps_run_plan_build(job, &s->run, error), &s->run, error));
    PS_GO(ps_run_plan_survey(cluster, job, NULL, &s->run, 1, error));
    code = cluster->rank == 0 ? choose(job, fit, forget, s, error) : PS_OK;
    PS_GO(ps_cluster_agree(cluster, code, error));
    PS_GO(PS_MPI(error, MPI_Bcast(&s->item.frame, 1, MPI_INT64_T, 0, cluster->communicator)));
    code = open_backend(cluster, job, fit, s, error);
    PS_GO(ps_cluster_agree(cluster, code, error));
    PS_GO(do_fit(cluster, job, fit, s, error));
    PS_GO(share(cluster, s, optics, error));
    if (cluster->rank == 0) *text = describe(s);
    for (int i = 0; cluster->rank == 0 && i < s->item.result.n_notes; i++)
        ps_log(PS_LOG_WARNING, "optics.fit: %s", s->item.result.notes[i]);
done:
    free_session(s);
    return code;
}
