/* What bounded a run, from every rank to rank 0. */
#ifndef PS_CLUSTER_GATHER_USAGE_H
#define PS_CLUSTER_GATHER_USAGE_H

#include "cluster/cluster.h"
#include "core/usage.h"

/* Collective. *usage is valid on rank 0. */
ps_code ps_usage_gather(const ps_cluster *cluster, const ps_rank_usage *mine, ps_usage *usage, ps_error *error);

#endif
