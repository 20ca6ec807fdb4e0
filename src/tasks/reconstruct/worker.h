/* One rank's work: takes frames, reads, reconstructs and writes them until nothing is left. */
#ifndef PS_TASKS_RECONSTRUCT_WORKER_H
#define PS_TASKS_RECONSTRUCT_WORKER_H

#include "cluster/queue.h"
#include "input/loader.h"
#include "store/output.h"
#include "tasks/reconstruct/attempts.h"
#include "tasks/reconstruct/system_cache.h"

/* Everything a rank works with; borrowed. */
typedef struct {
    const ps_job *job;
    const ps_cluster *cluster;
    ps_run_plan *run;
    const ps_measured *measured; /* the output that is gone on with; NULL: a new one */
    double **group_mean;         /* [run->n_groups] or NULL each */
    int64_t n_work_items;
    const int64_t *work_items; /* [n_work_items] frames in the order of work: group by group */
    const ps_backend_ops *ops;
    ps_backend *backend;
    ps_loader *loader;
    ps_output *output;
    int64_t n_unwritten; /* frames that are solved and not written at a time, at most */
    int n_readers;       /* threads that read packed patterns */
    int64_t n_images;
    float **images; /* [n_images] memory of the backend's for images on their way to the output */
    ps_queue *queue;
    ps_attempts *attempts;
    uint8_t *suspects; /* [frames] set for those that turn out to be suspects and are left for later; NULL: places are suspects, which
                          are tried one at a time */
    int64_t frames_per_batch;
    bool two_systems;   /* of the cache: see there */
    const char *device; /* name recorded with each frame */
    const char *note;   /* recorded with each frame; NULL: nothing to say */
} ps_work;

typedef struct {
    int64_t n_done, n_failed;
    int64_t n_unread; /* of those failed: could not be read */
    bool lost;        /* this rank gave its frames back and left: its device or the output failed; the error says why */
} ps_work_summary;

/* Rank-local. Frames that fail are recorded and do not end the work; PS_E_INTERRUPTED when a stop was wanted here or on another rank. */
ps_code ps_work_through(const ps_work *work, ps_work_summary *summary, ps_error *error);

#endif
