/* From a job's "compute" entries to an open backend. Nothing falls back silently: what ran is logged and recorded. */
#ifndef PS_PLAN_BACKEND_CHOICE_H
#define PS_PLAN_BACKEND_CHOICE_H

#include "job/job.h"
#include "kernels/backend_list.h"

/* What the job's backend name and precision mean here (ps_backend_select). "auto" is cuda where it is built and a device is visible, else
 * cpu; reference precision is the CPU's alone. node_rank picks the device when the name gives none ("cuda"): node_rank modulo visible
 * devices. n_node_ranks: ranks of this host, from which follows how many share the device. */
ps_code ps_backend_choose(const ps_job *job, int node_rank, int n_node_ranks, const ps_backend_ops **ops, ps_backend_options *options,
                          ps_error *error);

#endif
