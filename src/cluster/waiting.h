/* How threads wait for each other. Those of OpenMP and MPI spin: fine where each has a core, but where ranks outnumber the cores they keep
 * those from the cores that they wait for. */
#ifndef PS_CLUSTER_WAITING_H
#define PS_CLUSTER_WAITING_H

#include <stdbool.h>

/* What the environment and the system tell before MPI is there. */
typedef struct {
    int n_ranks;   /* of this job step on this node, as the launcher says; 1: none says so */
    int n_threads; /* of each rank, as OMP_NUM_THREADS says; 0: it is not set */
    int n_cores;   /* CPUs that they may use on this node, by cpuset and quota of the control group */
} ps_waiting_node;

/* Reads it. root: where the file system begins ("" but in tests). */
ps_waiting_node ps_waiting_look(const char *root);
/* More threads would compute than there are cores. */
bool ps_waiting_is_crowded(const ps_waiting_node *node);

/* At the start of the program, before anything else. On a crowded node threads that wait are to leave their core: MPI is told so by
 * OMPI_MCA_mpi_yield_when_idle, OpenMP by OMP_WAIT_POLICY, and OpenBLAS, which is called for one small matrix at a time, to start no
 * threads by OPENBLAS_NUM_THREADS. Each stays as it is where the user has set it (for OpenMP also GOMP_SPINCOUNT). OpenMP and OpenBLAS read
 * their settings while they are loaded, so where ranks may have several threads the program starts itself anew, with the same arguments. */
void ps_waiting_prepare(char **arguments);

/* What was found and done, for the log; NULL: nothing. */
const char *ps_waiting_note(void);

#endif
