#include "tasks/reconstruct/run.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/stop.h"
#include "core/log.h"
#include "core/text.h"
#include "hdf5/lock.h"
#include "method/curves.h"
#include "plan/backend_choice.h"
#include "plan/file_checks.h"
#include "plan/first_patterns.h"
#include "plan/memory.h"
#include "store/guard.h"
#include "store/provenance.h"
#include "store/view.h"
#include "tasks/reconstruct/frame_solve.h"
#include "tasks/reconstruct/worker.h"

/* Everything a run holds; one cleanup for all. */
typedef struct {
    const ps_cluster *cluster;
    const ps_job *job;
    const ps_run_options *options;
    ps_measured *measured; /* of the output that is gone on with; NULL: a new one */
    ps_run_plan run;
    ps_file_checks checks;
    ps_loader_shape shape;
    ps_loader *loader;
    double **group_mean;
    const ps_backend_ops *ops;
    ps_backend *backend;
    ps_device_info device;
    ps_memory_share share; /* of the host */
    ps_run_memory memory;
    ps_notes notes;
    uint8_t *states;      /* [n_frames] what the output says */
    int64_t n_work_items; /* frames to do that are no suspects */
    int64_t *work_items;
    int64_t n_suspects;
    uint8_t *suspects; /* [n_frames] to do, but begun before and never ended: tried last */
    char *note;        /* for every frame of a run that goes on with another backend; NULL: none */
    ps_output *output;
    ps_queue *queue;
    ps_attempts *attempts;
} session;

/* ---- before the output exists ------------------------------------------------------------------------------------------------- */

static ps_code open_loader(session *s, ps_error *error) {
    s->shape = ps_run_loader_shape(s->job, &s->run);
    return ps_loader_create(&s->shape, s->memory.ring_bytes, &s->loader, error);
}

/* What a device has free is only known once it is open; a backend on the host is opened with what the host leaves. */
static ps_code open_backend(session *s, ps_error *error) {
    ps_backend_options options;
    PS_TRY(ps_backend_choose(s->job, s->cluster->node_rank, s->cluster->n_node_ranks, &s->ops, &options, error));
    PS_TRY(ps_run_memory_begin(s->job, &s->run, s->ops, &s->share, &s->memory, error));
    options.memory_budget_bytes = s->memory.backend_budget;
    if (options.n_threads == 0) options.n_threads = omp_get_max_threads();
    PS_TRY(ps_backend_open(s->ops, &options, &s->backend, error));
    ps_backend_info(s->backend, &s->device);
    return ps_run_memory_finish(s->job, &s->run, s->ops, &s->share, s->device.budget_bytes, &s->memory, error);
}

/* Collective: every rank must see the same recordings; a file system that one node does not see yet is found here. */
static ps_code agree_on_inputs(const session *s, ps_error *error) {
    int64_t n = s->run.series.n_items, first = n;
    for (int64_t i = n - 1; i >= 0; i--)
        if (s->run.frames[i].unreadable) first = i;
    int64_t mine[3] = {n, s->run.n_unreadable, s->run.n_groups}, least[3], most[3];
    PS_TRY(PS_MPI(error, MPI_Allreduce(mine, least, 3, MPI_INT64_T, MPI_MIN, s->cluster->communicator)));
    PS_TRY(PS_MPI(error, MPI_Allreduce(mine, most, 3, MPI_INT64_T, MPI_MAX, s->cluster->communicator)));
    if (memcmp(least, most, sizeof least) == 0) return PS_OK;
    ps_code code = PS_OK;
    if (n != most[0] || s->run.n_unreadable != least[1] || s->run.n_groups != most[2])
        code = PS_FAIL(error, PS_E_IO, "host %s sees other inputs than another rank: %lld recordings, %lld unreadable%s%s",
                       s->cluster->host, (long long)n, (long long)s->run.n_unreadable, first < n ? ", the first because: " : "",
                       first < n ? s->run.frames[first].unreadable : "");
    return ps_cluster_agree(s->cluster, code, error);
}

/* Before anything is touched: the output is none of the files that are read. */
static ps_code guard_inputs(const session *s, ps_error *error) {
    ps_reader_options options = ps_job_reader_options(s->job);
    return s->cluster->rank == 0 ? ps_guard_output(s->job, &options, error) : PS_OK;
}

/* Collective: what was measured when the output was made belongs to it. Whether there is one is rank 0's to say. */
static ps_code recall_output(session *s, ps_error *error) {
    int exists = s->options->resume && s->cluster->rank == 0 && access(s->job->output_file, F_OK) == 0;
    PS_TRY(PS_MPI(error, MPI_Bcast(&exists, 1, MPI_INT, 0, s->cluster->communicator)));
    ps_code code = exists ? ps_measured_read(s->job->output_file, &s->measured, error) : PS_OK;
    return ps_cluster_agree(s->cluster, code, error);
}

/* Collective. */
static ps_code prepare_rank(session *s, ps_error *error) {
    PS_TRY(ps_run_plan_preflight(s->cluster, s->job, error));
    PS_TRY(ps_cluster_agree(s->cluster, guard_inputs(s, error), error));
    PS_TRY(recall_output(s, error));
    PS_TRY(ps_cluster_agree(s->cluster, ps_run_plan_build_like(s->job, s->measured, &s->run, error), error));
    PS_TRY(agree_on_inputs(s, error));
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
    return ps_cluster_agree(s->cluster, code, error);
}

/* ---- the output --------------------------------------------------------------------------------------------------------------- */

static void describe_frames(const session *s, ps_output_frame_source *frames) {
    for (int64_t i = 0; i < s->run.series.n_items; i++) {
        const ps_series_item *item = &s->run.series.items[i];
        const ps_run_frame *frame = &s->run.frames[i];
        frames[i] = (ps_output_frame_source){.source = item->source,
                                             .bytes = item->bytes,
                                             .mtime_ns = item->mtime_ns,
                                             .checksum = s->checks.named[i],
                                             .acquisition_time = frame->info.acquisition_time,
                                             .optics = frame->group,
                                             .n_files = s->checks.first[i + 1] - s->checks.first[i],
                                             .files = s->checks.files + s->checks.first[i],
                                             .unreadable = frame->unreadable};
    }
}

static void describe_optics(const session *s, ps_output_optics *optics) {
    for (int64_t g = 0; g < s->run.n_groups; g++) {
        const ps_run_group *group = &s->run.groups[g];
        optics[g] = (ps_output_optics){.given = group->given,
                                       .used = group->used,
                                       .origin = group->origin,
                                       .plan = &group->plan,
                                       .bad = group->bad,
                                       .n_bad_file = group->n_bad_file,
                                       .n_bad_mask = group->n_bad_mask,
                                       .n_bad_hot = group->n_bad_hot,
                                       .n_bad_dead = group->n_bad_dead,
                                       .first_frame = group->first,
                                       .needs_mean_pattern = ps_first_patterns_need(s->job, group),
                                       .mean_pattern = s->group_mean[g]};
    }
}

/* Rank 0: the file, new or as it stands. */
static ps_code make_output(const session *s, ps_error *error) {
    ps_code code = PS_OK;
    double curve[PS_N_CURVE_STRENGTHS];
    ps_output_frame_source *frames = calloc((size_t)s->run.series.n_items, sizeof *frames);
    ps_output_optics *optics = calloc((size_t)s->run.n_groups, sizeof *optics);
    PS_GO_ALLOC(error, frames);
    PS_GO_ALLOC(error, optics);
    describe_frames(s, frames);
    describe_optics(s, optics);
    ps_curve_strengths(curve);
    ps_output_spec spec = {.job = s->job,
                           .n_frames = s->run.series.n_items,
                           .frames = frames,
                           .n_optics = s->run.n_groups,
                           .optics = optics,
                           .image_rows = s->run.image_rows,
                           .image_columns = s->run.image_columns,
                           .image_step_A = {s->run.image_step_A[0], s->run.image_step_A[1]},
                           .n_curve_strengths = PS_N_CURVE_STRENGTHS,
                           .curve_strengths = curve,
                           .n_notes = s->notes.n,
                           .notes = s->notes.notes};
    if (s->measured)
        PS_GO(ps_output_resume(s->job->output_file, &spec, s->options->retry_failed, error));
    else
        PS_GO(ps_output_create(s->job->output_file, s->options->overwrite, &spec, error));
done:
    free(frames);
    free(optics);
    return code;
}

/* Why a frame cannot be reconstructed, known before it is read; NULL: it can. */
static const char *reason_not_to(const ps_run_frame *frame) {
    return frame->unreadable ? frame->unreadable : frame->refused;
}

/* Frames nobody can open, or that do not belong to the others, are failed at once, with the reason. */
static ps_code fail_unusable(session *s, ps_error *error) {
    for (int64_t i = 0; i < s->run.series.n_items; i++) {
        const ps_run_frame *frame = &s->run.frames[i];
        const char *reason = reason_not_to(frame);
        if (!reason || s->states[i] != PS_FRAME_PENDING) continue;
        s->states[i] = PS_FRAME_FAILED;
        if (s->cluster->rank != 0) continue;
        ps_frame_seen seen = ps_run_seen_frame(&frame->seen);
        ps_log(PS_LOG_ERROR, "frame %lld (%s) failed: %s", (long long)i, s->run.series.items[i].source, reason);
        PS_TRY(ps_output_write_seen(s->output, i, &seen, error));
        PS_TRY(ps_output_fail_frame(s->output, i, reason, error));
    }
    return PS_OK;
}

/* Group by group, the suspects or all others that are to do; work items: [n_frames]. Returns how many. */
static int64_t fill_places(const session *s, bool suspects, int64_t *work_items) {
    int64_t n = 0;
    for (int64_t g = 0; g < s->run.n_groups; g++)
        for (int64_t i = 0; i < s->run.groups[g].n_frames; i++) {
            int64_t frame = s->run.groups[g].frames[i];
            if (s->states[frame] == PS_FRAME_PENDING && (s->suspects[frame] != 0) == suspects) work_items[n++] = frame;
        }
    return n;
}

/* What others are held against is written before any of them is done: a recording that cannot be read when the run goes on still counts. */
static ps_code write_references(session *s, ps_error *error) {
    for (int64_t g = 0; s->cluster->rank == 0 && g < s->run.n_groups; g++)
        for (int64_t k = 0; k < s->run.groups[g].n_frames; k++) {
            int64_t frame = s->run.groups[g].frames[k];
            const ps_run_seen *found = &s->run.frames[frame].seen;
            ps_frame_seen seen = ps_run_seen_frame(found);
            if (frame < s->run.groups[g].first) continue;
            if (s->states[frame] == PS_FRAME_PENDING && found->looked) PS_TRY(ps_output_write_seen(s->output, frame, &seen, error));
            if (found->has_disc) break;
        }
    return PS_OK;
}

static ps_code list_places(session *s, ps_error *error) {
    size_t n = (size_t)s->run.series.n_items;
    s->work_items = malloc(n * sizeof *s->work_items);
    s->suspects = calloc(n, sizeof *s->suspects);
    if (!s->work_items || !s->suspects) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate the order of work");
    for (size_t i = 0; i < n; i++) {
        s->suspects[i] = s->states[i] == PS_FRAME_PENDING && ps_output_attempts(s->output)[i] > 0;
        s->n_suspects += s->suspects[i];
    }
    s->n_work_items = fill_places(s, false, s->work_items);
    if (s->n_suspects > 0 && s->cluster->rank == 0)
        ps_log(PS_LOG_WARNING, "%lld frames were begun before and never ended; they are tried last, one at a time",
               (long long)s->n_suspects);
    return PS_OK;
}

/* A run may go on with another backend; its frames then say so. */
static ps_code note_backend(session *s, ps_error *error) {
    ps_view view;
    PS_TRY(ps_view_open(s->job->output_file, &view, error));
    char *before = ps_view_text(&view, "optics_0/backend");
    ps_view_close(&view);
    if (before && before[0] && strcmp(before, s->ops->name) != 0) {
        s->note = ps_text_format("backend %s; earlier frames of this file are by %s", s->ops->name, before);
        if (s->cluster->rank == 0)
            ps_log(PS_LOG_WARNING, "going on with backend %s, the run before used %s: recorded with each frame", s->ops->name, before);
    }
    free(before);
    return PS_OK;
}

static ps_code open_output(session *s, ps_error *error) {
    int64_t n_states = 0;
    ps_code code = s->cluster->rank == 0 ? make_output(s, error) : PS_OK;
    PS_TRY(ps_cluster_agree(s->cluster, code, error));
    code = ps_output_states(s->job->output_file, &n_states, &s->states, error);
    if (code == PS_OK && n_states != s->run.series.n_items)
        code = PS_FAIL(error, PS_E_INTERNAL, "%s: holds %lld frames, expected %lld", s->job->output_file, (long long)n_states,
                       (long long)s->run.series.n_items);
    if (code == PS_OK && s->options->resume) code = note_backend(s, error);
    PS_TRY(ps_cluster_agree(s->cluster, code, error));
    PS_TRY(ps_output_open(s->job->output_file, s->cluster->communicator, &s->output, error));
    code = write_references(s, error);
    if (code == PS_OK) code = fail_unusable(s, error);
    if (code == PS_OK) code = list_places(s, error);
    return ps_cluster_agree(s->cluster, code, error);
}

/* ---- the work and its outcome ------------------------------------------------------------------------------------------------- */

/* Of this rank; malloc'd. */
static char *describe_memory(const session *s) {
    char host[PS_BYTES_TEXT], free_bytes[PS_BYTES_TEXT];
    return ps_text_format("rank %d: %s of the host%s, %s were free for it (%s); %lld frames at a time", s->cluster->rank,
                          ps_text_bytes((double)s->memory.host_bytes, host), s->memory.on_device ? " beside the device's" : "",
                          ps_text_bytes((double)s->share.bytes, free_bytes), s->share.text, (long long)s->memory.backend.frames_per_batch);
}

static void say_plan(const session *s) {
    const ps_run_plan *run = &s->run;
    if (s->cluster->rank != 0) return;
    for (int64_t i = 0; i < run->n_warnings; i++) ps_log(PS_LOG_WARNING, "%s", run->warnings[i]);
    ps_log(PS_LOG_INFO, "%lld frames of %lld x %lld positions, %lld to do; images %lld x %lld; %d rank%s; %s on %s",
           (long long)run->series.n_items, (long long)run->scan_rows, (long long)run->scan_columns,
           (long long)(s->n_work_items + s->n_suspects), (long long)run->image_rows, (long long)run->image_columns, s->cluster->n_ranks,
           s->cluster->n_ranks == 1 ? "" : "s", s->ops->name, s->device.name);
    char bytes[PS_BYTES_TEXT];
    ps_log(PS_LOG_INFO, "memory of each rank: %s of the host%s; up to %lld frame%s at a time",
           ps_text_bytes((double)s->memory.host_bytes, bytes), s->memory.on_device ? " and what the device needs" : "",
           (long long)s->memory.backend.frames_per_batch, s->memory.backend.frames_per_batch == 1 ? "" : "s");
}

typedef struct {
    int64_t n_frames, n_done, n_failed, n_unread; /* of the whole file; n_unread of this run */
} outcome;

static ps_code count_outcome(const session *s, const ps_work_summary *mine, outcome *all, ps_error *error) {
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
static ps_code judge(const session *s, const outcome *all, ps_code stopped, ps_error *error) {
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
    return PS_FAIL(error, code, "%lld of %lld frames failed; their reasons are above and in /entry/frames/error of %s",
                   (long long)all->n_failed, (long long)all->n_frames, s->job->output_file);
}

/* One pass over work items, shared through queue; suspects: see ps_work. Adds to *summary. Rank-local. */
static ps_code work_through(session *s, int64_t n_work_items, const int64_t *work_items, ps_queue *queue, uint8_t *suspects,
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
static ps_code share_suspects(const session *s, ps_code mine, bool *stopped, ps_error *error) {
    int stops = mine == PS_E_INTERRUPTED;
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, &stops, 1, MPI_INT, MPI_MAX, s->cluster->communicator)));
    *stopped = stops != 0;
    return PS_MPI(error,
                  MPI_Allreduce(MPI_IN_PLACE, s->suspects, (int)s->run.series.n_items, MPI_UINT8_T, MPI_MAX, s->cluster->communicator));
}

/* Collective: when all other frames are dealt with. A rank whose code *mine is an error takes no part. */
static ps_code try_suspects(session *s, ps_code *mine, ps_work_summary *summary, ps_error *error) {
    ps_code code = PS_OK;
    ps_queue *queue = NULL;
    ps_error ignored = {0};
    int64_t *work_items = malloc((size_t)s->run.series.n_items * sizeof *work_items);
    if (!work_items) code = PS_FAIL(&ignored, PS_E_MEMORY, "cannot allocate the order of work");
    PS_GO(ps_cluster_agree(s->cluster, code, error));
    int64_t n = fill_places(s, true, work_items);
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
static ps_code judge_losses(const session *s, bool lost, ps_error *error) {
    int all_lost = lost;
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, &all_lost, 1, MPI_INT, MPI_MIN, s->cluster->communicator)));
    return all_lost && s->cluster->rank == 0 ? ps_attempts_count_once(s->attempts, error) : PS_OK;
}

static ps_code do_work(session *s, ps_error *error) {
    ps_work_summary summary = {0};
    outcome all = {0};
    bool stopped = false;
    ps_code code = work_through(s, s->n_work_items, s->work_items, s->queue, s->suspects, &summary, error);
    PS_TRY(share_suspects(s, code, &stopped, NULL));
    if (!stopped) PS_TRY(try_suspects(s, &code, &summary, code == PS_OK ? error : NULL));
    judge_losses(s, summary.lost, NULL);
    code = ps_cluster_agree(s->cluster, code, error);
    PS_TRY(count_outcome(s, &summary, &all, NULL));
    return judge(s, &all, code, error);
}

static void free_session(session *s) {
    ps_queue_destroy(s->queue);
    ps_attempts_destroy(s->attempts);
    ps_loader_destroy(s->loader);
    if (s->backend) ps_backend_close(s->backend);
    for (int64_t g = 0; s->group_mean && g < s->run.n_groups; g++) free(s->group_mean[g]);
    free(s->group_mean);
    free(s->states);
    free(s->work_items);
    free(s->suspects);
    free(s->note);
    ps_notes_free(&s->notes);
    ps_file_checks_free(&s->checks);
    ps_run_plan_free(&s->run);
    ps_measured_free(s->measured);
}

ps_code ps_reconstruct(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error) {
    session s = {.cluster = cluster, .job = job, .options = options};
    ps_code code = prepare_rank(&s, error);
    ps_error closing = {0};
    if (code != PS_OK) goto done;
    PS_GO(ps_first_patterns(cluster, job, s.measured, &s.run, s.loader, &s.shape, s.group_mean, error));
    PS_GO(ps_notes_gather(cluster, job, options->command_line, s.device.name, s.device.versions, &s.notes, error));
    ps_notes_add(&s.notes, "memory", describe_memory(&s));
    PS_GO(open_output(&s, error));
    say_plan(&s);
    PS_GO(ps_queue_create(cluster, s.n_work_items, &s.queue, error));
    PS_GO(ps_attempts_create(cluster, s.output, s.run.series.n_items, &s.attempts, error));
    code = do_work(&s, error);
done:
    if (s.output && ps_output_close(s.output, &closing) != PS_OK && (code == PS_OK || code == PS_E_PARTIAL || code == PS_E_INTERRUPTED)) {
        code = closing.code;
        if (error) *error = closing;
    }
    free_session(&s);
    return code;
}
