/* The program, with a backend that meets what PS_LOST names on the ranks of the bit mask PS_LOST_RANKS:
 *
 *   device   the device is lost after PS_LOST_AFTER frames; the other ranks take their time, so that it gets that far
 *   system   no system can be made, for its numbers
 *   memory   no system can be made, for want of memory
 *   batch    there is memory for one frame at a time only
 *   scales   the scales of a system are not numbers the first PS_LOST_AFTER times
 *   queue    MPI fails in the PS_LOST_AFTER-th look at the queue of frames and in all after it
 *
 * This definition of ps_backend_choose takes the place of the program's. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "plan/backend_choice.h"

static int n_reduced, n_scaled, n_looks;

static bool is_struck(void) {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return atoi(getenv("PS_LOST_RANKS")) >> rank & 1;
}

static bool strikes(const char *what) {
    return strcmp(getenv("PS_LOST"), what) == 0 && is_struck();
}

static ps_code lose_device(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    const struct timespec while_others_lose = {.tv_nsec = 300000000};
    if (strikes("device") && n_reduced++ >= atoi(getenv("PS_LOST_AFTER")))
        return PS_FAIL(error, PS_E_DEVICE, "the device fell off the bus");
    if (strikes("batch") && n_frames > 1) return PS_FAIL(error, PS_E_MEMORY, "no memory for %lld frames", (long long)n_frames);
    if (atoi(getenv("PS_LOST_RANKS")) && !is_struck()) nanosleep(&while_others_lose, NULL);
    return ps_backend_cpu_fast.frame_reduce(frames, n_frames, dose, error);
}

static ps_code lose_system(ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_system **system, ps_error *error) {
    if (strikes("system")) return PS_FAIL(error, PS_E_NUMERIC, "these optics make no system");
    if (strikes("memory")) return PS_FAIL(error, PS_E_MEMORY, "no memory for a system");
    return ps_backend_cpu_fast.system_create(backend, desc, methods, system, error);
}

static ps_code lose_scales(ps_system *system, ps_methods method, double *amplitude, double *phase, ps_error *error) {
    if (strikes("scales") && n_scaled++ < atoi(getenv("PS_LOST_AFTER"))) return PS_FAIL(error, PS_E_NUMERIC, "the scales are not numbers");
    return ps_backend_cpu_fast.system_scales(system, method, amplitude, phase, error);
}

int MPI_Fetch_and_op(const void *origin, void *result, MPI_Datatype type, int target, MPI_Aint at, MPI_Op operation, MPI_Win window) {
    if (strikes("queue") && ++n_looks >= atoi(getenv("PS_LOST_AFTER"))) return MPI_ERR_OTHER;
    return PMPI_Fetch_and_op(origin, result, type, target, at, operation, window);
}

ps_code ps_backend_choose(const ps_job *job, int node_rank, int n_node_ranks, const ps_backend_ops **ops, ps_backend_options *options,
                          ps_error *error) {
    static ps_backend_ops losing;
    (void)job;
    (void)node_rank;
    (void)n_node_ranks;
    (void)error;
    losing = ps_backend_cpu_fast;
    losing.frame_reduce = lose_device;
    losing.system_create = lose_system;
    losing.system_scales = lose_scales;
    *ops = &losing;
    *options = (ps_backend_options){0};
    return PS_OK;
}

int main(int n_arguments, char **arguments) {
    return ps_command_run(n_arguments - 2, arguments + 2);
}
