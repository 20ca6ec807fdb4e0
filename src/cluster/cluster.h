/* The ranks of a run: start and end of MPI, agreement on errors, who is where. */
#ifndef PS_CLUSTER_CLUSTER_H
#define PS_CLUSTER_CLUSTER_H

#include <mpi.h>
#include <stdbool.h>

#include "core/error.h"

typedef struct {
    MPI_Comm communicator;
    int rank, n_ranks;
    int node_rank, n_node_ranks; /* among the ranks of this host */
    int n_nodes;
    bool threads; /* MPI_THREAD_MULTIPLE was granted */
    char host[MPI_MAX_PROCESSOR_NAME];
    int n_cpus;      /* its part of the node's CPUs; 0: not known. Set by cluster/placement.h, as is: */
    char cores[320]; /* where this rank computes, for records; "": not known. Set by cluster/placement.h */
} ps_cluster;

/* Collective. Starts MPI (one process without mpirun works too) and sets MPI's errors to be returned. */
ps_code ps_cluster_begin(ps_cluster *cluster, ps_error *error);
/* Collective, with one exception: status is the exit status, with which all ranks are ended at once where HDF5 is broken (core/lock.h). */
void ps_cluster_end(ps_cluster *cluster, int status);

/* Collective: every rank brings its code and reason; all return the same code, that of the lowest rank that failed, and its text with
 * "rank N: " in front (where there are several ranks). This is how an error one rank meets before a collective call becomes everyone's. */
ps_code ps_cluster_agree(const ps_cluster *cluster, ps_code code, ps_error *error);

/* Collective: one line of text per rank, joined by newlines in rank order; malloc'd on rank 0, NULL elsewhere. */
ps_code ps_cluster_gather_lines(const ps_cluster *cluster, const char *line, char **lines, ps_error *error);

/* Turns an MPI return code into PS_OK or PS_E_MPI with MPI's own text. */
ps_code ps_mpi_check(int status, const char *call, const char *file, int line, ps_error *error);
#define PS_MPI(error, call) ps_mpi_check((call), #call, __FILE__, __LINE__, (error))

#endif
