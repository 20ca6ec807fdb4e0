/* What a reconstruction takes of memory on one rank, planned into what is there. Rank-local. */
#ifndef PS_PLAN_MEMORY_H
#define PS_PLAN_MEMORY_H

#include "cluster/memory_bounds.h"
#include "input/loader.h"
#include "plan/packed_share.h"
#include "plan/plan.h"

typedef struct {
    bool on_device;         /* the backend's part is the device's memory, not the host's */
    size_t ring_bytes;      /* of the host: recordings read ahead */
    ps_packed_share packed; /* how packed patterns are read; its pinned memory is part of beside_bytes */
    int64_t n_images;       /* of the host: images on their way to the output at a time */
    int64_t n_unwritten;    /* frames that are solved and not written at a time, at most */
    size_t beside_bytes;    /* of the host: decompression, those images, plans, masks and means */
    size_t host_bytes;      /* of the host in all: the two above, and the backend's where it computes on the host */
    size_t backend_budget;  /* what the backend is to keep to (ps_backend_options.memory_budget_bytes); 0: no limit is known */
    char limit[512];        /* what sets that budget, with its numbers; "": nothing */
    bool set_by_job;        /* the job's own budget does */
    ps_memory_plan backend;
    size_t least_bytes; /* that the backend needs: one frame, smallest pieces */
    bool two_systems;   /* frames that leave more pixels out can have their system beside the others' */
} ps_run_memory;

/* share: what this rank may take of the host; NULL: no limit. n_cpus: its part of the node's CPUs; 0: not known. Sets the host's part and
 * the backend's budget, which on a device is the job's or 0. PS_E_JOB when the host has no room for it. */
ps_code ps_run_memory_begin(const ps_job *job, const ps_run_plan *run, const ps_backend_ops *ops, const ps_memory_share *share, int n_cpus,
                            ps_run_memory *memory, ps_error *error);
/* device_bytes: what the backend may take of its device; 0: not known, or no device. Fills the rest; ops need not be open. PS_E_JOB, with
 * what is needed, what is free, what sets the limit and what to do, when not even one frame fits; memory is complete but for `backend`
 * then. */
ps_code ps_run_memory_finish(const ps_job *job, ps_run_plan *run, const ps_backend_ops *ops, const ps_memory_share *share,
                             size_t device_bytes, ps_run_memory *memory, ps_error *error);

/* Which group decides about memory, the one with the most pixels: frequencies are alike in all groups, and aliases differ little. */
int64_t ps_run_largest_group(const ps_run_plan *run);

/* How the loader of a run is made. */
ps_loader_shape ps_run_loader_shape(const ps_job *job, const ps_run_plan *run);

#endif
