/* Whether the optics that the job gives look wrong, seen in a frame that is being done anyway: its attempt is counted already, so that data
 * that end the process here do so no more often than elsewhere. */
#include "core/log.h"
#include "tasks/fit/beside.h"
#include "tasks/reconstruct/worker_parts.h"

enum { MOST_GROUPS = 32 }; /* spread over the series: where every frame has optics of its own, each look would add its time */

_Static_assert((int)PS_WIDTH_DOUBT >= (int)PS_BESIDE_TEXT, "what is said fits into the output");

static bool is_group_of_interest(const ps_run_plan *run, int64_t group) {
    return group == 0 || group * MOST_GROUPS / run->n_groups != (group - 1) * MOST_GROUPS / run->n_groups;
}

/* The first frame of its group among those that are to be done: one on all ranks. */
static bool is_first_of_group(const ps_worker *w, const ps_item *it) {
    return it->work_item == 0 || ps_worker_group_of(w, it->work_item - 1) != ps_worker_group_of(w, it->work_item);
}

static ps_code look(const ps_worker *w, const ps_item *it, const ps_prepared_system *prepared, char text[PS_BESIDE_TEXT], ps_error *error) {
    const ps_fit_hand hand = {
        .backend = w->work->backend, .frame = it->counts, .plan = prepared->plan, .methods = w->cache.methods, .dose = it->dose};
    return ps_fit_look_at_hand(&hand, &w->work->run->groups[prepared->group].optics, text, error);
}

ps_code ps_worker_doubt_optics(ps_worker *w, const ps_item *it, const ps_prepared_system *prepared, bool *write_failed, ps_error *error) {
    char text[PS_BESIDE_TEXT];
    int64_t group = prepared->group;
    bool looked = true;
    double begin_s = ps_seconds();
    *write_failed = false;
    if (!is_first_of_group(w, it) || !is_group_of_interest(w->work->run, group)) return PS_OK;
    ps_code code = ps_output_has_looked(w->work->output, group, &looked, error);
    if (code == PS_OK && looked) return PS_OK;
    if (code == PS_OK) PS_TRY(look(w, it, prepared, text, error));
    if (code == PS_OK && text[0])
        ps_log(PS_LOG_WARNING, "%s, frame %lld: %s", ps_run_plan_group_name(&w->work->run->groups[group]), (long long)it->frame, text);
    if (code == PS_OK) code = ps_output_write_doubt(w->work->output, group, text, ps_seconds() - begin_s, error);
    *write_failed = code != PS_OK;
    return code;
}
