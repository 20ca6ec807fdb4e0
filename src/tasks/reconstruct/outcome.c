#include <stdlib.h>

#include "core/log.h"
#include "tasks/reconstruct/session.h"
#include "tasks/reconstruct/worker.h"
#include "tasks/series.h"

typedef struct {
    int64_t n_frames, n_done, n_failed, n_unread; /* of the whole file; n_unread of this run */
} outcome;

static ps_code count_outcome(const ps_session *s, const ps_work_summary *mine, outcome *all, ps_error *error) {
    int64_t sum[3] = {mine->n_done, mine->n_failed, mine->n_unread};
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, sum, 3, MPI_INT64_T, MPI_SUM, s->cluster->communicator)));
    *all = (outcome){.n_frames = s->run.series.n_items, .n_done = sum[0], .n_failed = sum[1], .n_unread = sum[2]};
    for (int64_t i = 0; i < s->run.series.n_items; i++) {
        all->n_done += s->states[i] == PS_FRAME_DONE;
        all->n_failed += s->states[i] == PS_FRAME_FAILED;
        all->n_unread += s->states[i] == PS_FRAME_FAILED && s->run.frames[i].unreadable;
    }
    return PS_OK;
}

/* The run's code from what all frames came to and what stopped a rank, if anything did. */
static ps_code judge(const ps_session *s, const outcome *all, ps_code stopped, ps_error *error) {
    ps_error reason = error ? *error : (ps_error){0};
    if (all->n_done + all->n_failed < all->n_frames) {
        if (stopped == PS_E_INTERRUPTED || stopped == PS_OK) {
            ps_error_clear(error);
            return PS_FAIL(error, PS_E_INTERRUPTED, "stopped (%s) with %lld of %lld frames done; run again with --resume to go on",
                           reason.text, (long long)all->n_done, (long long)all->n_frames);
        }
        return stopped;
    }
    if (stopped != PS_OK && s->cluster->rank == 0) ps_log(PS_LOG_WARNING, "a rank left early, the others did its frames: %s", reason.text);
    ps_error_clear(error);
    if (all->n_failed == 0) return PS_OK;
    ps_code code = all->n_done == 0 && all->n_unread == all->n_failed ? PS_E_INPUT : PS_E_PARTIAL;
    return ps_series_fail(code, s->job, all->n_failed, all->n_frames, "", error);
}

/* One pass over work items, shared through queue; suspects: see ps_work. Adds to *summary. Rank-local. */
static ps_code work_through(ps_session *s, int64_t n_work_items, const int64_t *work_items, ps_queue *queue, uint8_t *suspects,
                            ps_work_summary *summary, ps_error *error) {
    ps_work_summary pass;
    ps_work work = {.job = s->job,
                    .cluster = s->cluster,
                    .run = &s->run,
                    .measured = s->measured,
                    .group_mean = s->group_mean,
                    .n_work_items = n_work_items,
                    .work_items = work_items,
                    .ops = s->ops,
                    .backend = s->backend,
                    .loader = s->loader,
                    .output = s->output,
                    .n_unwritten = s->memory.n_unwritten,
                    .n_readers = s->memory.packed.n_threads,
                    .n_images = s->memory.n_images,
                    .images = s->images,
                    .queue = queue,
                    .attempts = s->attempts,
                    .suspects = suspects,
                    .frames_per_batch = s->memory.backend.frames_per_batch,
                    .two_systems = s->memory.two_systems,
                    .device = s->device.name,
                    .note = s->note};
    ps_code code = ps_work_through(&work, &pass, error);
    if (pass.lost) ps_log(PS_LOG_ERROR, "this rank cannot go on and gave its frames back: %s", error->text);
    summary->n_done += pass.n_done;
    summary->n_failed += pass.n_failed;
    summary->n_unread += pass.n_unread;
    summary->lost |= pass.lost;
    return code;
}

/* Collective: tells all ranks the suspects that each met, and whether any rank was told to stop. mine: this rank's code so far. */
static ps_code share_suspects(const ps_session *s, ps_code mine, bool *stopped, ps_error *error) {
    int stops = mine == PS_E_INTERRUPTED;
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, &stops, 1, MPI_INT, MPI_MAX, s->cluster->communicator)));
    *stopped = stops != 0;
    return PS_MPI(error,
                  MPI_Allreduce(MPI_IN_PLACE, s->suspects, (int)s->run.series.n_items, MPI_UINT8_T, MPI_MAX, s->cluster->communicator));
}

/* Collective: when all other frames are dealt with. A rank whose code *mine is an error takes no part. */
static ps_code try_suspects(ps_session *s, ps_code *mine, ps_work_summary *summary, ps_error *error) {
    ps_code code = PS_OK;
    ps_queue *queue = NULL;
    ps_error ignored = {0};
    int64_t *work_items = malloc((size_t)s->run.series.n_items * sizeof *work_items);
    if (!work_items) code = PS_FAIL(&ignored, PS_E_MEMORY, "cannot allocate the order of work");
    PS_GO(ps_cluster_agree(s->cluster, code, error));
    int64_t n = ps_session_list_work_items(s, true, work_items);
    if (n == 0) goto done;
    PS_GO(ps_queue_create(s->cluster, n, &queue, error));
    if (*mine == PS_OK)
        *mine = work_through(s, n, work_items, queue, NULL, summary, error);
    else
        ps_queue_leave(queue, &ignored);
done:
    ps_queue_destroy(queue);
    free(work_items);
    return code;
}

/* Collective: see ps_attempts_count_once. */
static ps_code judge_losses(const ps_session *s, bool lost, ps_error *error) {
    int all_lost = lost;
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, &all_lost, 1, MPI_INT, MPI_MIN, s->cluster->communicator)));
    return all_lost && s->cluster->rank == 0 ? ps_attempts_count_once(s->attempts, error) : PS_OK;
}

ps_code ps_session_work(ps_session *s, ps_error *error) {
    ps_work_summary summary = {0};
    outcome all = {0};
    bool stopped = false;
    s->work_begin = ps_busy_read();
    ps_code code = work_through(s, s->n_work_items, s->work_items, s->queue, s->suspects, &summary, error);
    PS_TRY(share_suspects(s, code, &stopped, NULL));
    if (!stopped) PS_TRY(try_suspects(s, &code, &summary, code == PS_OK ? error : NULL));
    judge_losses(s, summary.lost, NULL);
    code = ps_cluster_agree(s->cluster, code, error);
    PS_TRY(count_outcome(s, &summary, &all, NULL));
    if (code != PS_E_INTERRUPTED && all.n_done + all.n_failed == all.n_frames) {
        ps_error drifting = {0};
        ps_code measured = ps_session_measure_drift(s, &drifting);
        if (measured != PS_OK) PS_TRY(PS_FAIL(error, measured, "%s", drifting.text));
    }
    PS_TRY(ps_session_tell_usage(s, NULL));
    return judge(s, &all, code, error);
}
