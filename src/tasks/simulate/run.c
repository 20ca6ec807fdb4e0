#include "tasks/simulate/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/memory_bounds.h"
#include "cluster/stop.h"
#include "cluster/watchdog.h"
#include "core/log.h"
#include "core/text.h"
#include "hdf5/write.h"
#include "tasks/simulate/existing.h"
#include "tasks/simulate/exposure.h"
#include "tasks/simulate/fingerprint.h"
#include "tasks/simulate/partial.h"
#include "tasks/simulate/record.h"
#include "tasks/simulate/targets.h"
#include "tasks/simulate/truth.h"

/* One rank's share of a series. */
typedef struct {
    ps_simulate_setup setup;
    const ps_cluster *cluster;
    const ps_run_options *options;
    char *science;
    int64_t n_pending;     /* frames to make */
    int64_t *pending;      /* [n_pending], ascending */
    int64_t frame;         /* in hand */
    int64_t n_own, n_done; /* frames of this rank */
    ps_progress *progress; /* rank 0's, else NULL; in percent of its frames */
} session;

enum { EXPOSE_PERCENT = 70 }; /* of a frame's time; the rest is encoding and writing */

static ps_code report(session *s, double percent_of_frame, const char *what, ps_error *error) {
    char note[64];
    snprintf(note, sizeof note, "frame %" PRId64 ", %s", s->frame, what);
    ps_progress_update(s->progress, (int64_t)((100.0 * (double)s->n_done + percent_of_frame) / (double)s->n_own), note);
    ps_watchdog_beat(what, (long)s->frame);
    if (!ps_stop_wanted()) return PS_OK;
    return PS_FAIL(error, PS_E_INTERRUPTED, "stopped by %s in frame %" PRId64, ps_stop_reason(), s->frame);
}

static ps_code tell_exposure(void *context, double fraction, ps_error *error) {
    return report(context, EXPOSE_PERCENT * fraction, "scattering", error);
}

static ps_code tell_recording(void *context, double fraction, ps_error *error) {
    return report(context, EXPOSE_PERCENT + (100 - EXPOSE_PERCENT) * fraction, "writing", error);
}

/* Truth, optics and recording are written under temporary names; the last step gives all of them theirs. */
static ps_code simulate_frame(session *s, const ps_simulate_paths *paths, ps_error *error) {
    ps_code code = PS_OK;
    ps_specimen specimen = {0};
    ps_transpose *turning = NULL;
    const ps_simulate_watch exposing = {tell_exposure, s}, recording = {tell_recording, s};
    PS_GO(ps_specimen_build(s->setup.job, &s->setup.grid, s->setup.band_inv_A, s->frame, &specimen, error));
    PS_GO(ps_expose(&s->setup, &specimen, s->frame, paths->directory, &exposing, &turning, error));
    PS_GO(ps_truth_write(paths->truth, &s->setup, &specimen, s->frame, error));
    PS_GO(ps_truth_write_optics(paths->optics, &s->setup, s->frame, error));
    ps_specimen_free(&specimen);
    PS_GO(ps_record(&s->setup, s->frame, turning, paths, &recording, error));
done:
    if (code != PS_OK) {
        ps_partial_remove(paths->truth);
        ps_partial_remove(paths->optics);
    }
    ps_specimen_free(&specimen);
    ps_transpose_destroy(turning);
    return code;
}

/* Makes the directory and its parents. */
static ps_code make_directory(const char *path, ps_error *error) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return PS_OK;
    if (errno != ENOENT) return ps_io_fail(error, errno, "%s: cannot create the directory", path);
    ps_code code = PS_OK;
    char *parent = ps_path_directory(path);
    PS_GO_ALLOC(error, parent);
    PS_GO(make_directory(parent, error));
    if (mkdir(path, 0777) != 0 && errno != EEXIST) code = ps_io_fail(error, errno, "%s: cannot create the directory", path);
done:
    free(parent);
    return code;
}

/* Whether a frame is there already and may be kept; an error when it is there and may not. */
static ps_code look_at_target(const session *s, int64_t frame, ps_leftovers *leftovers, bool *keep, ps_error *error) {
    ps_simulate_paths paths = {0};
    bool whole = false;
    PS_TRY(ps_simulate_paths_of(s->setup.job, frame, &paths, error));
    ps_code code = ps_simulate_look(&paths, s->options, leftovers, &whole, error);
    *keep = whole && s->options->resume;
    if (code == PS_OK && *keep) code = ps_simulate_fingerprint_compare(paths.master, s->science, error);
    if (code == PS_OK && frame == 0) code = make_directory(paths.directory, error);
    ps_simulate_paths_free(&paths);
    return code;
}

/* Rank 0 looks, for all ranks, before anything is begun. */
static ps_code list_pending(session *s, ps_error *error) {
    s->pending = malloc((size_t)s->setup.job->n_frames * sizeof *s->pending);
    if (!s->pending) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the list of frames");
    if (s->cluster->rank != 0) return PS_OK;
    ps_code code = PS_OK;
    ps_leftovers leftovers = {0};
    for (int64_t frame = 0; frame < s->setup.job->n_frames && code == PS_OK; frame++) {
        bool keep;
        code = look_at_target(s, frame, &leftovers, &keep, error);
        if (code == PS_OK && !keep) s->pending[s->n_pending++] = frame;
    }
    ps_leftovers_free(&leftovers);
    PS_TRY(code);
    int64_t kept = s->setup.job->n_frames - s->n_pending;
    if (kept > 0) ps_log(PS_LOG_INFO, "%" PRId64 " of %" PRId64 " frames are there already", kept, s->setup.job->n_frames);
    return PS_OK;
}

static ps_code share_pending(session *s, ps_error *error) {
    MPI_Comm communicator = s->cluster->communicator;
    if (s->cluster->n_ranks == 1) return PS_OK;
    PS_TRY(PS_MPI(error, MPI_Bcast(&s->n_pending, 1, MPI_INT64_T, 0, communicator)));
    return PS_MPI(error, MPI_Bcast(s->pending, (int)s->n_pending, MPI_INT64_T, 0, communicator));
}

/* This rank's frame of a round of n_ranks frames, if there is one. */
static ps_code simulate_own(session *s, int64_t first, ps_error *error) {
    ps_simulate_paths paths = {0};
    if (first + s->cluster->rank >= s->n_pending) return PS_OK;
    s->frame = s->pending[first + s->cluster->rank];
    PS_TRY(ps_simulate_paths_of(s->setup.job, s->frame, &paths, error));
    ps_code code = simulate_frame(s, &paths, error);
    if (code != PS_OK) ps_error_prefix(error, "%s", paths.master);
    s->n_done++;
    ps_simulate_paths_free(&paths);
    return code;
}

static ps_code begin(session *s, const ps_job *job, const ps_memory_share *share, ps_error *error) {
    PS_TRY(ps_simulate_setup_build(job, share->bytes, &s->setup, error));
    PS_TRY(ps_simulate_fingerprint_text(&s->setup, &s->science, error));
    s->setup.science = s->science;
    if (s->cluster->rank == 0) PS_TRY(ps_simulate_guard(job, error));
    return list_pending(s, error);
}

ps_code ps_simulate(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error) {
    session s = {.cluster = cluster, .options = options};
    ps_memory_share share;
    PS_TRY(ps_memory_share_measure(cluster, &share, error));
    ps_code code = ps_cluster_agree(cluster, begin(&s, job, &share, error), error);
    if (code == PS_OK) code = ps_cluster_agree(cluster, share_pending(&s, error), error);
    if (code != PS_OK) goto done;
    s.n_own = (s.n_pending - cluster->rank + cluster->n_ranks - 1) / cluster->n_ranks;
    if (cluster->rank == 0 && s.n_own > 0) s.progress = ps_progress_begin("simulate, percent", 100, 30.0);
    for (int64_t first = 0; first < s.n_pending && code == PS_OK; first += cluster->n_ranks)
        code = ps_cluster_agree(cluster, simulate_own(&s, first, error), error);
    ps_progress_end(s.progress);
done:
    free(s.pending);
    free(s.science);
    return code;
}
