/* One lock around MPI calls of the threads that work through frames: the one that computes shares frames out (counters.h), the one that
 * writes goes through MPI-IO. docs/architecture.md, "Threads and who may call what", has the whole rule.
 *
 * Taken inside ps_hdf5_lock where both are needed, never around it. Not recursive. Collective calls are made while no second thread works
 * and take no lock; neither does the thread of rank 0 that keeps MPI moving (counters.c), which must answer while another rank waits. */
#ifndef PS_CLUSTER_MPI_LOCK_H
#define PS_CLUSTER_MPI_LOCK_H

void ps_mpi_lock(void);
void ps_mpi_unlock(void);

#endif
