/* Damaged recordings found before any rank opens them: every rank looks at its share and tells the others what passed. */
#include <mpi.h>
#include <stdlib.h>

#include "input/preflight.h"
#include "plan/parts.h"

/* The order of time is not known before recordings are opened; then all that are named are looked at. */
static ps_code list_recordings(const ps_job *job, ps_series *series) {
    const ps_job_series *s = &job->series;
    return ps_series_build(job->base_directory, (const char *const *)s->files, s->n_files, s->by_time ? 0 : s->first,
                           s->by_time ? -1 : s->count, s->by_time ? 1 : s->stride, series, NULL);
}

/* *same: all ranks list the same number, more than none; ranks that do not will say so when they build their plans. */
static ps_code compare_numbers(const ps_cluster *cluster, int64_t n, bool *same, ps_error *error) {
    int64_t least[2] = {n, -n};
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT64_T, MPI_MIN, cluster->communicator)));
    *same = least[0] == -least[1] && n > 0 && n <= INT32_MAX;
    return PS_OK;
}

ps_code ps_run_plan_preflight(const ps_cluster *cluster, const ps_job *job, ps_error *error) {
    ps_code code = PS_OK;
    ps_series series = {0};
    ps_reader_options options = ps_job_reader_options(job);
    uint8_t *passed = NULL;
    bool same = false;
    if (cluster->n_ranks == 1) return PS_OK; /* recordings are looked at when they are opened */
    if (list_recordings(job, &series) == PS_OK) passed = calloc((size_t)series.n_items, 1);
    PS_GO(compare_numbers(cluster, passed ? series.n_items : 0, &same, error));
    if (!same) goto done;
    for (int64_t i = cluster->rank; i < series.n_items; i += cluster->n_ranks)
        passed[i] = ps_preflight_inspect(series.items[i].source, &options, NULL) == PS_OK;
    PS_GO(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, passed, (int)series.n_items, MPI_UINT8_T, MPI_MAX, cluster->communicator)));
    for (int64_t i = 0; i < series.n_items; i++)
        if (passed[i]) ps_preflight_pass(series.items[i].source);
done:
    free(passed);
    ps_series_free(&series);
    return code;
}
