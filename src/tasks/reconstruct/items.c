#include <stdlib.h>

#include "tasks/reconstruct/blame.h"
#include "tasks/reconstruct/worker_parts.h"

void ps_item_forget(ps_item *it) {
    if (it->counts) ps_frame_destroy(it->counts);
    free(it->mean);
    free(it->extra_bad);
    free(it->odd);
    free(it->note);
    free(it->tally);
    it->counts = NULL;
    it->mean = NULL;
    it->extra_bad = NULL;
    it->odd = NULL;
    it->note = NULL;
    it->tally = NULL;
    it->is_loaded = false;
}

ps_code ps_item_fail(ps_worker *w, ps_item *it, const ps_error *reason, ps_error *error) {
    ps_writer_frame *to;
    PS_TRY(ps_writer_begin(w->writer, it->work_item, it->frame, &to, error));
    to->seen = it->seen;
    PS_TRY(ps_writer_fail(w->writer, to, reason, error));
    it->handed_on = true;
    ps_item_forget(it);
    return PS_OK;
}

ps_code ps_item_settle(ps_worker *w, ps_item *it, ps_code code, const ps_error *reason, ps_error *error) {
    if (ps_blames_frame(code)) return ps_item_fail(w, it, reason, error);
    if (error) *error = *reason;
    return code;
}

ps_code ps_item_renew_counts(const ps_worker *w, ps_item *it, ps_prepared_system *prepared, ps_error *error) {
    if (it->counts) ps_frame_destroy(it->counts);
    it->counts = NULL;
    return ps_frame_create(prepared->system, w->work->run->dtype, &it->counts, error);
}
