/* What the tasks that read a series of recordings and write one output file share, beside the plan (plan/plan.h), the checks of files
 * (plan/file_checks.h) and the file's life (store/new_file.h). */
#ifndef PS_TASKS_SERIES_H
#define PS_TASKS_SERIES_H

#include "cluster/cluster.h"
#include "plan/file_checks.h"
#include "plan/plan.h"

/* Collective, first of all: a look at recordings that could end a process (input/preflight.h), and that the output is none of the files
 * that are read. Nothing is touched. */
ps_code ps_series_begin(const ps_cluster *cluster, const ps_job *job, ps_error *error);

/* Collective: every rank must see the same recordings; a file system that one node does not see yet is found here. built: what building
 * run came to on this rank. */
ps_code ps_series_agree(const ps_cluster *cluster, ps_code built, const ps_run_plan *run, ps_error *error);

/* Rank-local. The job's backend for this rank, with as many threads as it has where the job gives no number. */
ps_code ps_series_backend(const ps_cluster *cluster, const ps_job *job, const ps_backend_ops **ops, ps_backend_options *options,
                          ps_error *error);

/* frames: [run's frames] what the output records of each; pointers are into run and checks. */
void ps_series_describe(const ps_run_plan *run, const ps_file_checks *checks, ps_output_frame_source *frames);

/* To the log. */
void ps_series_log_failure(const ps_run_plan *run, int64_t frame, const char *reason);
/* The run's error when frames failed: code, and where their reasons are. how: "" or more about how they failed. */
ps_code ps_series_fail(ps_code code, const ps_job *job, int64_t n_failed, int64_t n_frames, const char *how, ps_error *error);

#endif
