/* What the output that is gone on with says of a look at its recordings, so that a recording which cannot be read now still counts as it
 * did: as the one whose dead pixels are its group's, as the one whose disc others are held against. measured may be NULL: a new output. */
#ifndef PS_PLAN_RECORDED_H
#define PS_PLAN_RECORDED_H

#include "plan/plan.h"

/* Rank-local; fills `first` of every group. */
void ps_recorded_firsts(const ps_measured *measured, ps_run_plan *plan);
/* Rank-local; fills `seen` of recordings that could be read when the output was made and cannot now, but for what only a look itself tells
 * (`looked` stays false, the disc's counts 0). */
void ps_recorded_seen(const ps_measured *measured, ps_run_plan *plan);
/* Rank-local; enters the group's dead pixels as ps_run_group_set_dead does. *recorded false: the output says nothing of them. */
ps_code ps_recorded_dead(const ps_job *job, const ps_measured *measured, ps_run_plan *plan, int64_t group, bool *recorded, ps_error *error);

#endif
