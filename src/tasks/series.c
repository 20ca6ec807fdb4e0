#include "tasks/series.h"

#include <omp.h>
#include <string.h>

#include "core/log.h"
#include "plan/backend_choice.h"
#include "store/guard.h"

ps_code ps_series_begin(const ps_cluster *cluster, const ps_job *job, ps_error *error) {
    ps_reader_options options = ps_job_reader_options(job);
    PS_TRY(ps_run_plan_preflight(cluster, job, error));
    return ps_cluster_agree(cluster, cluster->rank == 0 ? ps_guard_output(job, &options, error) : PS_OK, error);
}

ps_code ps_series_agree(const ps_cluster *cluster, ps_code built, const ps_run_plan *run, ps_error *error) {
    PS_TRY(ps_cluster_agree(cluster, built, error));
    int64_t n = run->series.n_items, first = n;
    for (int64_t i = n - 1; i >= 0; i--)
        if (run->frames[i].unreadable) first = i;
    int64_t mine[3] = {n, run->n_unreadable, run->n_groups}, least[3], most[3];
    PS_TRY(PS_MPI(error, MPI_Allreduce(mine, least, 3, MPI_INT64_T, MPI_MIN, cluster->communicator)));
    PS_TRY(PS_MPI(error, MPI_Allreduce(mine, most, 3, MPI_INT64_T, MPI_MAX, cluster->communicator)));
    if (memcmp(least, most, sizeof least) == 0) return PS_OK;
    ps_code code = PS_OK;
    if (n != most[0] || run->n_unreadable != least[1] || run->n_groups != most[2])
        code = PS_FAIL(error, PS_E_IO, "host %s sees other inputs than another rank: %lld recordings, %lld unreadable%s%s", cluster->host,
                       (long long)n, (long long)run->n_unreadable, first < n ? ", the first because: " : "",
                       first < n ? run->frames[first].unreadable : "");
    return ps_cluster_agree(cluster, code, error);
}

ps_code ps_series_backend(const ps_cluster *cluster, const ps_job *job, const ps_backend_ops **ops, ps_backend_options *options,
                          ps_error *error) {
    PS_TRY(ps_backend_choose(job, cluster->node_rank, cluster->n_node_ranks, ops, options, error));
    if (options->n_threads == 0) options->n_threads = omp_get_max_threads();
    return PS_OK;
}

void ps_series_describe(const ps_run_plan *run, const ps_file_checks *checks, ps_output_frame_source *frames) {
    for (int64_t i = 0; i < run->series.n_items; i++) {
        const ps_series_item *item = &run->series.items[i];
        const ps_run_frame *frame = &run->frames[i];
        frames[i] = (ps_output_frame_source){.source = item->source,
                                             .bytes = item->bytes,
                                             .mtime_ns = item->mtime_ns,
                                             .checksum = checks->named[i],
                                             .acquisition_time = frame->info.acquisition_time,
                                             .optics = frame->group,
                                             .n_files = checks->first[i + 1] - checks->first[i],
                                             .files = checks->files + checks->first[i],
                                             .unreadable = frame->unreadable};
    }
}

void ps_series_log_failure(const ps_run_plan *run, int64_t frame, const char *reason) {
    ps_log(PS_LOG_ERROR, "frame %lld (%s) failed: %s", (long long)frame, run->series.items[frame].source, reason);
}

ps_code ps_series_fail(ps_code code, const ps_job *job, int64_t n_failed, int64_t n_frames, const char *how, ps_error *error) {
    return PS_FAIL(error, code, "%lld of %lld frames failed%s; their reasons are above and in /entry/frames/error of %s",
                   (long long)n_failed, (long long)n_frames, how, job->output_file);
}
