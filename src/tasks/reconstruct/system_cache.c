#include "tasks/reconstruct/system_cache.h"

#include <stdlib.h>
#include <string.h>

void ps_system_cache_init(ps_system_cache *cache, const ps_job *job, ps_run_plan *run, const ps_measured *measured, double **group_mean,
                          ps_backend *backend) {
    *cache = (ps_system_cache){.job = job,
                               .backend = backend,
                               .methods = ps_method_set_bits(&job->methods),
                               .run = run,
                               .measured = measured,
                               .group_mean = group_mean,
                               .shared.group = -1,
                               .per_frame.group = -1};
}

static void drop(const ps_system_cache *cache, ps_prepared_system *prepared) {
    if (prepared->system) ps_system_destroy(prepared->system);
    if (prepared->has_group_open) ps_run_group_close(cache->run, prepared->group);
    free(prepared->extra_bad);
    free(prepared->weights);
    ps_plan_free(&prepared->own_plan);
    *prepared = (ps_prepared_system){.group = -1};
}

void ps_system_cache_drop(ps_system_cache *cache) {
    drop(cache, &cache->shared);
    drop(cache, &cache->per_frame);
}

void ps_system_cache_free(ps_system_cache *cache) {
    ps_system_cache_drop(cache);
}

static size_t detector_pixels(const ps_run_plan *run) {
    return (size_t)(run->detector_rows * run->detector_columns);
}

/* The plan of a group with extra_bad left out too. */
static ps_code plan_per_frame(const ps_system_cache *cache, ps_prepared_system *prepared, int64_t group, const uint8_t *extra_bad,
                              ps_error *error) {
    const ps_run_plan *run = cache->run;
    size_t n_pixels = detector_pixels(run);
    ps_code code = PS_OK;
    uint8_t *all = malloc(n_pixels);
    prepared->extra_bad = malloc(n_pixels);
    PS_GO_ALLOC(error, all);
    PS_GO_ALLOC(error, prepared->extra_bad);
    memcpy(prepared->extra_bad, extra_bad, n_pixels);
    for (size_t i = 0; i < n_pixels; i++) all[i] = extra_bad[i] || run->groups[group].bad[i];
    ps_plan_options options = {.scan_rows = run->scan_rows,
                               .scan_columns = run->scan_columns,
                               .detector_rows = run->detector_rows,
                               .detector_columns = run->detector_columns,
                               .upsampling = run->upsampling,
                               .bad = all,
                               .mirrored_probe = cache->job->mirrored_probe};
    ps_method_set_plan(&cache->job->methods, &options);
    ps_job_plan_g(cache->job, ps_method_set_wants_g(&cache->job->methods), &options);
    PS_GO(ps_plan_build(&run->groups[group].optics, &options, &prepared->own_plan, error));
    prepared->plan = &prepared->own_plan;
done:
    free(all);
    return code;
}

static ps_code plan_shared(const ps_system_cache *cache, ps_prepared_system *prepared, int64_t group, ps_error *error) {
    PS_TRY(ps_run_group_open(cache->job, cache->run, group, error));
    prepared->has_group_open = true;
    prepared->plan = &cache->run->groups[group].plan;
    return PS_OK;
}

/* Once more without the other system where memory does not do for both. */
static ps_code create(ps_system_cache *cache, ps_prepared_system *prepared, ps_prepared_system *other, ps_error *error) {
    ps_error reason = {0};
    const ps_system_desc *desc = &prepared->plan->desc;
    ps_code code = ps_system_create(cache->backend, desc, cache->methods, &prepared->system, &reason);
    if (code == PS_E_MEMORY && other->system) {
        drop(cache, other);
        return ps_system_create(cache->backend, desc, cache->methods, &prepared->system, error);
    }
    if (code != PS_OK && error) *error = reason;
    return code;
}

ps_code ps_system_cache_get(ps_system_cache *cache, int64_t group, const uint8_t *extra_bad, ps_prepared_system **found, ps_error *error) {
    ps_prepared_system *prepared = extra_bad ? &cache->per_frame : &cache->shared, *other = extra_bad ? &cache->shared : &cache->per_frame;
    ps_code code = PS_OK;
    *found = prepared;
    bool at_hand = prepared->group == group && prepared->system;
    if (at_hand && (!extra_bad || memcmp(prepared->extra_bad, extra_bad, detector_pixels(cache->run)) == 0)) return PS_OK;
    drop(cache, prepared);
    if (!cache->two_systems) drop(cache, other); /* memory was planned for one */
    prepared->group = group;
    PS_GO(extra_bad ? plan_per_frame(cache, prepared, group, extra_bad, error) : plan_shared(cache, prepared, group, error));
    PS_GO(create(cache, prepared, other, error));
done:
    if (code != PS_OK) drop(cache, prepared);
    return code;
}

/* The output's own weights of a group as it is; *taken false: it has none, or the system leaves further pixels out. */
static ps_code take_recorded(const ps_system_cache *cache, ps_prepared_system *prepared, double *weights, bool *taken, ps_error *error) {
    const ps_measured_optics *known = ps_measured_of_frame(cache->measured, cache->run->groups[prepared->group].frames[0]);
    int64_t n_active = prepared->plan->desc.n_active;
    *taken = known && known->is_prepared && known->was_readable && !prepared->extra_bad;
    if (!*taken) return PS_OK;
    if (known->n_active != n_active)
        return PS_FAIL(error, PS_E_HDF5, "%s: optics_%lld has weights of %lld pixels, expected %lld", cache->measured->path,
                       (long long)prepared->group, (long long)known->n_active, (long long)n_active);
    memcpy(weights, known->weights, (size_t)n_active * sizeof *weights);
    prepared->dose = known->dose;
    prepared->is_recorded = true;
    return PS_OK;
}

/* A frame of several takes no weights from itself: they would differ from frame to frame and from rank to rank. */
static ps_code require_pattern(const ps_system_cache *cache, int64_t group, ps_error *error) {
    bool alone = cache->run->groups[group].n_frames == 1;
    if (cache->job->weights != PS_WEIGHTS_POISSON || alone || cache->group_mean[group]) return PS_OK;
    const ps_measured_optics *known = ps_measured_of_frame(cache->measured, cache->run->groups[group].frames[0]);
    return PS_FAIL(error, PS_E_INPUT, "poisson weights need the mean pattern of optics_%lld, which %s", (long long)group,
                   known && known->is_prepared ? "this output does not have, since an earlier version made it: start a new output"
                                               : "none of its recordings gave when the run began");
}

/* The output's weights when it has some, else from the group's mean pattern when it was measured, else from the frame in hand. */
static ps_code choose_weights(const ps_system_cache *cache, ps_prepared_system *prepared, const double *mean, double *weights,
                              ps_error *error) {
    const ps_system_desc *desc = &prepared->plan->desc;
    const double *pattern = cache->group_mean[prepared->group];
    ps_code code = PS_OK;
    bool taken = false;
    PS_TRY(take_recorded(cache, prepared, weights, &taken, error));
    if (taken) return PS_OK;
    PS_TRY(require_pattern(cache, prepared->group, error));
    double *used = malloc((size_t)desc->n_active * sizeof *used);
    PS_GO_ALLOC(error, used);
    for (int64_t i = 0; i < desc->n_active; i++) used[i] = pattern ? pattern[desc->active[i]] : mean[i];
    PS_GO(ps_plan_dose(prepared->plan, used, NULL, &prepared->dose, error));
    for (int64_t i = 0; i < desc->n_active; i++) weights[i] = 1;
    if (cache->job->weights == PS_WEIGHTS_POISSON) ps_plan_poisson_weights(prepared->plan, used, prepared->dose, weights);
done:
    free(used);
    return code;
}

ps_code ps_system_cache_prepare(ps_system_cache *cache, ps_prepared_system *prepared, const double *mean, ps_error *error) {
    ps_code code = PS_OK;
    if (prepared->is_prepared) return PS_OK;
    double *weights = malloc((size_t)prepared->plan->desc.n_active * sizeof *weights);
    PS_GO_ALLOC(error, weights);
    PS_GO(choose_weights(cache, prepared, mean, weights, error));
    PS_GO(ps_system_set_weights(prepared->system, weights, error));
    if (cache->methods & PS_METHODS_PREPARED) PS_GO(ps_system_prepare(prepared->system, error));
    free(prepared->weights);
    prepared->weights = weights;
    prepared->is_prepared = true;
    weights = NULL;
done:
    free(weights);
    return code;
}
