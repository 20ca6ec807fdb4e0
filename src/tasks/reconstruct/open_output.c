#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "plan/first_patterns.h"
#include "store/drift.h"
#include "store/view.h"
#include "tasks/reconstruct/session.h"
#include "tasks/series.h"

static void describe_optics(const ps_session *s, ps_output_optics *optics) {
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
static ps_code make_output(const ps_session *s, ps_error *error) {
    ps_code code = PS_OK;
    ps_output_frame_source *frames = calloc((size_t)s->run.series.n_items, sizeof *frames);
    ps_output_optics *optics = calloc((size_t)s->run.n_groups, sizeof *optics);
    PS_GO_ALLOC(error, frames);
    PS_GO_ALLOC(error, optics);
    ps_series_describe(&s->run, &s->checks, frames);
    describe_optics(s, optics);
    ps_output_spec spec = {.job = s->job,
                           .n_frames = s->run.series.n_items,
                           .frames = frames,
                           .n_optics = s->run.n_groups,
                           .optics = optics,
                           .image_rows = s->run.image_rows,
                           .image_columns = s->run.image_columns,
                           .image_step_A = {s->run.image_step_A[0], s->run.image_step_A[1]},
                           .n_notes = s->notes.n,
                           .notes = s->notes.notes};
    if (s->measured)
        PS_GO(ps_output_resume(s->job->output_file, &spec, s->retry_failed, error));
    else
        PS_GO(ps_output_create(s->job->output_file, s->overwrite, &spec, error));
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
static ps_code fail_unusable(ps_session *s, ps_error *error) {
    for (int64_t i = 0; i < s->run.series.n_items; i++) {
        const ps_run_frame *frame = &s->run.frames[i];
        const char *reason = reason_not_to(frame);
        if (!reason || s->states[i] != PS_FRAME_PENDING) continue;
        s->states[i] = PS_FRAME_FAILED;
        if (s->cluster->rank != 0) continue;
        ps_frame_seen seen = ps_run_seen_frame(&frame->seen);
        ps_series_log_failure(&s->run, i, reason);
        PS_TRY(ps_output_write_seen(s->output, i, &seen, error));
        PS_TRY(ps_output_fail_frame(s->output, i, reason, error));
    }
    return PS_OK;
}

int64_t ps_session_list_work_items(const ps_session *s, bool suspects, int64_t *work_items) {
    int64_t n = 0;
    for (int64_t g = 0; g < s->run.n_groups; g++)
        for (int64_t i = 0; i < s->run.groups[g].n_frames; i++) {
            int64_t frame = s->run.groups[g].frames[i];
            if (s->states[frame] == PS_FRAME_PENDING && (s->suspects[frame] != 0) == suspects) work_items[n++] = frame;
        }
    return n;
}

/* What others are held against is written before any of them is done: a recording that cannot be read when the run goes on still counts. */
static ps_code write_references(ps_session *s, ps_error *error) {
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

static ps_code list_all_work_items(ps_session *s, ps_error *error) {
    size_t n = (size_t)s->run.series.n_items;
    s->work_items = malloc(n * sizeof *s->work_items);
    s->suspects = calloc(n, sizeof *s->suspects);
    if (!s->work_items || !s->suspects) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate the order of work");
    for (size_t i = 0; i < n; i++) {
        s->suspects[i] = s->states[i] == PS_FRAME_PENDING && ps_output_attempts(s->output)[i] > 0;
        s->n_suspects += s->suspects[i];
    }
    s->n_work_items = ps_session_list_work_items(s, false, s->work_items);
    if (s->n_suspects > 0 && s->cluster->rank == 0)
        ps_log(PS_LOG_WARNING, "%lld frames were begun before and never ended; they are tried last, one at a time",
               (long long)s->n_suspects);
    return PS_OK;
}

/* A run may go on with another backend; its frames then say so. */
static ps_code note_backend(ps_session *s, ps_error *error) {
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

ps_code ps_session_open_output(ps_session *s, ps_error *error) {
    int64_t n_states = 0;
    ps_code code = s->cluster->rank == 0 ? make_output(s, error) : PS_OK;
    PS_TRY(ps_cluster_agree(s->cluster, code, error));
    code = ps_output_states(s->job->output_file, &n_states, &s->states, error);
    if (code == PS_OK && n_states != s->run.series.n_items)
        code = PS_FAIL(error, PS_E_INTERNAL, "%s: holds %lld frames, expected %lld", s->job->output_file, (long long)n_states,
                       (long long)s->run.series.n_items);
    if (code == PS_OK && s->resume) code = note_backend(s, error);
    PS_TRY(ps_cluster_agree(s->cluster, code, error));
    PS_TRY(ps_output_open(s->job->output_file, s->cluster->communicator, &s->output, error));
    code = write_references(s, error);
    if (code == PS_OK) code = fail_unusable(s, error);
    if (code == PS_OK) code = list_all_work_items(s, error);
    if (code == PS_OK && s->cluster->rank == 0 && s->n_work_items + s->n_suspects > 0)
        code = ps_output_drift_set_complete(s->output, false, error);
    return ps_cluster_agree(s->cluster, code, error);
}
