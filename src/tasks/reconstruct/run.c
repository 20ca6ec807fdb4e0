#include "tasks/reconstruct/run.h"

#include <stdlib.h>

#include "core/log.h"
#include "core/text.h"
#include "plan/first_patterns.h"
#include "plan/held_g.h"
#include "tasks/reconstruct/fitted.h"
#include "tasks/reconstruct/session.h"

/* Of this rank; malloc'd. */
static char *describe_memory(const ps_session *s) {
    char host[PS_BYTES_TEXT], free_bytes[PS_BYTES_TEXT], g[PS_HELD_G_TEXT];
    ps_held_g_describe(s->job, &s->memory.backend, g);
    return ps_text_format("rank %d: %s of the host%s, %s were free for it (%s); %lld frames at a time; %s", s->cluster->rank,
                          ps_text_bytes((double)s->memory.host_bytes, host), s->memory.on_device ? " beside the device's" : "",
                          ps_text_bytes((double)s->share.bytes, free_bytes), s->share.text, (long long)s->memory.backend.frames_per_batch,
                          g);
}

static void say_plan(const ps_session *s) {
    const ps_run_plan *run = &s->run;
    if (s->cluster->rank != 0) return;
    for (int64_t i = 0; i < run->n_warnings; i++) ps_log(PS_LOG_WARNING, "%s", run->warnings[i]);
    ps_log(PS_LOG_INFO, "%lld frames of %lld x %lld positions, %lld to do; images %lld x %lld; %d rank%s; %s on %s",
           (long long)run->series.n_items, (long long)run->scan_rows, (long long)run->scan_columns,
           (long long)(s->n_work_items + s->n_suspects), (long long)run->image_rows, (long long)run->image_columns, s->cluster->n_ranks,
           s->cluster->n_ranks == 1 ? "" : "s", s->ops->name, s->device.name);
    if (run->moved.aberrations_rad > 0.0 || run->moved.rotation_deg > 0.0)
        ps_log(PS_LOG_INFO,
               "optics of %lld frames are rounded and make %lld preparations; moved by up to %.3g degrees and %.3g rad at the rim",
               (long long)run->series.n_items, (long long)run->n_groups, run->moved.rotation_deg, run->moved.aberrations_rad);
    char bytes[PS_BYTES_TEXT], g[PS_HELD_G_TEXT];
    ps_held_g_describe(s->job, &s->memory.backend, g);
    ps_log(PS_LOG_INFO, "memory of each rank: %s of the host%s; up to %lld frame%s at a time; %s",
           ps_text_bytes((double)s->memory.host_bytes, bytes), s->memory.on_device ? " and what the device needs" : "",
           (long long)s->memory.backend.frames_per_batch, s->memory.backend.frames_per_batch == 1 ? "" : "s", g);
    const ps_packed_share *packed = &s->memory.packed;
    if (packed->n_pieces > 0)
        ps_log(PS_LOG_INFO, "unpacking on the device: %d thread%s of each rank read into %d pieces of pinned memory, %s in all",
               packed->n_threads, packed->n_threads == 1 ? "" : "s", packed->n_pieces,
               ps_text_bytes((double)packed->n_pieces * (double)packed->piece_bytes, bytes));
}

static void free_session(ps_session *s) {
    ps_queue_destroy(s->queue);
    ps_attempts_destroy(s->attempts);
    ps_loader_destroy(s->loader);
    if (s->images) ps_backend_host_free(s->backend, s->memory.n_images, s->images);
    free(s->images);
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

/* found: how the optics were fitted, on rank 0 alone; malloc'd, taken over; NULL: nothing to say. */
static ps_code reconstruct(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, char *found, ps_error *error) {
    ps_session s = {.cluster = cluster,
                    .job = job,
                    .resume = options->resume,
                    .overwrite = options->overwrite,
                    .retry_failed = options->retry_failed,
                    .begin = ps_busy_read()};
    ps_code code = ps_session_prepare(&s, error);
    ps_error closing = {0};
    if (code != PS_OK) goto done;
    PS_GO(ps_first_patterns(cluster, job, s.measured, &s.run, s.loader, &s.shape, s.group_mean, error));
    PS_GO(ps_notes_gather(cluster, job, options->command_line, s.device.name, s.device.versions, &s.notes, error));
    ps_notes_add(&s.notes, "memory", describe_memory(&s));
    ps_notes_add(&s.notes, "fit", found);
    found = NULL;
    PS_GO(ps_session_open_output(&s, error));
    say_plan(&s);
    PS_GO(ps_queue_create(cluster, s.n_work_items, &s.queue, error));
    PS_GO(ps_attempts_create(cluster, s.output, s.run.series.n_items, &s.attempts, error));
    code = ps_session_work(&s, error);
done:
    if (s.output && ps_output_close(s.output, &closing) != PS_OK && (code == PS_OK || code == PS_E_PARTIAL || code == PS_E_INTERRUPTED)) {
        code = closing.code;
        if (error) *error = closing;
    }
    free_session(&s);
    free(found);
    return code;
}

ps_code ps_reconstruct(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error) {
    ps_job fitted;
    cJSON *optics = NULL;
    char *found = NULL;
    if (!job->optics.fit) return reconstruct(cluster, job, options, NULL, error);
    ps_code code = ps_reconstruct_fit(cluster, job, options, &fitted, &optics, &found, error);
    if (code == PS_OK)
        code = reconstruct(cluster, &fitted, options, found, error);
    else
        free(found);
    cJSON_Delete(optics);
    return code;
}
