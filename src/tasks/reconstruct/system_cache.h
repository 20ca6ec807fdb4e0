/* Systems prepared on this rank: one at a time for a group's own optics and mask, and one for frames that leave more pixels out. */
#ifndef PS_TASKS_RECONSTRUCT_SYSTEM_CACHE_H
#define PS_TASKS_RECONSTRUCT_SYSTEM_CACHE_H

#include "plan/plan.h"

typedef struct {
    int64_t group;       /* -1: empty */
    const ps_plan *plan; /* the group's, or own_plan */
    ps_plan own_plan;    /* with further pixels left out */
    uint8_t *extra_bad;  /* [detector pixels], what is left out beyond the group's mask; NULL: nothing */
    ps_system *system;
    bool has_group_open; /* plan is the group's, and this system has opened it */
    bool is_prepared;
    double *weights;  /* [n_active], once prepared */
    double dose;      /* of the pattern the weights come from */
    bool is_recorded; /* weights and dose are the output's, which has them already */
} ps_prepared_system;

typedef struct {
    const ps_job *job;
    ps_backend *backend;
    ps_methods methods;
    ps_run_plan *run;
    bool two_systems;                     /* shared and per_frame fit into memory beside each other */
    const ps_measured *measured;          /* the output that is gone on with; NULL: a new one */
    double **group_mean;                  /* [run->n_groups] mean pattern [detector pixels] of a group's first frame, or NULL */
    ps_prepared_system shared, per_frame; /* for whole groups; for frames that leave further pixels out */
} ps_system_cache;

void ps_system_cache_init(ps_system_cache *cache, const ps_job *job, ps_run_plan *run, const ps_measured *measured, double **group_mean,
                          ps_backend *backend);
void ps_system_cache_free(ps_system_cache *cache);
/* Drops both systems, whose frames must be gone; they are built again when they are asked for. */
void ps_system_cache_drop(ps_system_cache *cache);

/* The system of a group, with extra_bad ([detector pixels], or NULL) left out as well; built when it is not at hand, which drops the one
 * that stood in its place, and the other of the two where both do not fit into memory or the job's budget. Frames of a dropped system must
 * be gone. On error its place is empty. */
ps_code ps_system_cache_get(ps_system_cache *cache, int64_t group, const uint8_t *extra_bad, ps_prepared_system **prepared,
                            ps_error *error);
/* Weights, then N and eigenbasis, unless prepared already. mean: [n_active of the prepared plan] of the frame in hand, used where the group
 * needs no pattern of its own: it has one frame, or weights do not depend on one. PS_E_INPUT where it needs one and there is none. */
ps_code ps_system_cache_prepare(ps_system_cache *cache, ps_prepared_system *prepared, const double *mean, ps_error *error);

#endif
