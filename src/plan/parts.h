/* The steps of building a run plan; internal to src/plan. Each fails like ps_run_plan_build; the caller frees the plan. */
#ifndef PS_PLAN_PARTS_H
#define PS_PLAN_PARTS_H

#include "plan/plan.h"

/* Masks that recordings carry, each kept once. */
typedef struct {
    int64_t n_masks;
    uint8_t **masks;  /* [n_masks] each [detector_rows, detector_columns] */
    size_t *sizes;    /* [n_masks] pixels */
    int64_t *mask_of; /* [n_frames] index into masks, -1: none */
} ps_file_masks;

/* Finds the series' recordings, in the job's order and selection; warns of gaps and duplicates. measured: the output that is gone on with,
 * or NULL. Its order of time stands: a recording that does not tell its time now, since it cannot be read, keeps its place. */
ps_code ps_run_plan_list_series(const ps_job *job, const ps_measured *measured, ps_run_plan *plan, ps_error *error);
/* Opens every recording; fills plan->frames and the shapes all have in common. */
ps_code ps_run_plan_open_frames(const ps_job *job, ps_run_plan *plan, ps_file_masks *masks, ps_error *error);
void ps_run_plan_free_masks(ps_file_masks *masks);
/* Reads optics and puts frames into groups; what optics leave open comes from the recordings; then each group's outline and what follows
 * from all of them. measured: the output that is gone on with, or NULL. */
ps_code ps_run_plan_form_groups(const ps_job *job, const ps_file_masks *masks, const ps_measured *measured, ps_run_plan *plan,
                                ps_error *error);
ps_code ps_run_plan_complete_optics(const ps_job *job, const ps_measured *measured, ps_run_plan *plan, ps_error *error);
ps_code ps_run_plan_plan_groups(const ps_job *job, ps_run_plan *plan, ps_error *error);
ps_code ps_run_plan_warn(const ps_job *job, ps_run_plan *plan, ps_error *error);

/* Warnings and refusals from what ps_run_plan_survey saw. */
ps_code ps_run_plan_compare_seen(const ps_job *job, ps_run_plan *plan, ps_error *error);

ps_code ps_run_plan_warn_of_times(const ps_job *job, ps_run_plan *plan, ps_error *error);

/* What the frame's recording says of the values that the optics leave open, as text that is the same for recordings to be grouped;
 * malloc'd. A recording that says nothing of one (or cannot be read) is taken to say what the first does that says something; measured: the
 * output that is gone on with, or NULL, keeps the groups that it made of such recordings. */
char *ps_run_plan_said(const ps_measured *measured, const ps_run_plan *plan, int64_t frame, const ps_optics *optics);

/* The group's first readable frame; -1: none is. */
int64_t ps_run_plan_first_readable(const ps_run_plan *plan, const ps_run_group *group);
/* Fills the group's look unless it is filled. A recording that turns out unreadable leaves it empty, with no_disc saying why. */
ps_code ps_run_plan_inspect_group(const ps_job *job, const ps_run_plan *plan, ps_run_group *group, ps_error *error);
/* Puts behind the error's text what the group's first recording shows of the disc, where that can be measured. */
void ps_run_plan_explain(const ps_job *job, const ps_run_plan *plan, ps_run_group *group, ps_error *error);
const char *ps_run_plan_group_name(const ps_run_group *group); /* for messages */
/* Detectors made for X-rays write a photon energy where an electron's belongs. */
bool ps_run_plan_plausible_voltage(double voltage_V);
ps_code ps_run_plan_add_warning(ps_run_plan *plan, ps_error *error, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
