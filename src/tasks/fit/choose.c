#include "tasks/fit/choose.h"

#include <stdlib.h>

#include "core/log.h"
#include "tasks/fit/entry.h"

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

ps_code ps_fit_choose_untried(const ps_run_plan *run, int64_t group, int64_t wanted, const ps_fit_tries *tries, int64_t *frame,
                              ps_error *error) {
    ps_error reason = {0};
    for (int64_t n = wanted;; n++) {
        ps_code code = ps_fit_choose_frame(run, group, n, frame, n == wanted ? error : &reason);
        if (code != PS_OK && n == wanted) return code;
        if (code != PS_OK)
            return PS_FAIL(
                error, PS_E_INPUT,
                "the fits of all usable recordings were begun %d times and never ended: they killed their process or device, or found "
                "no memory; --retry-failed, or removing %s, tries them again",
                PS_FIT_MOST_TRIES, tries->path);
        const char *source = run->series.items[*frame].source;
        if (ps_fit_tries_count(tries, source) < PS_FIT_MOST_TRIES) return PS_OK;
        ps_log(
            PS_LOG_WARNING,
            "%s: its fit was begun %d times and never ended: killed its process or device, or found no memory; the next usable recording "
            "is fitted instead, --retry-failed tries it again",
            source, PS_FIT_MOST_TRIES);
    }
}

ps_code ps_fit_list_frames(const ps_job *job, const ps_run_plan *run, int64_t *n, int64_t **frames, ps_error *error) {
    const ps_job_fit *fit = ps_fit_entry(job);
    ps_code code = PS_OK;
    *n = 0;
    *frames = malloc((size_t)(run->series.n_items + 1) * sizeof **frames);
    PS_GO_ALLOC(error, *frames);
    for (int64_t g = 0; !fit->per_frame && g < run->n_groups; g++)
        PS_GO(ps_fit_choose_frame(run, g, fit->frame, &(*frames)[(*n)++], error));
    for (int64_t i = 0; fit->per_frame && i < run->series.n_items; i++)
        if (!run->frames[i].unreadable && !run->frames[i].refused) (*frames)[(*n)++] = i;
    if (*n == 0) code = PS_FAIL(error, PS_E_INPUT, "none of the %lld recordings can be used", (long long)run->series.n_items);
done:
    if (code != PS_OK) {
        free(*frames);
        *frames = NULL;
    }
    return code;
}
