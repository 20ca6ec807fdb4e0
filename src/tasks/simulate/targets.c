#include "tasks/simulate/targets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "store/guard.h"
#include "tasks/simulate/master_writer.h"
#include "tasks/simulate/partial.h"

void ps_simulate_paths_free(ps_simulate_paths *paths) {
    free(paths->master);
    free(paths->truth);
    free(paths->optics);
    free(paths->directory);
    *paths = (ps_simulate_paths){0};
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

ps_code ps_simulate_paths_of(const ps_job_simulate *job, int64_t frame, ps_simulate_paths *paths, ps_error *error) {
    ps_code code = PS_OK;
    int64_t n_positions = job->scan_rows * job->scan_columns, per_file = job->frames_per_file > 0 ? job->frames_per_file : n_positions;
    *paths = (ps_simulate_paths){.master = master_of(job, frame), .n_data = (n_positions + per_file - 1) / per_file};
    PS_GO_ALLOC(error, paths->master);
    int stem = (int)(strlen(paths->master) - strlen("_master.h5"));
    paths->truth = ps_text_format("%.*s_truth.h5", stem, paths->master);
    paths->optics = ps_text_format("%.*s_optics.json", stem, paths->master);
    paths->directory = ps_path_directory(paths->master);
    PS_GO_ALLOC(error, paths->truth && paths->optics && paths->directory);
done:
    if (code != PS_OK) ps_simulate_paths_free(paths);
    return code;
}

/* ---- what is read ---- */

static ps_code add_with_part(ps_guard_targets *targets, const char *path, ps_error *error) {
    static const char where[] = "/simulate/output_master";
    PS_TRY(ps_guard_add(targets, strdup(path), where, error));
    return ps_guard_add(targets, ps_partial_path(path), where, error);
}

static ps_code add_frame(ps_guard_targets *targets, const ps_simulate_paths *paths, ps_error *error) {
    PS_TRY(add_with_part(targets, paths->master, error));
    PS_TRY(add_with_part(targets, paths->truth, error));
    PS_TRY(add_with_part(targets, paths->optics, error));
    bool more = true;
    for (int64_t number = 1; more; number++) {
        char *path = ps_master_data_path(paths->master, number);
        ps_code code = path ? add_with_part(targets, path, error) : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
        more = path && access(path, F_OK) == 0;
        free(path);
        PS_TRY(code);
    }
    return PS_OK;
}

ps_code ps_simulate_guard(const ps_job *job, ps_error *error) {
    ps_code code = PS_OK;
    ps_guard_targets targets = {0};
    for (int64_t frame = 0; frame < ps_simulate_entry(job)->n_frames; frame++) {
        ps_simulate_paths paths;
        PS_GO(ps_simulate_paths_of(ps_simulate_entry(job), frame, &paths, error));
        code = add_frame(&targets, &paths, error);
        ps_simulate_paths_free(&paths);
        if (code != PS_OK) goto done;
    }
    PS_GO(ps_guard_inputs(job, &targets, NULL, error));
done:
    ps_guard_free(&targets);
    return code;
}
