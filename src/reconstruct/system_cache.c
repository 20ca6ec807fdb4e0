#include "reconstruct/system_cache.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"

void ps_system_cache_init(ps_system_cache *cache, const ps_job *job, const ps_backend_ops *ops, ps_backend *backend) {
    *cache = (ps_system_cache){.job = job, .ops = ops, .backend = backend, .shared.group = -1, .special.group = -1};
    if (job->phase.enabled) cache->methods |= PS_METHOD_PHASE;
    if (job->complex_.enabled) cache->methods |= PS_METHOD_COMPLEX;
    if (job->ssb_enabled) cache->methods |= PS_METHOD_SSB;
}

static void drop(const ps_system_cache *cache, ps_prepared_system *prepared) {
    if (prepared->system) cache->ops->system_destroy(prepared->system);
    free(prepared->extra_bad);
    ps_plan_free(&prepared->own_plan);
    *prepared = (ps_prepared_system){.group = -1};
}

void ps_system_cache_free(ps_system_cache *cache) {
    drop(cache, &cache->shared);
    drop(cache, &cache->special);
}

/* The plan of a group with extra_bad left out too. */
static ps_code plan_special(ps_prepared_system *prepared, const ps_work_group *group, const uint8_t *extra_bad, ps_error *error) {
    size_t n_pixels = (size_t)(group->options.detector_rows * group->options.detector_columns);
    ps_code code = PS_OK;
    uint8_t *all = malloc(n_pixels);
    prepared->extra_bad = malloc(n_pixels);
    PS_GO_ALLOC(error, all);
    PS_GO_ALLOC(error, prepared->extra_bad);
    memcpy(prepared->extra_bad, extra_bad, n_pixels);
    for (size_t i = 0; i < n_pixels; i++) all[i] = extra_bad[i] || (group->options.bad && group->options.bad[i]);
    ps_plan_options options = group->options;
    options.bad = all;
    PS_GO(ps_plan_build(group->optics, &options, &prepared->own_plan, error));
    prepared->plan = &prepared->own_plan;
done:
    free(all);
    return code;
}

static bool is_at_hand(const ps_prepared_system *prepared, int64_t group, const uint8_t *extra_bad, size_t n_pixels) {
    if (prepared->group != group) return false;
    return !extra_bad || memcmp(prepared->extra_bad, extra_bad, n_pixels) == 0;
}

ps_code ps_system_cache_get(ps_system_cache *cache, int64_t group, const ps_work_group *groups, const uint8_t *extra_bad,
                            ps_prepared_system **found, ps_error *error) {
    const ps_work_group *wanted = &groups[group];
    ps_prepared_system *prepared = extra_bad ? &cache->special : &cache->shared;
    *found = prepared;
    if (is_at_hand(prepared, group, extra_bad, (size_t)(wanted->options.detector_rows * wanted->options.detector_columns))) return PS_OK;
    drop(cache, prepared);
    prepared->plan = wanted->plan;
    if (extra_bad) PS_TRY(plan_special(prepared, wanted, extra_bad, error));
    PS_TRY(cache->ops->system_create(cache->backend, &prepared->plan->desc, cache->methods, &prepared->system, error));
    prepared->group = group;
    return PS_OK;
}

/* The mean of each active pixel out of the whole pattern. */
static void take_active(const ps_plan *plan, const double *pattern, double *mean) {
    for (int64_t i = 0; i < plan->desc.n_active; i++) mean[i] = pattern[plan->desc.active[i]];
}

ps_code ps_system_cache_prepare(ps_system_cache *cache, ps_prepared_system *prepared, const ps_work_group *group, const double *mean,
                                double **weights_out, double *dose, ps_error *error) {
    ps_code code = PS_OK;
    const ps_plan *plan = prepared->plan;
    double begin_s = ps_seconds();
    double *used = NULL, *weights = malloc((size_t)plan->desc.n_active * sizeof *weights);
    *weights_out = NULL;
    PS_GO_ALLOC(error, weights);
    used = malloc((size_t)plan->desc.n_active * sizeof *used);
    PS_GO_ALLOC(error, used);
    if (group->mean) take_active(plan, group->mean, used);
    else memcpy(used, mean, (size_t)plan->desc.n_active * sizeof *used);
    PS_GO(ps_plan_dose(plan, used, NULL, dose, error));
    for (int64_t i = 0; i < plan->desc.n_active; i++) weights[i] = 1;
    if (cache->job->weights == PS_WEIGHTS_POISSON) ps_plan_poisson_weights(plan, used, *dose, weights);
    PS_GO(cache->ops->system_set_weights(prepared->system, weights, error));
    if (cache->methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX)) PS_GO(cache->ops->system_prepare(prepared->system, error));
    prepared->is_prepared = true;
    prepared->prepare_seconds = ps_seconds() - begin_s;
    *weights_out = weights;
    weights = NULL;
done:
    free(weights);
    free(used);
    return code;
}
