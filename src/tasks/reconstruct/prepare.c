#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tasks/reconstruct/session.h"
#include "tasks/series.h"

static ps_code open_loader(ps_session *s, ps_error *error) {
    s->shape = ps_run_loader_shape(s->job, &s->run);
    return ps_loader_create(&s->shape, s->memory.ring_bytes, &s->loader, error);
}

/* What a device has free is only known once it is open; a backend on the host is opened with what the host leaves. */
static ps_code open_backend(ps_session *s, ps_error *error) {
    ps_backend_options options;
    PS_TRY(ps_series_backend(s->cluster, s->job, &s->ops, &options, error));
    PS_TRY(ps_run_memory_begin(s->job, &s->run, s->ops, &s->share, s->cluster->n_cpus, &s->memory, error));
    options.n_pieces = s->memory.packed.n_pieces;
    options.memory_budget_bytes = s->memory.backend_budget;
    PS_TRY(ps_backend_open(s->ops, &options, &s->backend, error));
    ps_backend_info(s->backend, &s->device);
    return ps_run_memory_finish(s->job, &s->run, s->ops, &s->share, s->device.budget_bytes, &s->memory, error);
}

/* Once for the run: pinning memory takes time. */
static ps_code make_images(ps_session *s, ps_error *error) {
    s->images = calloc((size_t)s->memory.n_images, sizeof *s->images);
    if (!s->images) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate the list of images");
    return ps_backend_host_allocate(s->backend, s->memory.n_images, s->run.image_rows * s->run.image_columns, s->images, error);
}

/* Collective: what was measured when the output was made belongs to it. Whether there is one is rank 0's to say. */
static ps_code recall_output(ps_session *s, ps_error *error) {
    int exists = s->resume && s->cluster->rank == 0 && access(s->job->output_file, F_OK) == 0;
    PS_TRY(PS_MPI(error, MPI_Bcast(&exists, 1, MPI_INT, 0, s->cluster->communicator)));
    ps_code code = exists ? ps_measured_read(s->job->output_file, &s->measured, error) : PS_OK;
    return ps_cluster_agree(s->cluster, code, error);
}

ps_code ps_session_prepare(ps_session *s, ps_error *error) {
    PS_TRY(ps_series_begin(s->cluster, s->job, error));
    PS_TRY(recall_output(s, error));
    PS_TRY(ps_series_agree(s->cluster, ps_run_plan_build_like(s->job, s->measured, &s->run, error), &s->run, error));
    PS_TRY(ps_file_checks_make(s->cluster, s->job, &s->run, &s->checks, error));
    PS_TRY(ps_run_plan_survey(s->cluster, s->job, s->measured, &s->run, 0, error));
    ps_code looked = s->cluster->rank == 0 ? ps_run_plan_inspect(s->job, &s->run, error) : PS_OK;
    PS_TRY(ps_cluster_agree(s->cluster, looked, error));
    s->group_mean = calloc((size_t)s->run.n_groups, sizeof *s->group_mean);
    ps_code code = s->group_mean ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate the list of mean patterns");
    PS_TRY(ps_cluster_agree(s->cluster, code, error));
    PS_TRY(ps_memory_share_measure(s->cluster, &s->share, error));
    code = open_backend(s, error);
    if (code == PS_OK) code = open_loader(s, error);
    if (code == PS_OK) code = make_images(s, error);
    return ps_cluster_agree(s->cluster, code, error);
}
