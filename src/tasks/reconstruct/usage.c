/* What bounded a run: every rank's busy times, gathered on rank 0. */
#include <string.h>

#include "cluster/gather_usage.h"
#include "core/log.h"
#include "hdf5/lock.h"
#include "tasks/reconstruct/session.h"

static ps_rank_usage measure(const ps_session *s) {
    ps_busy_times work = ps_busy_since(&s->work_begin);
    ps_rank_usage mine = {
        .start_s = s->work_begin.wall_s - s->begin.wall_s, .work_s = work.wall_s, .any_s = work.any_s, .processor_s = work.processor_s};
    memcpy(mine.busy_s, work.busy_s, sizeof mine.busy_s);
    memcpy(mine.stage_s, ps_output_stage_seconds(s->output), sizeof mine.stage_s);
    return mine;
}

/* A file that is gone or full is what closing it complains of. */
static void record(const ps_session *s, const ps_usage *usage) {
    ps_error reason = {0};
    ps_hdf5_lock();
    ps_code code = ps_hdf5_is_broken() ? PS_OK : ps_output_write_usage(s->output, usage, &reason);
    ps_hdf5_unlock();
    if (code != PS_OK) ps_log(PS_LOG_WARNING, "what bounded the run is not in the output: %s", reason.text);
}

ps_code ps_session_tell_usage(const ps_session *s, ps_error *error) {
    char text[PS_USAGE_TEXT];
    ps_usage usage;
    ps_rank_usage mine = measure(s);
    if (s->n_work_items + s->n_suspects == 0) return PS_OK;
    PS_TRY(ps_usage_gather(s->cluster, &mine, &usage, error));
    if (s->cluster->rank != 0) return PS_OK;
    ps_usage_describe_stages(&usage, text);
    ps_log(PS_LOG_INFO, "seconds of the frames' stages, over all ranks: %s", text);
    ps_usage_describe(&usage, text);
    ps_log(PS_LOG_INFO, "%s", text);
    record(s, &usage);
    return PS_OK;
}
