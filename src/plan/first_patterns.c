#include "plan/first_patterns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/wait_ranks.h"
#include "cluster/watchdog.h"
#include "core/log.h"
#include "input/adapters/bad_pixels.h"
#include "plan/mean_pattern.h"

bool ps_first_patterns_need(const ps_job *job, const ps_run_group *group) {
    return job->series.hot_sigma > 0 || (job->weights == PS_WEIGHTS_POISSON && group->n_frames > 1);
}

/* A pattern without counts in the disc can neither give weights nor show hot pixels. */
static ps_code check_dose(const ps_plan *plan, const double *mean, ps_error *error) {
    double dose, *active = malloc((size_t)plan->desc.n_active * sizeof *active);
    if (!active) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate a mean pattern");
    for (int64_t i = 0; i < plan->desc.n_active; i++) active[i] = mean[plan->desc.active[i]];
    ps_code code = ps_plan_dose(plan, active, NULL, &dose, error);
    free(active);
    return code;
}

/* The pattern of the group's first usable frame; *found false when none is (its frames will fail one by one). */
static ps_code measure(const ps_run_plan *run, int64_t group, ps_loader *loader, const ps_loader_shape *shape, double *mean, int *found,
                       ps_error *error) {
    const ps_run_group *wanted = &run->groups[group];
    *found = 0;
    for (int64_t i = 0; i < wanted->n_frames; i++) {
        if (run->frames[wanted->frames[i]].refused) continue;
        ps_error reason = {0};
        ps_code code = ps_mean_pattern(loader, shape, run->series.items[wanted->frames[i]].source, mean, NULL, &reason);
        ps_loader_cancel(loader);
        if (code == PS_OK) code = check_dose(&wanted->plan, mean, &reason);
        if (code == PS_OK) {
            *found = 1;
            return PS_OK;
        }
        if (code == PS_E_MEMORY || code == PS_E_INTERRUPTED) {
            if (error) *error = reason;
            return code;
        }
        ps_log(PS_LOG_WARNING, "the mean pattern of optics %lld is not taken from frame %lld: %s", (long long)group,
               (long long)wanted->frames[i], reason.text);
    }
    return PS_OK;
}

/* The rank that measured a group's pattern tells the others. */
static ps_code share(const ps_cluster *cluster, int root, int64_t n_pixels, double **mean, int found, ps_error *error) {
    PS_TRY(PS_MPI(error, MPI_Bcast(&found, 1, MPI_INT, root, cluster->communicator)));
    if (!found) {
        free(*mean);
        *mean = NULL;
        return PS_OK;
    }
    return PS_MPI(error, MPI_Bcast(*mean, (int)n_pixels, MPI_DOUBLE, root, cluster->communicator));
}

static void say_hot(const ps_run_plan *run, int64_t group) {
    enum { MOST_LISTED = 12 };
    char list[MOST_LISTED * 32] = "";
    size_t used = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < run->detector_rows * run->detector_columns && n < MOST_LISTED; i++) {
        if (!(run->groups[group].bad[i] & PS_BAD_HOT)) continue;
        used += (size_t)snprintf(list + used, sizeof list - used, " (%lld, %lld)", (long long)(i / run->detector_columns),
                                 (long long)(i % run->detector_columns));
        n++;
    }
    ps_log(PS_LOG_INFO, "optics %lld: %lld hot pixels are left out%s%s%s", (long long)group, (long long)run->groups[group].n_bad_hot,
           n > 0 ? ":" : "", list, run->groups[group].n_bad_hot > n ? " ..." : "");
}

static ps_code enter_hot(const ps_job *job, ps_run_plan *run, int64_t group, const double *mean, bool is_first_rank, ps_error *error) {
    ps_watchdog_beat("hot pixels", -1);
    int64_t n_pixels = run->detector_rows * run->detector_columns, n_hot = 0;
    ps_code code = PS_OK;
    uint8_t *hot = calloc((size_t)n_pixels, 1);
    PS_GO_ALLOC(error, hot);
    PS_GO(ps_hot_pixels(mean, run->scan_rows * run->scan_columns, run->detector_rows, run->detector_columns, job->series.hot_sigma,
                        run->groups[group].bad, hot, &n_hot, error));
    PS_GO(ps_run_group_set_hot(job, run, group, hot, error));
    if (is_first_rank) say_hot(run, group);
done:
    free(hot);
    return code;
}

/* ---- what an output says already ---- */

static ps_code enter_recorded_hot(const ps_job *job, const ps_measured_optics *known, ps_run_plan *run, int64_t group, ps_error *error) {
    size_t n_pixels = (size_t)(run->detector_rows * run->detector_columns);
    uint8_t *hot = malloc(n_pixels);
    if (!hot) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate a pixel mask");
    for (size_t i = 0; i < n_pixels; i++) hot[i] = known->bad[i] & PS_BAD_HOT;
    ps_code code = ps_run_group_set_hot(job, run, group, hot, error);
    free(hot);
    return code;
}

/* *recalled false: the group's pattern is to be measured, because no frame depends on one yet. */
static ps_code recall(const ps_job *job, const ps_measured *measured, ps_run_plan *run, int64_t group, double **mean, bool *recalled,
                      ps_error *error) {
    const ps_measured_optics *known = ps_measured_of_frame(measured, run->groups[group].frames[0]);
    size_t n_pixels = (size_t)(run->detector_rows * run->detector_columns);
    *recalled = false;
    if (!known || !known->was_readable || measured->detector_rows != run->detector_rows ||
        measured->detector_columns != run->detector_columns)
        return PS_OK;
    if (!known->mean_pattern && !known->is_prepared && !known->has_done) return PS_OK;
    if (!known->mean_pattern && !known->is_prepared && job->weights == PS_WEIGHTS_POISSON)
        return PS_FAIL(
            error, PS_E_ARGUMENT,
            "%s: frames of optics_%lld are done, but it holds neither the mean pattern nor the weights that they were done with; "
            "others would not be like them: start a new output",
            measured->path, (long long)group);
    *recalled = true;
    if (job->series.hot_sigma > 0) PS_TRY(enter_recorded_hot(job, known, run, group, error));
    if (!known->mean_pattern) return PS_OK;
    *mean = malloc(n_pixels * sizeof **mean);
    if (!*mean) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate a mean pattern");
    memcpy(*mean, known->mean_pattern, n_pixels * sizeof **mean);
    return PS_OK;
}

/* ---- all groups ---- */

ps_code ps_first_patterns(const ps_cluster *cluster, const ps_job *job, const ps_measured *measured, ps_run_plan *run, ps_loader *loader,
                          const ps_loader_shape *shape, double **group_mean, ps_error *error) {
    int64_t n_pixels = run->detector_rows * run->detector_columns, n_measured = 0;
    int *found = calloc((size_t)run->n_groups, sizeof *found);
    bool *recalled = calloc((size_t)run->n_groups, sizeof *recalled);
    ps_code code = PS_OK;
    if (!found || !recalled) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate the list of mean patterns");
    for (int64_t g = 0; code == PS_OK && g < run->n_groups; g++) {
        if (!ps_first_patterns_need(job, &run->groups[g])) continue;
        code = recall(job, measured, run, g, &group_mean[g], &recalled[g], error);
        if (code != PS_OK || recalled[g]) continue;
        group_mean[g] = malloc((size_t)n_pixels * sizeof(double));
        if (!group_mean[g])
            code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate a mean pattern");
        else if (n_measured++ % cluster->n_ranks == cluster->rank)
            code = measure(run, g, loader, shape, group_mean[g], &found[g], error);
    }
    PS_GO(ps_wait_for_ranks(cluster, code, "mean pattern", error));
    n_measured = 0;
    for (int64_t g = 0; g < run->n_groups; g++)
        if (group_mean[g] && !recalled[g])
            PS_GO(share(cluster, (int)(n_measured++ % cluster->n_ranks), n_pixels, &group_mean[g], found[g], error));
    for (int64_t g = 0; code == PS_OK && job->series.hot_sigma > 0 && g < run->n_groups; g++)
        if (group_mean[g] && !recalled[g]) code = enter_hot(job, run, g, group_mean[g], cluster->rank == 0, error);
    code = ps_wait_for_ranks(cluster, code, "hot pixels", error);
done:
    free(recalled);
    free(found);
    return code;
}
