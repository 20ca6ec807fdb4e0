/* What one run of the reconstruct task holds, and its steps in their order. Internal to this folder. */
#ifndef PS_TASKS_RECONSTRUCT_SESSION_H
#define PS_TASKS_RECONSTRUCT_SESSION_H

#include "cluster/memory_bounds.h"
#include "cluster/queue.h"
#include "core/busy.h"
#include "plan/file_checks.h"
#include "plan/memory.h"
#include "store/provenance.h"
#include "tasks/reconstruct/attempts.h"

/* Everything a run holds; one cleanup for all. */
typedef struct {
    const ps_cluster *cluster;
    const ps_job *job;
    bool resume, overwrite, retry_failed;
    ps_busy_times begin, work_begin; /* of the task, and of the work on frames */
    ps_measured *measured;           /* of the output that is gone on with; NULL: a new one */
    ps_run_plan run;
    ps_file_checks checks;
    ps_loader_shape shape;
    ps_loader *loader;
    double **group_mean;
    const ps_backend_ops *ops;
    ps_backend *backend;
    ps_device_info device;
    ps_memory_share share; /* of the host */
    ps_run_memory memory;
    float **images; /* [memory.n_images] host memory of the backend for images on their way to the output */
    ps_notes notes;
    uint8_t *states;      /* [n_frames] what the output says */
    int64_t n_work_items; /* frames to do that are no suspects */
    int64_t *work_items;
    int64_t n_suspects;
    uint8_t *suspects; /* [n_frames] to do, but begun before and never ended: tried last */
    char *note;        /* for every frame of a run that goes on with another backend; NULL: none */
    ps_output *output;
    ps_queue *queue;
    ps_attempts *attempts;
} ps_session;

/* prepare.c. Collective: everything up to where the output is touched. */
ps_code ps_session_prepare(ps_session *s, ps_error *error);
/* open_output.c. Collective: the output, new or as it stands, its states, and what is to do. */
ps_code ps_session_open_output(ps_session *s, ps_error *error);
/* Group by group, the suspects or all others that are to do; work_items: [n_frames]. Returns how many. */
int64_t ps_session_list_work_items(const ps_session *s, bool suspects, int64_t *work_items);
/* outcome.c. Collective: does it, and says what came of it. */
ps_code ps_session_work(ps_session *s, ps_error *error);
/* drift.c. Collective, when no frame is pending any more: measures the sample's drift where the output has room and does not have it yet,
 * and aligns images where the job asks for it. Nothing else in the output changes. */
ps_code ps_session_measure_drift(const ps_session *s, ps_error *error);
/* usage.c. Collective, at the end of the work: what bounded the run, to the log and the output. */
ps_code ps_session_tell_usage(const ps_session *s, ps_error *error);

#endif
