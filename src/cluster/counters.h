/* Numbers on rank 0 that every rank may read and change atomically.
 *
 * One-sided MPI where the transport has it. OpenMPI 4 has none between nodes that only speak TCP once threads may call MPI; there, a
 * thread of rank 0 answers messages instead. Callers see no difference. */
#ifndef PS_CLUSTER_COUNTERS_H
#define PS_CLUSTER_COUNTERS_H

#include <stdint.h>

#include "cluster/cluster.h"
#include "cluster/counter_change.h"

typedef struct ps_counters ps_counters;

/* Collective: n counters, all 0. On several ranks rank 0 gets a thread that keeps MPI moving while it computes. */
ps_code ps_counters_create(const ps_cluster *cluster, int64_t n, ps_counters **counters, ps_error *error);
/* Collective. */
void ps_counters_destroy(ps_counters *counters);

/* Rank-local: *before is the counter's value before the change. Any thread of a rank where MPI allows threads; takes ps_mpi_lock.
 */
ps_code ps_counters_change(ps_counters *counters, const ps_counter_change *change, int64_t *before, ps_error *error);

#endif
