/* The simulate task: time series of exact single-slice 4D-STEM recordings with known truth. docs/simulate.md. */
#ifndef PS_SIMULATE_SIMULATE_H
#define PS_SIMULATE_SIMULATE_H

#include <mpi.h>

#include "job/job.h"

/* Collective over communicator: frames are spread over ranks, each frame's files are the same whatever the number of ranks and threads. */
ps_code ps_simulate(const ps_job *job, MPI_Comm communicator, ps_error *error);

#endif
