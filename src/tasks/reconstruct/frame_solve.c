#include "tasks/reconstruct/frame_solve.h"

#include "core/log.h"

ps_code ps_frame_solve(const ps_method_set *methods, ps_frame *frame, double n_data, ps_writer_frame *to, ps_error *error) {
    ps_frame_result *result = &to->result;
    double begin_s = ps_seconds();
    if (ps_method_set_needs_normal(methods)) PS_TRY(ps_frame_data_norm(frame, &result->data_norm, error));
    result->seconds[PS_STAGE_SOLVE] += ps_seconds() - begin_s;
    for (int64_t i = 0; i < methods->n; i++) {
        double waited_s = to->waited_s;
        begin_s = ps_seconds();
        PS_TRY(ps_method_solve_to(&methods->items[i], frame, n_data, to->sinks[i], result->methods->values[i], error));
        result->seconds[methods->items[i].method->stage] += ps_seconds() - begin_s - (to->waited_s - waited_s);
    }
    return PS_OK;
}
