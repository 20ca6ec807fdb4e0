/* Puts the ranks of a node on their cores where a launcher's own binding left them less than there is. */
#ifndef PS_CLUSTER_PLACEMENT_H
#define PS_CLUSTER_PLACEMENT_H

#include "cluster/cluster.h"

/* Collective; before anything computes with threads. Decides as cluster/cores.h says, moves the calling thread (threads that it starts
 * later follow), sets OpenMP's number of threads unless OMP_NUM_THREADS is given, says in the log what was done and why, and leaves
 * cluster->cores and cluster->n_cpus for records and plans. pci_device: of the rank's device ("0000:3b:00.0"); NULL: none. n_threads: that
 * the job asks for; 0: none. */
ps_code ps_place_ranks(ps_cluster *cluster, const char *pci_device, int n_threads, ps_error *error);

#endif
