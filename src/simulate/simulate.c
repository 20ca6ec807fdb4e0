#include "simulate/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/cluster.h"
#include "cluster/stop.h"
#include "core/log.h"
#include "core/text.h"
#include "output/h5.h"
#include "simulate/exposure.h"
#include "simulate/record.h"
#include "simulate/truth.h"

/* One rank's share of a series. */
typedef struct {
    ps_simulate_setup setup;
    bool overwrite;
    int rank, n_ranks;
    int64_t frame;         /* in hand */
    int64_t n_own, n_done; /* frames of this rank */
    ps_progress *progress; /* rank 0's, else NULL; in percent of its frames */
} session;

/* Where one frame goes; all owned. */
typedef struct {
    char *master, *truth, *optics, *directory;
} frame_paths;

static void paths_free(frame_paths *paths) {
    free(paths->master);
    free(paths->truth);
    free(paths->optics);
    free(paths->directory);
    *paths = (frame_paths){0};
}

/* "{frame}" becomes the frame's number, three digits or what the last frame needs. */
static char *master_of(const ps_job_simulate *job, int64_t frame) {
    int digits = 3;
    for (int64_t last = (job->n_frames - 1) / 1000; last > 0; last /= 10) digits++;
    const char *mark = strstr(job->output_master, "{frame}");
    if (!mark) return strdup(job->output_master);
    return ps_text_format("%.*s%0*" PRId64 "%s", (int)(mark - job->output_master), job->output_master, digits, frame,
                          mark + strlen("{frame}"));
}

static ps_code paths_of(const ps_job_simulate *job, int64_t frame, frame_paths *paths, ps_error *error) {
    ps_code code = PS_OK;
    *paths = (frame_paths){.master = master_of(job, frame)};
    PS_GO_ALLOC(error, paths->master);
    int stem = (int)(strlen(paths->master) - strlen("_master.h5"));
    paths->truth = ps_text_format("%.*s_truth.h5", stem, paths->master);
    paths->optics = ps_text_format("%.*s_optics.json", stem, paths->master);
    paths->directory = ps_path_directory(paths->master);
    PS_GO_ALLOC(error, paths->truth && paths->optics && paths->directory);
done:
    if (code != PS_OK) paths_free(paths);
    return code;
}

enum { EXPOSE_PERCENT = 70 }; /* of a frame's time; the rest is encoding and writing */

static ps_code report(session *s, double percent_of_frame, const char *what, ps_error *error) {
    char note[64];
    snprintf(note, sizeof note, "frame %" PRId64 ", %s", s->frame, what);
    ps_progress_update(s->progress, (int64_t)((100.0 * (double)s->n_done + percent_of_frame) / (double)s->n_own), note);
    if (!ps_stop_wanted()) return PS_OK;
    return PS_FAIL(error, PS_E_INTERRUPTED, "stopped by %s in frame %" PRId64, ps_stop_reason(), s->frame);
}

static ps_code tell_exposure(void *context, double fraction, ps_error *error) {
    return report(context, EXPOSE_PERCENT * fraction, "scattering", error);
}

static ps_code tell_recording(void *context, double fraction, ps_error *error) {
    return report(context, EXPOSE_PERCENT + (100 - EXPOSE_PERCENT) * fraction, "writing", error);
}

/* Truth and optics are written before the master, which says that the frame is whole. */
static ps_code simulate_frame(session *s, const frame_paths *paths, ps_error *error) {
    ps_code code = PS_OK;
    ps_specimen specimen = {0};
    ps_turning *turning = NULL;
    const ps_simulate_watch exposing = {tell_exposure, s}, recording = {tell_recording, s};
    PS_GO(ps_specimen_build(s->setup.job, &s->setup.grid, s->setup.band_inv_A, s->frame, &specimen, error));
    PS_GO(ps_expose(&s->setup, &specimen, s->frame, paths->directory, &exposing, &turning, error));
    PS_GO(ps_truth_write(paths->truth, &s->setup, &specimen, s->frame, error));
    PS_GO(ps_truth_write_optics(paths->optics, &s->setup, s->frame, error));
    ps_specimen_free(&specimen);
    PS_GO(ps_record(&s->setup, s->frame, turning, paths->master, &recording, error));
done:
    ps_specimen_free(&specimen);
    ps_turning_destroy(turning);
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

/* Nothing is begun when any frame's master is there already. */
static ps_code check_targets(const session *s, ps_error *error) {
    for (int64_t frame = 0; frame < s->setup.job->n_frames; frame++) {
        ps_code code = PS_OK;
        frame_paths paths;
        PS_TRY(paths_of(s->setup.job, frame, &paths, error));
        if (!s->overwrite && access(paths.master, F_OK) == 0)
            code = PS_FAIL(error, PS_E_ARGUMENT, "%s: exists already; --overwrite replaces it", paths.master);
        if (code == PS_OK && frame == 0) code = make_directory(paths.directory, error);
        paths_free(&paths);
        if (code != PS_OK) return code;
    }
    return PS_OK;
}

/* This rank's frame of a round of n_ranks frames, if there is one. */
static ps_code simulate_own(session *s, int64_t first, ps_error *error) {
    ps_code code = PS_OK;
    frame_paths paths;
    s->frame = first + s->rank;
    if (s->frame >= s->setup.job->n_frames) return PS_OK;
    PS_TRY(paths_of(s->setup.job, s->frame, &paths, error));
    code = simulate_frame(s, &paths, error);
    if (code != PS_OK) ps_error_prefix(error, "%s", paths.master);
    s->n_done++;
    paths_free(&paths);
    return code;
}

ps_code ps_simulate(const ps_job *job, bool overwrite, MPI_Comm communicator, ps_error *error) {
    ps_cluster cluster = {.communicator = communicator};
    MPI_Comm_rank(communicator, &cluster.rank);
    MPI_Comm_size(communicator, &cluster.n_ranks);
    session s = {.overwrite = overwrite, .rank = cluster.rank, .n_ranks = cluster.n_ranks};
    ps_code code = ps_simulate_setup_build(job, &s.setup, error);
    if (code == PS_OK) code = check_targets(&s, error);
    PS_TRY(ps_cluster_agree(&cluster, code, error));
    s.n_own = (job->simulate.n_frames - s.rank + s.n_ranks - 1) / s.n_ranks;
    if (s.rank == 0) s.progress = ps_progress_begin("simulate, percent", 100, 30.0);
    for (int64_t first = 0; first < job->simulate.n_frames && code == PS_OK; first += s.n_ranks)
        code = ps_cluster_agree(&cluster, simulate_own(&s, first, error), error);
    ps_progress_end(s.progress);
    return code;
}
