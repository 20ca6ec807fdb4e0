/* The steps of building a run plan; internal to the prologue. Each fails like ps_run_plan_build; the caller frees the plan. */
#ifndef PS_RECONSTRUCT_PROLOGUE_PARTS_H
#define PS_RECONSTRUCT_PROLOGUE_PARTS_H

#include "reconstruct/prologue.h"

/* Masks that recordings carry, each kept once. */
typedef struct {
    int64_t n_masks;
    uint8_t **masks;  /* [n_masks] each [detector_rows, detector_columns] */
    size_t *sizes;    /* [n_masks] pixels */
    int64_t *mask_of; /* [n_frames] index into masks, -1: none */
} ps_file_masks;

/* Opens every recording; fills plan->frames and the shapes all have in common. */
ps_code ps_prologue_open_frames(const ps_job *job, ps_run_plan *plan, ps_file_masks *masks, ps_error *error);
void ps_prologue_free_masks(ps_file_masks *masks);
/* Reads optics, puts frames into groups, builds each group's outline and what follows from all of them. */
ps_code ps_prologue_form_groups(const ps_job *job, const ps_file_masks *masks, ps_run_plan *plan, ps_error *error);
ps_code ps_prologue_plan_groups(const ps_job *job, ps_run_plan *plan, ps_error *error);
ps_code ps_prologue_warn(const ps_job *job, ps_run_plan *plan, ps_error *error);

#endif
