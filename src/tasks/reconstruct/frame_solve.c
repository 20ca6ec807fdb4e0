#include "tasks/reconstruct/frame_solve.h"

#include "core/log.h"

ps_code ps_frame_solve(const ps_method_results *methods, ps_frame *frame, double n_data, ps_frame_result *result, ps_error *error) {
    const ps_method_set *set = methods->set;
    double begin_s = ps_seconds();
    result->methods = methods;
    if (ps_method_set_needs_normal(set)) PS_TRY(ps_frame_data_norm(frame, &result->data_norm, error));
    result->seconds[PS_STAGE_SOLVE] += ps_seconds() - begin_s;
    for (int64_t i = 0; i < set->n; i++) {
        begin_s = ps_seconds();
        PS_TRY(ps_method_solve(&set->items[i], frame, n_data, methods->values[i], error));
        result->seconds[set->items[i].method->stage] += ps_seconds() - begin_s;
    }
    return PS_OK;
}
