/* Waiting for ranks that are still at work, without the watchdog taking the wait for a hang. */
#ifndef PS_CLUSTER_WAIT_RANKS_H
#define PS_CLUSTER_WAIT_RANKS_H

#include "cluster/cluster.h"

/* Collective: ps_cluster_agree, once all ranks have come here. stage: a literal, what the others are at. */
ps_code ps_wait_for_ranks(const ps_cluster *cluster, ps_code code, const char *stage, ps_error *error);

#endif
