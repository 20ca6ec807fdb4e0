/* A run of a fit job: what all of it holds, and the steps that fit one recording after another, or several side by side. */
#ifndef PS_TASKS_FIT_SESSION_H
#define PS_TASKS_FIT_SESSION_H

#include "plan/held_g.h"
#include "store/provenance.h"
#include "tasks/fit/journal.h"
#include "tasks/fit/tries.h"
#include "tasks/task.h"

/* Everything a run holds; one cleanup for all. */
typedef struct {
    const ps_cluster *cluster;
    const ps_job *job;
    const ps_run_options *options;
    ps_run_plan run;
    ps_file_checks checks;
    const ps_backend_ops *ops;
    ps_backend *backend;
    ps_device_info device;
    ps_loader *loader;
    ps_notes notes;
    char *signature;
    char held_g[PS_HELD_G_TEXT]; /* how g is held, of a frame */
    ps_new_file file;            /* rank 0's */
    ps_fit_journal journal;      /* rank 0's */
    ps_fit_tries tries;          /* rank 0's */
    int64_t n;                   /* fits */
    ps_fit_item *items;          /* [n]; the same on every rank once they are settled */
    bool *settled;               /* [n]; the same on every rank */
    int64_t *n_tries;            /* [n] begun before this run and never ended; the same on every rank */
    ps_fit_pictures *pictures;   /* [n]; rank 0's */
    char **paths;                /* [n] of the optics files */
} ps_fit_session;

/* ---- steps.c: collective, all of them ---- */

/* All ranks together fit item i, which is the same on every rank afterwards; one whose fit was begun too often and never ended fails
 * unread. A fit that fails is no error. draws: into the pictures too. */
ps_code ps_fit_step(ps_fit_session *s, const ps_fit_options *options, const ps_optics *start, int64_t i, bool draws, ps_error *error);
/* Items [n_side] side by side, as many at once as there are ranks; where there are more ranks than items, several ranks to one. None of
 * them was begun before. The answer is that of one after another. */
ps_code ps_fit_side_by_side(ps_fit_session *s, const ps_fit_options *options, const ps_optics *start, int64_t n_side, const int64_t *side,
                            ps_error *error);
/* Item i is as it stays: to the journal, so that a run that goes on does not fit it again, and to the log. */
ps_code ps_fit_settle(ps_fit_session *s, int64_t i, ps_error *error);
/* The job's options for item i's optics. */
ps_code ps_fit_item_options(const ps_fit_session *s, int64_t i, ps_fit_options *options, ps_error *error);

/* ---- follow.c ---- */

/* Collective. Every recording: the first that can be fitted blindly, the others from those before them. docs/fit.md, "A series". */
ps_code ps_fit_follow(ps_fit_session *s, ps_error *error);

#endif
