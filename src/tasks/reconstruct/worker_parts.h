/* What the files of a rank's work share: frames in hand, and the worker that holds them. Rank-local. Internal to this folder. */
#ifndef PS_TASKS_RECONSTRUCT_WORKER_PARTS_H
#define PS_TASKS_RECONSTRUCT_WORKER_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/stage.h"
#include "input/loader.h"
#include "input/packed_load.h"
#include "tasks/reconstruct/worker.h"
#include "tasks/reconstruct/writer.h"

enum { PS_MOST_IN_HAND = 32 };

/* A frame in hand. */
typedef struct {
    int64_t work_item, frame;
    ps_frame *counts;   /* NULL once dealt with, or not yet loaded */
    double *mean;       /* [n_active] of the system it was loaded into */
    uint8_t *extra_bad; /* [detector pixels] where it holds invalid-count values, or is hot or dead in this frame only; NULL: nowhere */
    int64_t n_excluded;
    uint8_t *odd; /* [positions] ps_pattern_kind, once looked at; NULL: every pattern is good */
    char *note;   /* on what was filled; NULL: nothing */
    bool looked;
    ps_frame_seen seen;
    /* of a recording that was handed on packed */
    bool is_loaded; /* tried, ahead of its turn; outcome and packed_failure say what came of it */
    ps_packed_outcome outcome;
    ps_error packed_failure;
    ps_pattern_tally *tally; /* [positions]; NULL: the loader has it */
    ps_loader_findings found;
    double dose;
    double seconds[PS_N_STAGES];
    bool handed_on; /* to the writer, to be done or failed */
} ps_item;

typedef struct {
    const ps_work *work;
    ps_system_cache cache;
    ps_writer *writer;
    ps_work_summary *summary;
    ps_item batch[PS_MOST_IN_HAND];
    int64_t n_batch;
    int64_t frames_at_once; /* as planned, and fewer once an allocation has failed */
    int64_t ahead;          /* a place taken for the next batch; -1: none */
    int64_t loading;        /* the place the loader reads; -1: idle */
    bool reads_packed;      /* recordings are handed to the backend as they are; once one is not of that kind, all are read as counts */
    ps_loader_shape shape;
    /* the batch that comes after this one, loaded ahead by a thread: load_packed.c */
    bool loads_ahead;
    ps_item next[PS_MOST_IN_HAND];
    int64_t n_next;
    int n_threads;
    pthread_t thread;
    bool is_loading_ahead;
    atomic_bool gives_up;
} ps_worker;

/* ---- items.c: what becomes of a frame ---- */

/* Drops what it holds. */
void ps_item_forget(ps_item *it);
/* A new frame of the system in place of its counts. */
ps_code ps_item_renew_counts(const ps_worker *w, ps_item *it, ps_prepared_system *prepared, ps_error *error);
/* Has it failed in the output, with the reason. */
ps_code ps_item_fail(ps_worker *w, ps_item *it, const ps_error *reason, ps_error *error);
/* An error met with a frame in hand fails the frame or is returned, to end this rank's work: see blame.h. */
ps_code ps_item_settle(ps_worker *w, ps_item *it, ps_code code, const ps_error *reason, ps_error *error);

/* ---- claim.c: which frames ---- */

int64_t ps_worker_group_of(const ps_worker *w, int64_t work_item);
bool ps_worker_tries_suspects(const ps_worker *w);
/* *suspect: the frame was begun before and never ended. */
ps_code ps_worker_is_suspect(const ps_worker *w, int64_t work_item, bool *suspect, ps_error *error);
/* Fills the batch with frames of one group, those of the next batch first (once their thread has ended: load_packed.c); empty: there is
 * nothing to take now. */
ps_code ps_worker_claim(ps_worker *w, ps_error *error);
/* Fills the next batch, where batches are loaded ahead and it is empty, with frames of this batch's group, unless other ranks are about to
 * run dry. */
ps_code ps_worker_claim_next(ps_worker *w, ps_error *error);

/* ---- load_packed.c: recordings as they are packed ---- */

void ps_worker_plan_packed(ps_worker *w);
/* Into new counts of the system; *is_taken false: it is to be read as counts. */
ps_code ps_item_put_packed(ps_worker *w, ps_item *it, ps_prepared_system *prepared, bool *is_taken, ps_error *error);
/* Starts to load the next batch into frames of the same system, which must stay until the thread has ended. */
ps_code ps_worker_load_ahead(ps_worker *w, ps_prepared_system *prepared, ps_error *error);
/* Waits for the thread. */
void ps_worker_join_ahead(ps_worker *w);
/* Ends the thread and drops what it loaded; the frames stay claimed. */
void ps_worker_abandon_ahead(ps_worker *w);

/* ---- load.c: from recordings into systems ---- */

/* Starts reading the next batch's first frame while this batch is computed, unless other ranks are about to run dry. */
ps_code ps_worker_read_ahead(ps_worker *w, ps_error *error);
/* Counts into the system, then mean, invalid-count values and dose. A frame with invalid-count values keeps extra_bad and is to be loaded
 * again without them. */
ps_code ps_item_load(ps_worker *w, ps_item *it, ps_prepared_system *prepared, ps_error *error);
/* Loads frames into their group's system; *ready: those without invalid-count values. */
ps_code ps_worker_load(ps_worker *w, ps_item *const *items, int64_t n, ps_prepared_system *prepared, ps_item **ready, int64_t *n_ready,
                       ps_error *error);

/* ---- doubt.c: optics that look wrong ---- */

/* Of the first frame of a group, reduced: holds its optics against its counts, once for an output, and says what it found to the log and
 * the output. *write_failed: the error is the output's, not the frame's. */
ps_code ps_worker_doubt_optics(ps_worker *w, const ps_item *it, const ps_prepared_system *prepared, bool *write_failed, ps_error *error);

/* ---- compute.c: from systems to the writer ---- */

/* Reduces and solves loaded frames and hands them to the writer; the frames' own errors fail the frame they belong to. */
ps_code ps_worker_compute(ps_worker *w, ps_item *const *items, int64_t n, ps_prepared_system *prepared, ps_error *error);
/* A frame that leaves more pixels out than its group: its own system without them, and the counts into that. Markers that these counts turn
 * out to hold make it one more round. */
ps_code ps_worker_compute_alone(ps_worker *w, ps_item *it, ps_error *error);

#endif
