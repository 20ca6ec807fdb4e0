#include "tasks/fit/choose.h"

ps_code ps_fit_choose_frame(const ps_run_plan *run, int64_t group, int64_t wanted, int64_t *frame, ps_error *error) {
    const ps_run_group *of = &run->groups[group];
    int64_t n = 0;
    for (int64_t i = 0; i < of->n_frames; i++) {
        const ps_run_frame *found = &run->frames[of->frames[i]];
        if (found->unreadable || found->refused) continue;
        if (n++ != wanted) continue;
        *frame = of->frames[i];
        return PS_OK;
    }
    const ps_run_frame *first = &run->frames[of->frames[0]];
    if (n == 0)
        return PS_FAIL(error, PS_E_INPUT, "optics %lld: none of its %lld recordings can be used; the first, %s: %s", (long long)group,
                       (long long)of->n_frames, run->series.items[of->frames[0]].source,
                       first->unreadable ? first->unreadable : first->refused);
    return PS_FAIL(error, PS_E_JOB, "/fit/frame: found %lld, but optics %lld has %lld usable recordings (counted from 0)",
                   (long long)wanted, (long long)group, (long long)n);
}
