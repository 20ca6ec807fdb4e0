#include "reconstruct/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/stop.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/text.h"
#include "output/view.h"
#include "reconstruct/backend_choice.h"
#include "reconstruct/curves.h"
#include "reconstruct/first_patterns.h"
#include "reconstruct/frame_solve.h"
#include "reconstruct/provenance.h"
#include "reconstruct/worker.h"

static const size_t ring_bytes_most = (size_t)1 << 30;

/* Everything a run holds; one cleanup for all. */
typedef struct {
    const ps_cluster *cluster;
    const ps_job *job;
    const ps_run_options *options;
    ps_run_plan run;
    ps_loader_shape shape;
    ps_loader *loader;
    double **group_mean;
    const ps_backend_ops *ops;
    ps_backend *backend;
    ps_device_info device;
    int64_t frames_per_batch;
    ps_notes notes;
    uint8_t *states;  /* [n_frames] what the output says */
    int64_t n_places;
    int64_t *places;
    char *note;       /* for every frame of a run that goes on with another backend; NULL: none */
    ps_output *output;
    ps_queue *queue;
} session;

/* ---- before the output exists ------------------------------------------------------------------------------------------------- */

static ps_code open_loader(session *s, ps_error *error) {
    s->shape = (ps_loader_shape){.options = ps_job_reader_options(s->job),
                                 .n_positions = s->run.scan_rows * s->run.scan_columns,
                                 .detector_rows = s->run.detector_rows,
                                 .detector_columns = s->run.detector_columns,
                                 .dtype = s->run.dtype};
    return ps_loader_create(&s->shape, ring_bytes_most, &s->loader, error);
}

static ps_code open_backend(session *s, ps_error *error) {
    ps_backend_options options;
    PS_TRY(ps_backend_choose(s->job, s->cluster->node_rank, s->cluster->n_node_ranks, &s->ops, &options, error));
    PS_TRY(ps_backend_open(s->ops, &options, &s->backend, error));
    ps_backend_info(s->backend, &s->device);
    return PS_OK;
}

/* How many frames share one evaluation of the transfer. */
static ps_code plan_memory(session *s, ps_error *error) {
    ps_memory_plan memory;
    PS_TRY(ps_run_plan_memory(s->job, &s->run, s->ops, &memory, error));
    s->frames_per_batch = memory.frames_per_batch;
    return PS_OK;
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
        code = PS_FAIL(error, PS_E_IO, "host %s sees other inputs than another rank: %lld recordings, %lld unreadable%s%s", s->cluster->host,
                       (long long)n, (long long)s->run.n_unreadable, first < n ? ", the first because: " : "",
                       first < n ? s->run.frames[first].unreadable : "");
    return ps_cluster_agree(s->cluster, code, error);
}

/* Collective. */
static ps_code prepare_rank(session *s, ps_error *error) {
    PS_TRY(ps_run_plan_screen(s->cluster, s->job, error));
    PS_TRY(ps_cluster_agree(s->cluster, ps_run_plan_build(s->job, &s->run, error), error));
    PS_TRY(agree_on_inputs(s, error));
    ps_code looked = s->cluster->rank == 0 ? ps_run_plan_look(s->job, &s->run, error) : PS_OK;
    PS_TRY(ps_cluster_agree(s->cluster, looked, error));
    s->group_mean = calloc((size_t)s->run.n_groups, sizeof *s->group_mean);
    ps_code code = s->group_mean ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate the list of mean patterns");
    if (code == PS_OK) code = open_loader(s, error);
    if (code == PS_OK) code = open_backend(s, error);
    if (code == PS_OK) code = plan_memory(s, error);
    return ps_cluster_agree(s->cluster, code, error);
}

/* ---- the output --------------------------------------------------------------------------------------------------------------- */

static ps_code describe_frames(const session *s, ps_output_frame_source *frames, ps_error *error) {
    for (int64_t i = 0; i < s->run.series.n_items; i++) {
        const ps_series_item *item = &s->run.series.items[i];
        const ps_run_frame *frame = &s->run.frames[i];
        frames[i] = (ps_output_frame_source){.source = item->source,
                                             .bytes = item->bytes,
                                             .mtime_ns = item->mtime_ns,
                                             .acquisition_time = frame->info.acquisition_time,
                                             .optics = frame->group};
        if (!frame->unreadable) PS_TRY(ps_source_checksum(item->source, &frames[i].checksum, error));
    }
    return PS_OK;
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
                                       .n_bad_hot = group->n_bad_hot};
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
    PS_GO(describe_frames(s, frames, error));
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
    bool exists = access(s->job->output_file, F_OK) == 0;
    if (exists && s->options->resume) PS_GO(ps_output_resume(s->job->output_file, &spec, s->options->retry_failed, error));
    else PS_GO(ps_output_create(s->job->output_file, s->options->overwrite, &spec, error));
done:
    free(frames);
    free(optics);
    return code;
}

/* Frames nobody can open are failed at once, with the reason. */
static ps_code fail_unreadable(session *s, ps_error *error) {
    for (int64_t i = 0; i < s->run.series.n_items; i++) {
        if (!s->run.frames[i].unreadable || s->states[i] != PS_FRAME_PENDING) continue;
        s->states[i] = PS_FRAME_FAILED;
        if (s->cluster->rank != 0) continue;
        ps_log(PS_LOG_ERROR, "frame %lld (%s) failed: %s", (long long)i, s->run.series.items[i].source, s->run.frames[i].unreadable);
        PS_TRY(ps_output_fail_frame(s->output, i, s->run.frames[i].unreadable, error));
    }
    return PS_OK;
}

static ps_code list_places(session *s, ps_error *error) {
    s->places = malloc((size_t)s->run.series.n_items * sizeof *s->places);
    if (!s->places) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate the order of work");
    for (int64_t g = 0; g < s->run.n_groups; g++)
        for (int64_t i = 0; i < s->run.groups[g].n_frames; i++) {
            int64_t frame = s->run.groups[g].frames[i];
            if (s->states[frame] == PS_FRAME_PENDING) s->places[s->n_places++] = frame;
        }
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
        if (s->cluster->rank == 0) ps_log(PS_LOG_WARNING, "going on with backend %s, the run before used %s: recorded with each frame", s->ops->name, before);
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
    code = fail_unreadable(s, error);
    if (code == PS_OK) code = list_places(s, error);
    return ps_cluster_agree(s->cluster, code, error);
}

/* ---- the work and its outcome ------------------------------------------------------------------------------------------------- */

static void say_plan(const session *s) {
    const ps_run_plan *run = &s->run;
    if (s->cluster->rank != 0) return;
    for (int64_t i = 0; i < run->n_warnings; i++) ps_log(PS_LOG_WARNING, "%s", run->warnings[i]);
    ps_log(PS_LOG_INFO, "%lld frames of %lld x %lld positions, %lld to do; images %lld x %lld; %d rank%s; %s on %s", (long long)run->series.n_items,
           (long long)run->scan_rows, (long long)run->scan_columns, (long long)s->n_places, (long long)run->image_rows,
           (long long)run->image_columns, s->cluster->n_ranks, s->cluster->n_ranks == 1 ? "" : "s", s->ops->name, s->device.name);
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
    return PS_FAIL(error, code, "%lld of %lld frames failed; their reasons are above and in /entry/frames/error of %s", (long long)all->n_failed,
                   (long long)all->n_frames, s->job->output_file);
}

static ps_code do_work(session *s, ps_error *error) {
    ps_work_summary summary = {0};
    ps_work work = {.job = s->job,
                    .cluster = s->cluster,
                    .run = &s->run,
                    .group_mean = s->group_mean,
                    .n_places = s->n_places,
                    .places = s->places,
                    .ops = s->ops,
                    .backend = s->backend,
                    .loader = s->loader,
                    .output = s->output,
                    .queue = s->queue,
                    .frames_per_batch = s->frames_per_batch,
                    .device = s->device.name,
                    .note = s->note};
    outcome all = {0};
    ps_code code = ps_work_through(&work, &summary, error);
    if (summary.lost) ps_log(PS_LOG_ERROR, "this rank cannot go on and gave its frames back: %s", error->text);
    code = ps_cluster_agree(s->cluster, code, error);
    PS_TRY(count_outcome(s, &summary, &all, NULL));
    return judge(s, &all, code, error);
}

static void free_session(session *s) {
    ps_queue_destroy(s->queue);
    ps_loader_destroy(s->loader);
    if (s->backend) ps_backend_close(s->backend);
    for (int64_t g = 0; s->group_mean && g < s->run.n_groups; g++) free(s->group_mean[g]);
    free(s->group_mean);
    free(s->states);
    free(s->places);
    free(s->note);
    ps_notes_free(&s->notes);
    ps_run_plan_free(&s->run);
}

ps_code ps_reconstruct(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error) {
    session s = {.cluster = cluster, .job = job, .options = options};
    ps_code code = prepare_rank(&s, error);
    ps_error closing = {0};
    if (code != PS_OK) goto done;
    PS_GO(ps_first_patterns(cluster, job, &s.run, s.loader, &s.shape, s.group_mean, error));
    PS_GO(ps_notes_gather(cluster, job, options->command_line, s.device.name, s.device.versions, &s.notes, error));
    PS_GO(open_output(&s, error));
    say_plan(&s);
    PS_GO(ps_queue_create(cluster, s.n_places, &s.queue, error));
    code = do_work(&s, error);
done:
    if (s.output && ps_output_close(s.output, &closing) != PS_OK && code == PS_OK) {
        code = closing.code;
        if (error) *error = closing;
    }
    free_session(&s);
    return code;
}
