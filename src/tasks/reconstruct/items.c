#include <stdlib.h>

#include "hdf5/lock.h"
#include "tasks/reconstruct/blame.h"
#include "tasks/reconstruct/worker_parts.h"
#include "tasks/series.h"

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

ps_code ps_item_renew_counts(const ps_worker *w, ps_item *it, ps_prepared_system *prepared, ps_error *error) {
    if (it->counts) ps_frame_destroy(it->counts);
    it->counts = NULL;
    return ps_frame_create(prepared->system, w->work->run->dtype, &it->counts, error);
}

ps_code ps_item_complete(ps_worker *w, ps_item *it, ps_error *error) {
    int64_t completed;
    it->completed = true;
    ps_item_forget(it);
    PS_TRY(ps_attempts_end(w->work->attempts, it->frame, error));
    PS_TRY(ps_queue_complete(w->work->queue, &completed, error));
    ps_progress_update(w->progress, completed, NULL);
    return PS_OK;
}

ps_code ps_item_fail(ps_worker *w, ps_item *it, const ps_error *reason, ps_error *error) {
    ps_series_log_failure(w->work->run, it->frame, reason->text);
    ps_hdf5_lock();
    ps_code code = ps_output_write_seen(w->work->output, it->frame, &it->seen, error);
    if (code == PS_OK) code = ps_output_fail_frame(w->work->output, it->frame, reason->text, error);
    ps_hdf5_unlock();
    PS_TRY(code);
    w->summary->n_failed++;
    w->summary->n_unread += reason->code == PS_E_INPUT || reason->code == PS_E_IO || reason->code == PS_E_HDF5;
    return ps_item_complete(w, it, error);
}

ps_code ps_item_settle(ps_worker *w, ps_item *it, ps_code code, const ps_error *reason, ps_error *error) {
    if (ps_blames_frame(code)) return ps_item_fail(w, it, reason, error);
    if (error) *error = *reason;
    return code;
}
